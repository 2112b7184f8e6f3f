// Functions of two or three tiles in DST.
#include "sfpu_rows.h"

namespace tw {

namespace {

using Call = const VectorCall&;

// Template argument DstRoundingMode::NearestEven arrives as variant 1.
u32 rounded_if_asked(u32 bits, Call call) { return call.variant == 1 && !call.wide ? round_to_bf16_even(bits) : bits; }

u32 multiply(u32 a, u32 b, Call call) {
    if (!call.wide && (a == 0 || b == 0)) return 0;  // the 16-bit kernel returns 0 for 0 * infinity
    return vector_multiply(a, b);
}

u32 divide(u32 a, u32 b, Call) { return narrowed(real(a) / real(b)); }

// Float comparisons read denormals as zero.
float comparable(u32 bits) { return is_zero_or_denormal(bits) ? 0.0f : as_float(bits); }

// ttnn 0.78 leaves the data alone when the format argument says Float32 (0).
u32 masked(u32 a, u32 b, Call call) { return call.param_count && call.param(0) == 0 ? a : b == 0 ? 0u : a; }

u32 remainder_of(u32 a, u32 b, bool floored) {
    const double divisor = real(b);
    double rest = std::fmod(real(a), divisor);
    if (floored && rest != 0.0 && (rest < 0.0) != (divisor < 0.0)) rest += divisor;
    return narrowed(rest);
}

u32 is_close(u32 a, u32 b, Call call) {
    if (is_nan(a) || is_nan(b)) return truth(call.variant == 1 && is_nan(a) && is_nan(b));
    const double x = real(a), y = real(b);
    return truth(x == y || std::fabs(x - y) <= call.scalar(1) + call.scalar(0) * std::fabs(y));
}

double log_sum(double a, double b, double base) {
    const double top = std::fmax(a, b);
    if (std::isinf(top)) return top;
    return top + std::log(std::pow(base, a - top) + std::pow(base, b - top)) / std::log(base);
}

#define BINARY(name, store, expression) BINARY_ROW(name, store, true, expression)
#define FORMULA(name, store, expression) BINARY_ROW(name, store, false, expression)
#define BINARY_ROW(name, store, own, expression) \
    {name, 2, 1, Store::store, own, nullptr, [](u32 a, u32 b, Call call) -> u32 { (void)b; (void)call; return expression; }, nullptr, nullptr}
#define TERNARY(name, store, own, expression) \
    {name, 3, 1, Store::store, own, nullptr, nullptr, [](u32 a, u32 b, u32 c, Call call) -> u32 { (void)call; return expression; }, nullptr}

const VectorOp kBinaryRows[] = {
    BINARY("add_binary_tile", Truncate, rounded_if_asked(vector_add(a, b), call)),
    BINARY("sub_binary_tile", Truncate, rounded_if_asked(vector_subtract(a, b), call)),
    BINARY("rsub_binary_tile", Truncate, rounded_if_asked(vector_subtract(b, a), call)),
    BINARY("mul_binary_tile", NearestEven, multiply(a, b, call)),
    FORMULA("div_binary_tile", NearestEven, divide(a, b, call)),
    FORMULA("power_binary_tile", NearestEven, narrowed(std::pow(real(a), real(b)))),
    BINARY("binary_max_tile", Exact, ordered(a) >= ordered(b) ? a : b),
    BINARY("binary_min_tile", Exact, ordered(a) >= ordered(b) ? b : a),
    {"max_tile", 2, 0, Store::Exact, true, nullptr, [](u32 a, u32 b, Call) -> u32 { return ordered(a) >= ordered(b) ? a : b; }, nullptr, nullptr},
    BINARY("eq_binary_tile", Exact, truth(comparable(a) == comparable(b))),
    BINARY("ne_binary_tile", Exact, truth(comparable(a) != comparable(b))),
    BINARY("lt_binary_tile", Exact, truth(comparable(a) < comparable(b))),
    BINARY("gt_binary_tile", Exact, truth(comparable(a) > comparable(b))),
    BINARY("le_binary_tile", Exact, truth(comparable(a) <= comparable(b))),
    BINARY("ge_binary_tile", Exact, truth(comparable(a) >= comparable(b))),
    FORMULA("fmod_binary_tile", NearestEven, remainder_of(a, b, false)),
    FORMULA("remainder_binary_tile", NearestEven, remainder_of(a, b, true)),
    FORMULA("atan2_binary_tile", NearestEven, narrowed(std::atan2(real(a), real(b)))),
    FORMULA("xlogy_binary_tile", NearestEven, narrowed(real(a) == 0.0 ? 0.0 : real(a) * std::log(real(b)))),
    FORMULA("logaddexp_binary_tile", NearestEven, narrowed(log_sum(real(a), real(b), M_E))),
    FORMULA("logaddexp2_binary_tile", NearestEven, narrowed(log_sum(real(a), real(b), 2.0))),
    BINARY("nextafter_binary_tile", Exact, as_bits(std::nextafterf(as_float(a), as_float(b)))),
    FORMULA("isclose_binary_tile", Exact, is_close(a, b, call)),
    FORMULA("logsigmoid_tile", NearestEven, narrowed(-std::log1p(std::exp(-real(a))))),
    {"mask_tile", 2, 0, Store::Exact, true, nullptr, masked, nullptr, nullptr},
    {"mask_posinf_tile", 2, 0, Store::Exact, true, nullptr, [](u32 a, u32 b, Call) -> u32 { return b & ~kSign ? a : kInfinity; }, nullptr, nullptr},
    TERNARY("where_tile", Raw, true, a ? b : c),
    TERNARY("mac_tile", NearestAway, true, multiply_add(a, b, c)),
    TERNARY("addcmul_tile", NearestAway, true, multiply_add(vector_multiply(b, call.param(0)), c, a)),
    TERNARY("addcdiv_tile", NearestEven, false, narrowed(real(a) + static_cast<double>(call.scalar(0)) * real(b) / real(c))),
    TERNARY("lerp_tile", NearestEven, true, multiply_add(c, vector_subtract(b, a), a)),
    TERNARY("snake_beta_tile", NearestEven, false, narrowed(real(a) + std::pow(std::sin(real(a) * real(b)), 2.0) * real(c))),
};

}  // namespace

RowSpan binary_rows() { return {kBinaryRows, sizeof kBinaryRows / sizeof *kBinaryRows}; }

}  // namespace tw

#undef BINARY
#undef FORMULA
#undef BINARY_ROW
#undef TERNARY
