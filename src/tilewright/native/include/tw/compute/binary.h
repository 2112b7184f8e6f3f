// Elementwise ops of two buffers, or of a buffer and DST.
#pragma once
#include "base.h"

namespace tw {

constexpr Kind kind_of(ckernel::EltwiseBinaryType type) {
    return type == ckernel::ELWADD ? Kind::Add : type == ckernel::ELWSUB ? Kind::Sub : Kind::Mul;
}

inline Mode binary_mode(Kind kind, u32 bcast = 0, u32 reuse = 0, bool accumulate = false, bool stated = false) {
    Mode mode;
    mode.kind = kind;
    mode.bcast = static_cast<std::uint8_t>(bcast);
    mode.reuse = static_cast<std::uint8_t>(reuse);
    mode.accumulate = accumulate;
    mode.stated = stated;
    return mode;
}

// Tells `mul_init(a, b)` from `mul_init(a, b, true)`: only the second says that it means to add.
struct Accumulate {
    bool on, stated;
    constexpr Accumulate(bool value) : on(value), stated(true) {}
    constexpr Accumulate(bool value, int) : on(value), stated(false) {}
};

}  // namespace tw

namespace ckernel {

template <bool kFull, EltwiseBinaryType kType>
inline void binary_tiles_init(uint32_t a, uint32_t b, tw::Accumulate acc = {false, 0}, TW_AT) {
    tw::init("binary_tiles_init", tw::binary_mode(tw::kind_of(kType), 0, 0, acc.on, acc.stated), a, b, kFull ? tw::kBoth : tw::kMath, tw_at);
}

#define TW_BINARY(name, Name, acc_default)                                                                                     \
    template <auto...>                                                                                                         \
    inline void name##_tiles(uint32_t a, uint32_t b, uint32_t tile_a, uint32_t tile_b, uint32_t dst, TW_AT) {                  \
        tw::execute(#name "_tiles", tw::binary_mode(tw::Kind::Name), a, b, tile_a, tile_b, dst, 0, tw_at);                     \
    }                                                                                                                          \
    TW_BINARY_NEW(name, Name, acc_default)                                                                                     \
    TW_BINARY_OLD(name, Name, acc_default)

#if TW_METAL >= 77
#define TW_BINARY_NEW(name, Name, acc_default)                                                                                 \
    inline void name##_init(uint32_t a, uint32_t b, tw::Accumulate acc = {acc_default, 0}, TW_AT) {                            \
        tw::init(#name "_init", tw::binary_mode(tw::Kind::Name, 0, 0, acc.on, acc.stated), a, b, tw::kBoth, tw_at);            \
    }                                                                                                                          \
    template <auto...>                                                                                                         \
    inline void name##_block(uint32_t a, uint32_t b, uint32_t tile_a, uint32_t tile_b, uint32_t dst, uint32_t tiles, TW_AT) {  \
        for (uint32_t i = 0; i < tiles; ++i) name##_tiles(a, b, tile_a + i, tile_b + i, dst + i, tw_at);                       \
    }                                                                                                                          \
    template <EltwiseBinaryReuseDestType kReuse>                                                                               \
    inline void name##_reuse_dest_init(uint32_t cb, TW_AT) {                                                                   \
        tw::init(#name "_reuse_dest_init", tw::binary_mode(tw::Kind::Name, 0, static_cast<uint32_t>(kReuse)), cb, cb, tw::kBoth, tw_at); \
    }                                                                                                                          \
    template <EltwiseBinaryReuseDestType kReuse, bool = DST_ACCUM_MODE>                                                        \
    inline void name##_reuse_dest_tiles(uint32_t cb, uint32_t tile, uint32_t dst, TW_AT) {                                     \
        tw::execute(#name "_reuse_dest_tiles", tw::binary_mode(tw::Kind::Name, 0, static_cast<uint32_t>(kReuse)), cb, cb, tile, tile, dst, 0, tw_at); \
    }
#define TW_BINARY_OLD(name, Name, acc_default)
#else
#define TW_BINARY_NEW(name, Name, acc_default)
#define TW_BINARY_OLD(name, Name, acc_default)                                                                                 \
    inline void name##_tiles_init(uint32_t a, uint32_t b, tw::Accumulate acc = {acc_default, 0}, TW_AT) {                      \
        tw::init(#name "_tiles_init", tw::binary_mode(tw::Kind::Name, 0, 0, acc.on, acc.stated), a, b, tw::kBoth, tw_at);      \
    }
#endif

TW_BINARY(add, Add, false)
TW_BINARY(sub, Sub, false)
TW_BINARY(mul, Mul, true)

#if TW_METAL < 77
inline void binary_op_init_common(uint32_t a, uint32_t b, uint32_t out, TW_AT) { tw::hw_startup(a, b, out, false, false, tw_at); }

template <EltwiseBinaryType kType, EltwiseBinaryReuseDestType kReuse>
inline void binary_dest_reuse_tiles_init(uint32_t cb, TW_AT) {
    tw::init("binary_dest_reuse_tiles_init", tw::binary_mode(tw::kind_of(kType), 0, static_cast<uint32_t>(kReuse)), cb, cb, tw::kBoth, tw_at);
}
template <EltwiseBinaryType kType, EltwiseBinaryReuseDestType kReuse, auto...>
inline void binary_dest_reuse_tiles(uint32_t cb, uint32_t tile, uint32_t dst, TW_AT) {
    tw::execute("binary_dest_reuse_tiles", tw::binary_mode(tw::kind_of(kType), 0, static_cast<uint32_t>(kReuse)), cb, cb, tile, tile, dst, 0,
                tw_at);
}
#else
template <EltwiseBinaryType kType, EltwiseBinaryReuseDestType kReuse>
inline void binary_reuse_dest_init(uint32_t cb, TW_AT) {
    tw::init("binary_reuse_dest_init", tw::binary_mode(tw::kind_of(kType), 0, static_cast<uint32_t>(kReuse)), cb, cb, tw::kBoth, tw_at);
}
template <EltwiseBinaryType kType, EltwiseBinaryReuseDestType kReuse, auto...>
inline void binary_reuse_dest_tiles(uint32_t cb, uint32_t tile, uint32_t dst, TW_AT) {
    tw::execute("binary_reuse_dest_tiles", tw::binary_mode(tw::kind_of(kType), 0, static_cast<uint32_t>(kReuse)), cb, cb, tile, tile, dst, 0,
                tw_at);
}
#endif

}  // namespace ckernel
