// Functions of one tile without parameters.
#include "sfpu_rows.h"

namespace tw {

namespace {

using Call = const VectorCall&;

double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }
double gelu(double x) { return 0.5 * x * (1.0 + std::erf(x / std::sqrt(2.0))); }
double gelu_by_tanh(double x) { return 0.5 * x * (1.0 + std::tanh(std::sqrt(2.0 / M_PI) * (x + 0.044715 * x * x * x))); }

double gelu_slope(double x) {
    return 0.5 * (1.0 + std::erf(x / std::sqrt(2.0))) + x * std::exp(-0.5 * x * x) / std::sqrt(2.0 * M_PI);
}

double softplus_of(double x) { return x > 20.0 ? x : std::log1p(std::exp(x)); }

double digamma(double x) {
    double result = 0.0;
    if (x <= 0.0) {
        if (std::floor(x) == x) return std::nan("");
        return digamma(1.0 - x) - M_PI / std::tan(M_PI * x);
    }
    while (x < 10.0) result -= 1.0 / x++;
    const double inverse = 1.0 / (x * x);
    return result + std::log(x) - 0.5 / x -
           inverse * (1.0 / 12 - inverse * (1.0 / 120 - inverse * (1.0 / 252 - inverse * (1.0 / 240 - inverse / 132))));
}

double inverse_erf(double x) {
    if (std::fabs(x) >= 1.0) return std::fabs(x) == 1.0 ? std::copysign(INFINITY, x) : std::nan("");
    const double w = std::log1p(-x * x), k = 2.0 / (M_PI * 0.147) + w / 2.0;
    double y = std::copysign(std::sqrt(std::sqrt(k * k - w / 0.147) - k), x);
    for (int i = 0; i < 4; ++i) y -= (std::erf(y) - x) / (2.0 / std::sqrt(M_PI) * std::exp(-y * y));
    return y;
}

double bessel(double x, int order) {
    double term = order ? x / 2.0 : 1.0, sum = term;
    for (int k = 1; k < 500 && std::fabs(term) > 1e-18 * std::fabs(sum); ++k) {
        term *= x * x / 4.0 / (static_cast<double>(k) * (k + order));
        sum += term;
    }
    return sum;
}

u32 rounded(u32 x, int mode) {
    const float value = as_float(x);
    if (is_nan(x) || is_infinite(x)) return x;
    switch (mode) {
        case 0: return as_bits(std::floor(value));
        case 1: return as_bits(std::ceil(value));
        default: return as_bits(std::trunc(value));
    }
}

u32 hard_sigmoid(u32 x, Call) {
    u32 line = multiply_add(x, as_bits(1.0f / 6.0f), as_bits(0.5f));
    if (line & kSign) line = 0;
    return greater(line, kOne) ? kOne : line;
}

u32 sign_of(u32 x, Call) { return x & kSign ? kSign | kOne : x ? kOne : 0u; }

#define REAL(expression) [](u32 bits, Call) { const double x = real(bits); (void)x; return narrowed(expression); }
#define BITS(expression) [](u32 x, Call) -> u32 { return expression; }
#define ROW(name, store, function) {#name "_tile", 1, 0, Store::store, true, function, nullptr, nullptr, nullptr}
#define FORMULA(name, store, expression) {#name "_tile", 1, 0, Store::store, false, REAL(expression), nullptr, nullptr, nullptr}

const VectorOp kUnaryRows[] = {
    FORMULA(exp, NearestEven, std::exp(x)),
    FORMULA(exp2, NearestEven, std::exp2(x)),
    FORMULA(expm1, NearestEven, std::expm1(x)),
    FORMULA(log, NearestEven, std::log(x)),
    FORMULA(log1p, NearestEven, std::log1p(x)),
    FORMULA(sqrt, NearestEven, std::sqrt(x)),
    FORMULA(rsqrt, NearestEven, 1.0 / std::sqrt(x)),
    FORMULA(recip, NearestEven, 1.0 / x),
    FORMULA(cbrt, NearestEven, std::cbrt(x)),
    FORMULA(sigmoid, NearestEven, sigmoid(x)),
    FORMULA(silu, NearestEven, x * sigmoid(x)),
    FORMULA(tanh, NearestEven, std::tanh(x)),
    FORMULA(gelu, NearestEven, gelu(x)),
    FORMULA(gelu_tanh, NearestEven, gelu_by_tanh(x)),
    FORMULA(gelu_derivative, NearestEven, gelu_slope(x)),
    FORMULA(tanh_derivative, NearestEven, 1.0 - std::tanh(x) * std::tanh(x)),
    FORMULA(tanhshrink, NearestEven, x - std::tanh(x)),
    FORMULA(mish, NearestEven, x * std::tanh(softplus_of(x))),
    FORMULA(erf, Truncate, std::erf(x)),
    FORMULA(erfc, Truncate, std::erfc(x)),
    FORMULA(erfinv, Truncate, inverse_erf(x)),
    FORMULA(digamma, Truncate, digamma(x)),
    FORMULA(lgamma_stirling, NearestEven, std::lgamma(x)),
    FORMULA(i0, Truncate, bessel(x, 0)),
    FORMULA(i1, NearestEven, bessel(x, 1)),
    FORMULA(sin, NearestEven, std::sin(x)),
    FORMULA(cos, NearestEven, std::cos(x)),
    FORMULA(tan, NearestEven, std::tan(x)),
    FORMULA(asin, NearestEven, std::asin(x)),
    FORMULA(acos, NearestEven, std::acos(x)),
    FORMULA(atan, NearestEven, std::atan(x)),
    FORMULA(sinh, NearestEven, std::sinh(x)),
    FORMULA(cosh, NearestEven, std::cosh(x)),
    FORMULA(asinh, NearestEven, std::asinh(x)),
    FORMULA(acosh, NearestEven, std::acosh(x)),
    FORMULA(atanh, NearestEven, std::atanh(x)),
    FORMULA(softsign, Truncate, x / (1.0 + std::fabs(x))),
    ROW(hardsigmoid, Truncate, hard_sigmoid),
    FORMULA(hardmish, Truncate, x * std::fmin(std::fmax(x + 2.8, 0.0), 5.0) * 0.2),
    ROW(square, Truncate, BITS(vector_multiply(x, x))),
    ROW(abs, Exact, BITS(x <= (kSign | kInfinity) ? x & ~kSign : x)),
    ROW(negative, Exact, BITS(x ^ kSign)),
    ROW(identity, Exact, BITS(x)),
    ROW(relu, Exact, BITS(x & kSign ? 0u : x)),
    ROW(sign, Exact, sign_of),
    ROW(signbit, Exact, BITS(truth(x & kSign))),
    ROW(floor, Exact, BITS(rounded(x, 0))),
    ROW(ceil, Exact, BITS(rounded(x, 1))),
    ROW(trunc, Exact, BITS(rounded(x, 2))),
    ROW(frac, Exact, BITS(vector_subtract(x, rounded(x, 2)))),
    ROW(isinf, Exact, BITS(truth(is_infinite(x)))),
    ROW(isposinf, Exact, BITS(truth(x == kInfinity))),
    ROW(isneginf, Exact, BITS(truth(x == (kSign | kInfinity)))),
    ROW(isnan, Exact, BITS(truth(is_nan(x)))),
    ROW(isfinite, Exact, BITS(truth(exponent_of(x) != 255))),
    ROW(logical_not, Raw, ([](u32 x, Call call) -> u32 { return is_integer_call(call) ? x == 0 : truth(x == 0); })),
    ROW(eqz, Exact, BITS(truth(!(x & ~kSign)))),
    ROW(nez, Exact, BITS(truth(x & ~kSign))),
    ROW(gtz, Exact, BITS(truth(!is_nan(x) && !(x & kSign) && x))),
    ROW(gez, Exact, BITS(truth(!is_nan(x) && (!(x & kSign) || x == kSign)))),
    ROW(ltz, Exact, BITS(truth(!is_nan(x) && x > kSign))),
    ROW(lez, Exact, BITS(truth(!is_nan(x) && ((x & kSign) || x == 0)))),
};

}  // namespace

RowSpan unary_rows() { return {kUnaryRows, sizeof kUnaryRows / sizeof *kUnaryRows}; }

}  // namespace tw

#undef REAL
#undef BITS
#undef ROW
#undef FORMULA
