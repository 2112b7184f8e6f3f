// Functions of one tile with constants: scalars arrive as fp32 bits.
#include <algorithm>

#include "sfpu_rows.h"

namespace tw {

namespace {

using Call = const VectorCall&;

u32 negated(u32 bits) { return bits ^ kSign; }

u32 power_of(u32 x, u32 exponent) {
    u32 result = x;
    for (u32 i = 1; i < exponent; ++i) result = vector_multiply(result, x);
    return exponent == 0 ? kOne : result;
}

u32 magnitude(u32 x) { return x <= (kSign | kInfinity) ? x & ~kSign : x; }

u32 nearest_whole(u32 x) {
    if (static_cast<int>(exponent_of(x)) - 127 >= 23) return x;
    const u32 whole = vector_add(vector_add(x & ~kSign, as_bits(8388608.0f)), as_bits(-8388608.0f));
    return (whole & ~kSign) | (x & kSign);
}

// Scaled by a power of ten, to nearest even, scaled back; every step is a multiply-add.
u32 round_decimals(u32 x, Call call) {
    const int decimals = static_cast<int>(call.param(0));
    if (decimals == 0 && on_blackhole()) return nearest_whole(x);  // its compiler leaves out products with 1, which would lose -0
    const u32 up = as_bits(static_cast<float>(std::pow(10.0, decimals))), down = as_bits(static_cast<float>(std::pow(10.0, -decimals)));
    return vector_multiply(down, nearest_whole(vector_multiply(x, up)));
}

// |x| minus the truncated quotient times the divisor.
u32 quotient_rest(u32 x, u32 divisor, u32 inverse) {
    const u32 size = magnitude(x), ratio = vector_multiply(size, inverse);
    const int power = static_cast<int>(exponent_of(ratio)) - 127;
    u32 quotient = ratio;
    if (power < 0) {
        quotient = 0;
    } else if (power < 23) {
        quotient = ratio >> (23 - power) << (23 - power);
    }
    if (greater(quotient, ratio)) quotient = vector_subtract(quotient, kOne);
    return subtract_product(size, quotient, divisor);
}

// Ten rounds of taking the divisor off what is not below it.
u32 folded(u32 rest, u32 divisor) {
    for (int i = 0; i < 10; ++i) {
        const u32 next = vector_subtract(rest, divisor);
        if (!(next & kSign)) rest = next;
    }
    return vector_subtract(magnitude(rest), divisor) == 0 ? 0u : rest;
}

u32 fmod_of(u32 x, Call call) {
    const u32 divisor = magnitude(call.init_param(0));
    if (divisor == 0) return 0x7FC00000u;
    const u32 rest = quotient_rest(x, divisor, magnitude(call.init_param(1)));
    return folded((rest & ~kSign) | (x & kSign), divisor);
}

u32 remainder_of(u32 x, Call call) {
    const u32 given = call.init_param(0), divisor = magnitude(given);
    if (divisor == 0) return 0x7FC00000u;
    u32 rest = quotient_rest(x, divisor, magnitude(call.init_param(1)));
    if ((x & kSign) && rest != 0) rest = vector_subtract(divisor, rest);
    if ((given & kSign) && rest != 0) rest = vector_add(rest, given);
    return folded((rest & ~kSign) | (given & kSign), divisor);
}

// Towards zero; what does not fit, and NaN, is 0x80000000.
u32 to_i32(u32 x) {
    const double value = std::trunc(real(x));
    return value < 2147483648.0 && value > -2147483648.0 ? static_cast<u32>(static_cast<i32>(value)) : 0x80000000u;
}

// Clamped to what `limit` allows; NaN by its sign.
u32 clamped(u32 x, double value, double limit) {
    if (is_nan(x)) return x & kSign ? 0u : static_cast<u32>(limit);
    return value <= 0.0 ? 0u : value >= limit ? static_cast<u32>(limit) : static_cast<u32>(value);
}

bool is_float(u32 format) { return format == 0 || format == 5 || format == 6 || format == 7; }

// Towards zero, modulo 256; what is far too large, infinity and NaN give 0.
u32 to_u8(u32 x) {
    const double value = std::trunc(real(x));
    return value < 2147483648.0 && value > -2147483648.0 ? static_cast<u32>(static_cast<i32>(value)) & 0xFFu : 0u;
}

u32 typecast(u32 x, Call call) {
    const u32 from = call.variant & 0xFF, to = call.variant >> 8 & 0xFF;
    constexpr u32 f32 = 0, i32_ = 8, u32_ = 24, u8_ = 30;
    if (is_float(from) && is_float(to)) return to == f32 ? x : round_to_bf16_even(x);
    if (to == u8_) return is_float(from) ? to_u8(x) : x & 0xFFu;
    if (is_float(from) && to == i32_) return to_i32(x);
    if (is_float(from) && to == u32_) return clamped(x, std::trunc(real(x)), 4294967295.0);
    if (is_float(from)) return clamped(x, std::floor(real(x) + 0.5), 65535.0);  // the rounding instruction, ties away
    if (is_float(to)) {
        const u32 bits = narrowed(from == i32_ ? static_cast<double>(static_cast<i32>(x)) : static_cast<double>(x));
        return to == f32 ? bits : round_to_bf16_away(bits);
    }
    if (to == i32_ || to == u32_) return x;
    return from == i32_ && static_cast<i32>(x) < 0 ? 0u : std::min(x, 0xFFFFu);
}

#define REAL(expression) [](u32 bits, Call call) { const double x = real(bits), p = call.scalar(0), q = call.scalar(1); (void)p; (void)q; return narrowed(expression); }
#define BITS(expression) [](u32 x, Call call) -> u32 { (void)x; const u32 p = call.param(0), q = call.param(1); (void)p; (void)q; return expression; }
#define ROW(name, store, function) {#name "_tile", 1, 0, Store::store, true, function, nullptr, nullptr, nullptr}
#define FORMULA(name, store, expression) {#name "_tile", 1, 0, Store::store, false, REAL(expression), nullptr, nullptr, nullptr}

const VectorOp kScalarRows[] = {
    ROW(add_unary, Truncate, BITS(vector_add(x, p))),
    ROW(sub_unary, Truncate, BITS(vector_subtract(x, p))),
    ROW(mul_unary, Truncate, BITS(vector_multiply(x, p))),
    ROW(div_unary, Truncate, BITS(vector_multiply(x, p))),
    ROW(rsub_unary, NearestEven, BITS(vector_subtract(p, x))),
    ROW(rsub, NearestEven, BITS(vector_subtract(p, x))),
    FORMULA(rdiv, Truncate, p / x),
    FORMULA(power, NearestEven, std::pow(x, p)),
    ROW(power_iterative, Truncate, BITS(power_of(x, p))),
    FORMULA(rpow, NearestEven, std::pow(p, x)),
    FORMULA(log_with_base, NearestEven, std::log(x) * p),
    FORMULA(elu, NearestEven, x > 0.0 ? x : p * std::expm1(x)),
    FORMULA(celu, NearestEven, x > 0.0 ? x : p * std::expm1(x * q)),
    FORMULA(selu, NearestEven, x > 0.0 ? p * x : p * q * std::expm1(x)),
    ROW(prelu, Truncate, BITS(x & kSign ? vector_multiply(x, p) : x)),
    ROW(leaky_relu, Truncate, BITS(x & kSign ? vector_multiply(x, p) : x)),
    ROW(relu_max, Exact, BITS(smaller(x, p) & kSign ? 0u : smaller(x, p))),
    ROW(relu_min, Exact, BITS(larger(x, p))),
    ROW(clamp, Exact, BITS(smaller(larger(x, p), q))),
    ROW(hardtanh, Exact, BITS(smaller(larger(x, p), q))),
    ROW(threshold, Exact, BITS(ordered(x) <= ordered(p) ? q : x)),
    ROW(heaviside, Exact, BITS(x & kSign ? 0u : x == 0 ? p : kOne)),
    ROW(hardshrink, Exact, BITS(ordered(x) <= ordered(p) && ordered(x) >= ordered(negated(p)) ? 0u : x)),
    ROW(softshrink, Truncate, BITS(less(x, negated(p)) ? vector_add(x, p) : greater(x, p) ? vector_subtract(x, p) : 0u)),
    FORMULA(softplus, NearestEven, x * p > as_float(call.param(2)) ? x : std::log1p(std::exp(x * p)) * q),
    FORMULA(xielu, NearestEven, x > 0.0 ? p * x * x + 0.5 * x : q * (std::expm1(std::fmin(x, -1e-6)) - x) + 0.5 * x),
    ROW(round, Truncate, round_decimals),
    ROW(fmod, Truncate, fmod_of),
    ROW(remainder, Truncate, remainder_of),
    ROW(unary_max, Exact, BITS(larger(x, p))),
    ROW(unary_min, Exact, BITS(smaller(x, p))),
    ROW(unary_eq, Exact, BITS(truth(x == p))),
    ROW(unary_ne, Exact, BITS(truth(x != p))),
    ROW(unary_gt, Exact, BITS(truth(ordered(x) > ordered(p)))),
    ROW(unary_ge, Exact, BITS(truth(ordered(x) >= ordered(p)))),
    ROW(unary_lt, Exact, BITS(truth(ordered(x) < ordered(p)))),
    ROW(unary_le, Exact, BITS(truth(ordered(x) <= ordered(p)))),
    {"typecast_tile", 1, 0, Store::Raw, true, typecast, nullptr, nullptr, nullptr},
    {"fill_tile", 0, 1, Store::Truncate, true, BITS(p), nullptr, nullptr, nullptr},
    {"fill_tile_bitcast", 0, 1, Store::Truncate, true, BITS(p), nullptr, nullptr, nullptr},
    {"fill_tile_int", 0, 1, Store::Integer, true, [](u32, Call call) { return call.param(0); }, nullptr, nullptr, nullptr},
    {"copy_dest_values", 1, 1, Store::Raw, true, BITS(is_integer_call(call) ? x : stored(x, Store::Exact, call.wide)), nullptr, nullptr, nullptr},
};

}  // namespace

RowSpan scalar_rows() { return {kScalarRows, sizeof kScalarRows / sizeof *kScalarRows}; }

}  // namespace tw

#undef REAL
#undef BITS
#undef ROW
#undef FORMULA
