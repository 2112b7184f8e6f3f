// Functions of one tile with constants: scalars arrive as fp32 bits.
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

u32 round_decimals(u32 x, Call call) {
    const int decimals = static_cast<int>(call.param(0));
    const double scale = std::pow(10.0, decimals);
    return narrowed(std::nearbyint(real(x) * scale) / scale);
}

u32 modulo(u32 bits, double divisor, bool floored) {
    const double x = real(bits);
    double rest = std::fmod(x, divisor);
    if (floored && rest != 0.0 && (rest < 0.0) != (divisor < 0.0)) rest += divisor;
    return narrowed(rest);
}

u32 typecast(u32 x, Call call) {
    const u32 from = call.variant & 0xFF, to = call.variant >> 8 & 0xFF;
    constexpr u32 f32 = 0, bf16 = 5, bfp8 = 6, i32_ = 8, u16_ = 9, u32_ = 24;
    const bool from_float = from == f32 || from == bf16 || from == bfp8;
    if (from_float && (to == f32)) return x;
    if (from_float && (to == bf16 || to == bfp8)) return round_to_bf16_even(x);
    if (from_float) {
        const double value = std::trunc(real(x));
        if (to == i32_) return value >= 2147483648.0 ? 0x80000000u : value <= -2147483648.0 ? 0x80000000u : static_cast<u32>(static_cast<i32>(value));
        if (to == u32_) return value <= 0.0 ? 0u : value >= 4294967295.0 ? 0xFFFFFFFFu : static_cast<u32>(value);
        return value <= 0.0 ? 0u : value >= 65535.0 ? 0xFFFFu : static_cast<u32>(value);
    }
    double value = x;
    if (from == i32_) value = static_cast<double>(static_cast<i32>(x));
    if (from == u16_ && !call.wide) value = x >> 16;
    const u32 bits = narrowed(value);
    if (to == f32) return bits;
    if (to == bf16 || to == bfp8) return round_to_bf16_even(bits);
    return x;
}

u32 larger(u32 a, u32 b) { return ordered(a) >= ordered(b) ? a : b; }
u32 smaller(u32 a, u32 b) { return ordered(a) >= ordered(b) ? b : a; }

#define REAL(expression) [](u32 bits, Call call) { const double x = real(bits), p = call.scalar(0), q = call.scalar(1); (void)p; (void)q; return narrowed(expression); }
#define BITS(expression) [](u32 x, Call call) -> u32 { (void)x; const u32 p = call.param(0), q = call.param(1); (void)p; (void)q; return expression; }
#define ROW(name, store, function) {#name "_tile", 1, 0, Store::store, #name, function, nullptr, nullptr, nullptr}

const VectorOp kRows[] = {
    ROW(add_unary, Truncate, BITS(vector_add(x, p))),
    ROW(sub_unary, Truncate, BITS(vector_subtract(x, p))),
    ROW(mul_unary, Truncate, BITS(vector_multiply(x, p))),
    ROW(div_unary, Truncate, BITS(vector_multiply(x, p))),
    ROW(rsub_unary, NearestEven, BITS(vector_subtract(p, x))),
    ROW(rsub, NearestEven, BITS(vector_subtract(p, x))),
    ROW(rdiv, Truncate, REAL(p / x)),
    ROW(power, NearestEven, REAL(std::pow(x, p))),
    ROW(power_iterative, Truncate, BITS(power_of(x, p))),
    ROW(rpow, NearestEven, REAL(std::pow(p, x))),
    ROW(log_with_base, NearestEven, REAL(std::log(x) * p)),
    ROW(elu, NearestEven, REAL(x > 0.0 ? x : p * std::expm1(x))),
    ROW(celu, NearestEven, REAL(x > 0.0 ? x : p * std::expm1(x * q))),
    ROW(selu, NearestEven, REAL(x > 0.0 ? p * x : p * q * std::expm1(x))),
    ROW(prelu, Truncate, BITS(x & kSign ? vector_multiply(x, p) : x)),
    ROW(leaky_relu, Truncate, BITS(x & kSign ? vector_multiply(x, p) : x)),
    ROW(relu_max, Exact, BITS(smaller(x, p) & kSign ? 0u : smaller(x, p))),
    ROW(relu_min, Exact, BITS(larger(x, p))),
    ROW(clamp, Exact, BITS(smaller(larger(x, p), q))),
    ROW(hardtanh, Exact, BITS(smaller(larger(x, p), q))),
    ROW(threshold, Exact, BITS(ordered(x) <= ordered(p) ? q : x)),
    ROW(heaviside, Exact, BITS(x & kSign ? 0u : x == 0 ? p : kOne)),
    ROW(hardshrink, Exact, BITS(ordered(x) <= ordered(p) && ordered(x) >= ordered(negated(p)) ? 0u : x)),
    ROW(softshrink, Truncate, BITS(less(x, negated(p)) ? vector_add(x, p) : less(p, x) ? vector_subtract(x, p) : 0u)),
    ROW(softplus, NearestEven, REAL(x * p > as_float(call.param(2)) ? x : std::log1p(std::exp(x * p)) * q)),
    ROW(xielu, NearestEven, REAL(x > 0.0 ? p * x * x + 0.5 * x : q * (std::expm1(std::fmin(x, -1e-6)) - x) + 0.5 * x)),
    ROW(round, Truncate, round_decimals),
    ROW(fmod, Exact, [](u32 x, Call call) { return modulo(x, as_float(call.init_param(0)), false); }),
    ROW(remainder, Truncate, [](u32 x, Call call) { return modulo(x, as_float(call.init_param(0)), true); }),
    ROW(unary_max, Exact, BITS(larger(x, p))),
    ROW(unary_min, Exact, BITS(smaller(x, p))),
    ROW(unary_eq, Exact, BITS(truth(x == p))),
    ROW(unary_ne, Exact, BITS(truth(x != p))),
    ROW(unary_gt, Exact, BITS(truth(ordered(x) > ordered(p)))),
    ROW(unary_ge, Exact, BITS(truth(ordered(x) >= ordered(p)))),
    ROW(unary_lt, Exact, BITS(truth(ordered(x) < ordered(p)))),
    ROW(unary_le, Exact, BITS(truth(ordered(x) <= ordered(p)))),
    {"typecast_tile", 1, 0, Store::Raw, nullptr, typecast, nullptr, nullptr, nullptr},
    {"fill_tile", 0, 1, Store::Truncate, nullptr, BITS(p), nullptr, nullptr, nullptr},
    {"fill_tile_bitcast", 0, 1, Store::Truncate, nullptr, BITS(p), nullptr, nullptr, nullptr},
    {"fill_tile_int", 0, 1, Store::Raw, nullptr, [](u32, Call call) { return call.wide ? call.param(0) : call.param(0) << 16; }, nullptr, nullptr, nullptr},
    {"copy_dest_values", 1, 1, Store::Exact, nullptr, BITS(x), nullptr, nullptr, nullptr},
};

}  // namespace

RowSpan scalar_rows() { return {kRows, sizeof kRows / sizeof *kRows}; }

}  // namespace tw
