// The vector unit's own algorithms in 32-bit DST for the functions kernels use most; every step is a multiply-add.
#include <cmath>
#include <string_view>

#include "sfpu_rows.h"

namespace tw {

namespace {

u32 constant(double value) { return as_bits(static_cast<float>(value)); }

u32 with_exponent(u32 bits, i32 exponent) { return (bits & 0x807FFFFFu) | ((static_cast<u32>(exponent) & 0xFFu) << 23); }

template <std::size_t kCount>
u32 polynomial(u32 x, const double (&coefficients)[kCount]) {
    u32 result = constant(coefficients[kCount - 1]);
    for (std::size_t i = kCount - 1; i-- > 0;) result = multiply_add(result, x, constant(coefficients[i]));
    return result;
}

// Float to integer: the magnitude rounds half away and stops at 15 bits; NaN stops there too.
i32 to_integer(u32 bits) {
    constexpr double limit = 32767.0;
    double magnitude = real(bits & ~kSign);
    if (!(magnitude < limit)) magnitude = limit;
    const i32 whole = static_cast<i32>(std::floor(magnitude + 0.5));
    return bits & kSign ? -whole : whole;
}

// x = whole * ln 2 + rest; exp(rest) by a polynomial, then the exponent is moved.
u32 exponential(u32 x) {
    const i32 whole = to_integer(vector_multiply(x, constant(1.442695)));
    const u32 multiple = as_bits(static_cast<float>(whole));
    const u32 rest = multiply_add(multiple, constant(-1.42860677e-6), multiply_add(multiple, constant(-0.693145752), x));
    const u32 series = polynomial(rest, {1.0, 4.99999851e-1, 1.66664720e-1, 4.16695364e-2, 8.37312452e-3, 1.37805939e-3});
    const u32 result = multiply_add(series, rest, kOne);
    const i32 exponent = static_cast<i32>(exponent_of(result)) + whole;
    if (is_nan(x) || exponent >= 255) return vector_multiply(series, kInfinity);
    return exponent < 1 ? 0u : with_exponent(result, exponent);
}

// Blackhole's SFPARECIP: the upper seven fraction bits of 1/m for the upper seven of m.
constexpr u8 kReciprocals[128] = {
    127, 125, 123, 121, 119, 117, 116, 114, 112, 110, 109, 107, 105, 104, 102, 100, 99, 97, 96, 94, 93, 91, 90, 88, 87, 85, 84, 83, 81,
    80, 79, 77, 76, 75, 74, 72, 71, 70, 69, 68, 66, 65, 64, 63, 62, 61, 60, 59, 58, 57, 56, 55, 54, 53, 52, 51, 50, 49, 48, 47, 46, 45,
    44, 43, 42, 41, 40, 40, 39, 38, 37, 36, 35, 35, 34, 33, 32, 31, 31, 30, 29, 28, 28, 27, 26, 25, 25, 24, 23, 23, 22, 21, 21, 20, 19,
    19, 18, 17, 17, 16, 15, 15, 14, 14, 13, 12, 12, 11, 11, 10, 9, 9, 8, 8, 7, 7, 6, 5, 5, 4, 4, 3, 3, 2, 2, 1, 1, 0,
};

u32 approximate_reciprocal(u32 x) {
    const u32 size = x & ~kSign, sign = x & kSign;
    if (size < 0x00800000u) return sign | kInfinity;
    if (size >= 0x7E800000u) return sign;
    return sign | (253u - (size >> 23)) << 23 | static_cast<u32>(kReciprocals[size >> 16 & 127u]) << 16;
}

// Refined by the first terms of 1 / (1 - error); where the error is a NaN, the estimate is a zero or an infinity and stays.
u32 reciprocal_by_instruction(u32 x) {
    const u32 estimate = approximate_reciprocal(x);
    const u32 error = multiply_add(x ^ kSign, estimate, kOne);
    const u32 series = multiply_add(multiply_add(error, error, error), error, error);
    return multiply_add(ordered(series) > ordered(kOne) ? kOne : series, estimate, estimate);
}

// Newton's iteration on the significand, from a quadratic estimate.
u32 reciprocal(u32 x) {
    if (on_blackhole()) return reciprocal_by_instruction(x);
    const u32 negative = (x & kFraction) | 0xBF800000u;
    u32 result = multiply_add(constant(0.3232325017452239990234375), negative, constant(1.4545459747314453125));
    result = multiply_add(result, negative, constant(2.121212482452392578125));
    const u32 scale = vector_multiply(~x & 0xFF800000u, constant(0.5));
    for (int step = 0; step < 2; ++step) result = multiply_add(result, multiply_add(negative, result, kOne), result);
    return (vector_multiply(result, scale) & ~kSign) | (x & kSign);
}

u32 halved(u32 x) { return exponent_of(x) == 255 ? x : with_exponent(x, static_cast<i32>(exponent_of(x)) - 1); }

u32 root(u32 x, bool inverse) {
    if (x & kSign) return 0x7FC00000u;
    u32 result = 0x5F1110A0u - (x >> 1);
    u32 product = vector_multiply(x, result);
    const u32 square = vector_multiply(result ^ kSign, product);
    const u32 bracket = multiply_add(square, vector_add(constant(2.2533049), square), constant(2.2825186));
    result = vector_multiply(result, bracket);
    product = vector_multiply(x, result);
    const u32 error = multiply_add(result ^ kSign, product, kOne);
    if (inverse) {
        const u32 rest = kInfinity - x;
        return rest != 0 && x != 0 ? multiply_add(error, halved(result), result) : rest;
    }
    return x < kInfinity ? multiply_add(error, vector_multiply(constant(0.5), product), product) : result;
}

}  // namespace

u32 (*wide_function(const char* name, u32 variant))(u32) {
    const std::string_view wanted = name;
    if (wanted == "recip_tile" && variant == 1) return reciprocal;
    if (variant != 0) return nullptr;
    if (wanted == "exp_tile") return exponential;
    if (wanted == "sqrt_tile") return [](u32 x) { return root(x, false); };
    if (wanted == "rsqrt_tile") return [](u32 x) { return root(x, true); };
    return nullptr;
}

}  // namespace tw
