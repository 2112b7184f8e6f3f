// Bit patterns of the number formats, and the two ways the hardware breaks ties.
#pragma once
#include <cstdint>
#include <cstring>

namespace tw {

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using i32 = std::int32_t;
using i64 = std::int64_t;

constexpr u32 kSign = 0x80000000u;
constexpr u32 kInfinity = 0x7F800000u;
constexpr u32 kFraction = 0x007FFFFFu;

inline float as_float(u32 bits) {
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

inline u32 as_bits(float value) {
    u32 bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
}

inline u32 exponent_of(u32 bits) { return (bits >> 23) & 0xFFu; }
inline bool is_nan(u32 bits) { return (bits & ~kSign) > kInfinity; }
inline bool is_infinite(u32 bits) { return (bits & ~kSign) == kInfinity; }
inline bool is_zero_or_denormal(u32 bits) { return exponent_of(bits) == 0; }
inline u32 flush_denormal(u32 bits) { return is_zero_or_denormal(bits) ? bits & kSign : bits; }

// Nearest, ties away from zero in magnitude.
inline i32 shift_half_away(i32 value, int count) {
    if (count <= 0) return value;
    if (count >= 31) return 0;
    const i64 half = i64{1} << (count - 1);
    return value < 0 ? -static_cast<i32>((-static_cast<i64>(value) + half) >> count)
                     : static_cast<i32>((static_cast<i64>(value) + half) >> count);
}

// Nearest, ties towards plus infinity.
inline i32 shift_half_up(i32 value, int count) {
    if (count <= 0) return value;
    if (count >= 31) return 0;
    return static_cast<i32>((static_cast<i64>(value) + (i64{1} << (count - 1))) >> count);
}

// The kernels' own rounding to bf16 (kept in the upper half), ties to even: integer arithmetic on the pattern, NaN or not.
inline u32 round_to_bf16_even(u32 bits) { return (bits + 0x7FFFu + ((bits >> 16) & 1u)) & 0xFFFF0000u; }

// The rounding instruction: ties away from zero, tiny to +0, NaN to infinity.
inline u32 round_to_bf16_away(u32 bits) {
    if (is_zero_or_denormal(bits)) return 0;
    if (exponent_of(bits) == 255) return bits & (kSign | kInfinity);
    return (bits + 0x8000u) & 0xFFFF0000u;
}

// Total order of sign-magnitude patterns: -NaN lowest, NaN highest, -0 below +0.
inline i32 ordered(u32 bits) { return bits & kSign ? ~static_cast<i32>(bits & ~kSign) : static_cast<i32>(bits); }
inline u32 larger(u32 a, u32 b) { return ordered(a) >= ordered(b) ? a : b; }
inline u32 smaller(u32 a, u32 b) { return ordered(a) >= ordered(b) ? b : a; }

}  // namespace tw
