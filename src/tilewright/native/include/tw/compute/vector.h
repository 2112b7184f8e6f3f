// How a vector-unit function reaches the runtime. The families are listed in native/header_tree.py.
#pragma once
#include "base.h"

namespace tw {

// The last argument of a call that can be confined to faces: a number in old releases, the enumeration from 0.78 on.
struct FaceMode {
    ckernel::VectorMode value;
    constexpr FaceMode(ckernel::VectorMode mode) : value(mode) {}
#if TW_METAL < 78
    constexpr FaceMode(int mode) : value(static_cast<ckernel::VectorMode>(mode)) {}
#endif
};

// A pass has 8 rows of numbers, a face, unless the call says more: 32 of them from the first face on are the tile.
constexpr u32 faces_of(FaceMode mode, u32 rows = 8) {
    using ckernel::VectorMode;
    if (mode.value == VectorMode::None && rows > 8) return 0xFu >> (4 - rows / 8);
    return mode.value == VectorMode::R ? 0x3u : mode.value == VectorMode::C ? 0x5u : mode.value == VectorMode::None ? 0x1u : 0xFu;
}

template <typename... T>
inline void vector_call(const char* name, const char* init, u32 variant, u32 faces, bool pack, Loc at, T... words) {
    const u32 list[] = {static_cast<u32>(words)...};
    sfpu(name, init, variant, list, sizeof...(words), faces, pack, at);
}

template <typename... T>
inline void vector_init(const char* name, u32 variant, bool pack, Loc at, T... words) {
    const u32 list[] = {static_cast<u32>(words)..., 0u};
    sfpu_init(name, variant, list, sizeof...(words), pack, at);
}

inline u32 float_bits(float value) {
    u32 bits;
    __builtin_memcpy(&bits, &value, sizeof bits);
    return bits;
}

// The n-th template argument as a word, or a default.
template <u32 kDefault, auto... kArgs>
constexpr u32 word_at(u32 index) {
    const u32 words[] = {static_cast<u32>(kArgs)..., 0u};
    return index < sizeof...(kArgs) ? words[index] : kDefault;
}

// The flag for the template argument that says how wide DST is, if it says 16 bits.
template <auto... kArgs>
constexpr u32 narrow_at(u32 index) {
    return word_at<1, kArgs...>(index) == 0 ? kNarrow : 0u;
}

}  // namespace tw

#define TW_INIT(init)                                       \
    template <auto...>                                      \
    inline void init(TW_AT) {                               \
        tw::vector_init(#init, 0, false, tw_at);            \
    }
// Inits that take words.
#define TW_INIT1(init)                                                                       \
    inline void init(uint32_t p = 0, TW_AT) { tw::vector_init(#init, 0, false, tw_at, p); }
#define TW_INIT2(init)                                                                       \
    inline void init(uint32_t p = 0, uint32_t q = 0, TW_AT) { tw::vector_init(#init, 0, false, tw_at, p, q); }
// One tile in place; U0..U3 by the number of scalars.
#define TW_U0(call, init)                                                  \
    template <auto...>                                                     \
    inline void call(uint32_t dst, TW_AT) {                                \
        tw::vector_call(#call, #init, 0, 0xF, false, tw_at, dst);          \
    }
#define TW_U1(call, init)                                                  \
    template <auto...>                                                     \
    inline void call(uint32_t dst, uint32_t p, TW_AT) {                    \
        tw::vector_call(#call, #init, 0, 0xF, false, tw_at, dst, p);       \
    }
#define TW_U2(call, init)                                                  \
    template <auto...>                                                     \
    inline void call(uint32_t dst, uint32_t p, uint32_t q, TW_AT) {        \
        tw::vector_call(#call, #init, 0, 0xF, false, tw_at, dst, p, q);    \
    }
#define TW_U3(call, init)                                                       \
    template <auto...>                                                          \
    inline void call(uint32_t dst, uint32_t p, uint32_t q, uint32_t r, TW_AT) { \
        tw::vector_call(#call, #init, 0, 0xF, false, tw_at, dst, p, q, r);      \
    }
// One tile with an optional VectorMode.
#define TW_UV(call, init)                                                              \
    template <auto...>                                                                 \
    inline void call(uint32_t dst, tw::FaceMode mode = VectorMode::RC, TW_AT) {          \
        tw::vector_call(#call, #init, 0, tw::faces_of(mode), false, tw_at, dst);       \
    }
// One tile whose template argument number `at` (default `def`) selects the algorithm; its init must agree.
#define TW_UT(call, init, at, def)                                                                             \
    template <auto... kArgs>                                                                                   \
    inline void call(uint32_t dst, TW_AT) {                                                                    \
        tw::vector_call(#call, #init, tw::word_at<def, kArgs...>(at), 0xF, false, tw_at, dst);                 \
    }
// One tile whose template argument number `at` is the width of DST, which its init does not ask for.
#define TW_UW(call, init, at)                                                                                  \
    template <auto... kArgs>                                                                                   \
    inline void call(uint32_t dst, TW_AT) {                                                                    \
        tw::vector_call(#call, #init, tw::narrow_at<kArgs...>(at), 0xF, false, tw_at, dst);                    \
    }
// Both: the algorithm by argument `at`, the width of DST by the next one. The init of TX has no width.
#define TW_UTW(call, init, at, def)                                                                                             \
    template <auto... kArgs>                                                                                                    \
    inline void call(uint32_t dst, TW_AT) {                                                                                     \
        tw::vector_call(#call, #init, tw::word_at<def, kArgs...>(at) | tw::narrow_at<kArgs...>((at) + 1), 0xF, false, tw_at, dst); \
    }
#define TW_INIT_W(init)                                                                \
    template <auto...>                                                                 \
    inline void init(TW_AT) {                                                          \
        tw::vector_init(#init, tw::kWidthless, false, tw_at);                          \
    }
#define TW_INIT_TW(init, def)                                                                                         \
    template <auto... kArgs>                                                                                          \
    inline void init(TW_AT) {                                                                                         \
        tw::vector_init(#init, tw::word_at<def, kArgs...>(0) | tw::narrow_at<kArgs...>(1), false, tw_at);             \
    }
#define TW_INIT_TX(init, def)                                                                                         \
    template <auto... kArgs>                                                                                          \
    inline void init(TW_AT) {                                                                                         \
        tw::vector_init(#init, tw::word_at<def, kArgs...>(0) | tw::kWidthless, false, tw_at);                         \
    }
// As TW_UT, but the init takes no such argument.
#define TW_UN(call, init, at, def)                                                                                          \
    template <auto... kArgs>                                                                                                \
    inline void call(uint32_t dst, TW_AT) {                                                                                 \
        tw::vector_call(#call, #init, tw::kInitBlind | tw::word_at<def, kArgs...>(at), 0xF, false, tw_at, dst);             \
    }
// The first template argument is the data format, which may be an integer's; BI, TI and U0I, U1I by their operands.
#define TW_FORMAT(kArgs) (tw::kInitBlind | tw::word_at<0, kArgs...>(0))
#define TW_U0I(call, init)                                                                   \
    template <auto... kArgs>                                                                 \
    inline void call(uint32_t dst, TW_AT) {                                                  \
        tw::vector_call(#call, #init, TW_FORMAT(kArgs), 0xF, false, tw_at, dst);             \
    }
#define TW_U1I(call, init)                                                                   \
    template <auto... kArgs>                                                                 \
    inline void call(uint32_t dst, uint32_t p, TW_AT) {                                      \
        tw::vector_call(#call, #init, TW_FORMAT(kArgs), 0xF, false, tw_at, dst, p);          \
    }
#define TW_BI(call, init)                                                                    \
    template <auto... kArgs>                                                                 \
    inline void call(uint32_t a, uint32_t b, uint32_t out, TW_AT) {                          \
        tw::vector_call(#call, #init, TW_FORMAT(kArgs), 0xF, false, tw_at, a, b, out);       \
    }
#define TW_TI(call, init)                                                                    \
    template <auto... kArgs>                                                                 \
    inline void call(uint32_t a, uint32_t b, uint32_t c, uint32_t out, TW_AT) {              \
        tw::vector_call(#call, #init, TW_FORMAT(kArgs), 0xF, false, tw_at, a, b, c, out);    \
    }
#define TW_INIT_T(init, at, def)                                                       \
    template <auto... kArgs>                                                           \
    inline void init(TW_AT) {                                                          \
        tw::vector_init(#init, tw::word_at<def, kArgs...>(at), false, tw_at);          \
    }
// On the pack thread: the function without its suffix does the arithmetic.
#define TW_P0(call, base, init)                                            \
    template <auto...>                                                     \
    inline void call(uint32_t dst, TW_AT) {                                \
        tw::vector_call(#base, #init, 0, 0xF, true, tw_at, dst);           \
    }
#define TW_P1(call, base, init)                                            \
    template <auto...>                                                     \
    inline void call(uint32_t dst, uint32_t p, TW_AT) {                    \
        tw::vector_call(#base, #init, 0, 0xF, true, tw_at, dst, p);        \
    }
#define TW_P2(call, base, init)                                            \
    template <auto...>                                                     \
    inline void call(uint32_t dst, uint32_t p, uint32_t q, TW_AT) {        \
        tw::vector_call(#base, #init, 0, 0xF, true, tw_at, dst, p, q);     \
    }
#define TW_P3(call, base, init)                                                 \
    template <auto...>                                                          \
    inline void call(uint32_t dst, uint32_t p, uint32_t q, uint32_t r, TW_AT) { \
        tw::vector_call(#base, #init, 0, 0xF, true, tw_at, dst, p, q, r);       \
    }
#define TW_INIT_P(init)                                                    \
    template <auto...>                                                     \
    inline void init(TW_AT) {                                              \
        tw::vector_init(#init, 0, true, tw_at);                            \
    }
// Two tiles to a third; BV has a VectorMode, BT a template argument that only the call knows.
#define TW_B(call, init)                                                                           \
    template <auto...>                                                                             \
    inline void call(uint32_t a, uint32_t b, uint32_t out, TW_AT) {                                \
        tw::vector_call(#call, #init, 0, 0xF, false, tw_at, a, b, out);                            \
    }
#define TW_BV(call, init)                                                                                          \
    template <auto...>                                                                                             \
    inline void call(uint32_t a, uint32_t b, uint32_t out, tw::FaceMode mode = VectorMode::RC, TW_AT) {              \
        tw::vector_call(#call, #init, 0, tw::faces_of(mode), false, tw_at, a, b, out);                             \
    }
#define TW_BR(call, init)                                                                                          \
    template <DstRoundingMode kRounding = DstRoundingMode::Default, auto...>                                       \
    inline void call(uint32_t a, uint32_t b, uint32_t out, TW_AT) {                                                \
        tw::vector_call(#call, #init, static_cast<uint32_t>(kRounding), 0xF, false, tw_at, a, b, out);             \
    }
// Two tiles, the result in the first.
#define TW_B2(call, init)                                                                          \
    template <auto...>                                                                             \
    inline void call(uint32_t a, uint32_t b, TW_AT) {                                              \
        tw::vector_call(#call, #init, 0, 0xF, false, tw_at, a, b);                                 \
    }
#define TW_T(call, init)                                                                           \
    template <auto...>                                                                             \
    inline void call(uint32_t a, uint32_t b, uint32_t c, uint32_t out, TW_AT) {                    \
        tw::vector_call(#call, #init, 0, 0xF, false, tw_at, a, b, c, out);                         \
    }
#define TW_T1(call, init)                                                                          \
    template <auto...>                                                                             \
    inline void call(uint32_t a, uint32_t b, uint32_t c, uint32_t out, uint32_t p, TW_AT) {        \
        tw::vector_call(#call, #init, 0, 0xF, false, tw_at, a, b, c, out, p);                      \
    }
// max_tile of the oldest release: works on a slot and the one after it, result in the first.
#define TW_OLD_POWER                                                                                          \
    inline void power_tile_init(TW_AT) { tw::vector_init("power_iterative_tile_init", 0, false, tw_at); }     \
    inline void power_tile(uint32_t dst, uint32_t p, TW_AT) {                                                 \
        tw::vector_call("power_iterative_tile", "power_iterative_tile_init", 0, 0xF, false, tw_at, dst, p);   \
    }
#define TW_OLD_MAX                                                                                                             \
    inline void max_tile(uint32_t a, uint32_t b, int mode = static_cast<int>(VectorMode::RC), TW_AT) {                         \
        if (b != a + 1) tw::complain("adjacent-slots", "max_tile works on a DST slot and the one after it", tw_at);            \
        tw::vector_call("max_tile", "max_tile_init", 0, tw::faces_of(static_cast<VectorMode>(mode)), false, tw_at, a, a + 1);  \
    }
