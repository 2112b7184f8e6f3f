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
    return less(kOne, line) ? kOne : line;
}

u32 sign_of(u32 x, Call) { return x & kSign ? kSign | kOne : x ? kOne : 0u; }

#define REAL(expression) [](u32 bits, Call) { const double x = real(bits); (void)x; return narrowed(expression); }
#define BITS(expression) [](u32 x, Call) -> u32 { return expression; }
#define APPROX(exact, fast) [](u32 bits, Call call) { const double x = real(bits); return narrowed(call.variant & 1 ? (fast) : (exact)); }
#define ROW(name, store, function) {#name "_tile", 1, 0, Store::store, #name, function, nullptr, nullptr, nullptr}

const VectorOp kRows[] = {
    ROW(exp, NearestEven, REAL(std::exp(x))),
    ROW(exp2, NearestEven, REAL(std::exp2(x))),
    ROW(expm1, NearestEven, REAL(std::expm1(x))),
    ROW(log, NearestEven, REAL(std::log(x))),
    ROW(log1p, NearestEven, REAL(std::log1p(x))),
    ROW(sqrt, NearestEven, REAL(std::sqrt(x))),
    ROW(rsqrt, NearestEven, REAL(1.0 / std::sqrt(x))),
    ROW(recip, NearestEven, REAL(1.0 / x)),
    ROW(cbrt, NearestEven, REAL(std::cbrt(x))),
    ROW(sigmoid, NearestEven, REAL(sigmoid(x))),
    ROW(silu, NearestEven, REAL(x * sigmoid(x))),
    ROW(tanh, NearestEven, REAL(std::tanh(x))),
    ROW(gelu, NearestEven, REAL(gelu(x))),
    ROW(gelu_tanh, NearestEven, REAL(gelu_by_tanh(x))),
    ROW(gelu_derivative, NearestEven, REAL(gelu_slope(x))),
    ROW(tanh_derivative, NearestEven, REAL(1.0 - std::tanh(x) * std::tanh(x))),
    ROW(tanhshrink, NearestEven, REAL(x - std::tanh(x))),
    ROW(mish, NearestEven, REAL(x * std::tanh(softplus_of(x)))),
    ROW(erf, Truncate, REAL(std::erf(x))),
    ROW(erfc, Truncate, REAL(std::erfc(x))),
    ROW(erfinv, Truncate, REAL(inverse_erf(x))),
    ROW(digamma, Truncate, REAL(digamma(x))),
    ROW(lgamma_stirling, NearestEven, REAL(std::lgamma(x))),
    ROW(i0, Truncate, REAL(bessel(x, 0))),
    ROW(i1, NearestEven, REAL(bessel(x, 1))),
    ROW(sin, NearestEven, REAL(std::sin(x))),
    ROW(cos, NearestEven, REAL(std::cos(x))),
    ROW(tan, NearestEven, REAL(std::tan(x))),
    ROW(asin, NearestEven, REAL(std::asin(x))),
    ROW(acos, NearestEven, REAL(std::acos(x))),
    ROW(atan, NearestEven, REAL(std::atan(x))),
    ROW(sinh, NearestEven, REAL(std::sinh(x))),
    ROW(cosh, NearestEven, REAL(std::cosh(x))),
    ROW(asinh, NearestEven, REAL(std::asinh(x))),
    ROW(acosh, NearestEven, REAL(std::acosh(x))),
    ROW(atanh, NearestEven, REAL(std::atanh(x))),
    ROW(softsign, Truncate, REAL(x / (1.0 + std::fabs(x)))),
    ROW(hardsigmoid, Truncate, hard_sigmoid),
    ROW(hardmish, Truncate, REAL(x * std::fmin(std::fmax(x + 2.8, 0.0), 5.0) * 0.2)),
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
    ROW(frac, Exact, BITS(vector_add(x, rounded(x, 2) ^ kSign))),
    ROW(isinf, Exact, BITS(truth(is_infinite(x)))),
    ROW(isposinf, Exact, BITS(truth(x == kInfinity))),
    ROW(isneginf, Exact, BITS(truth(x == (kSign | kInfinity)))),
    ROW(isnan, Exact, BITS(truth(is_nan(x)))),
    ROW(isfinite, Exact, BITS(truth(exponent_of(x) != 255))),
    ROW(logical_not, Exact, BITS(truth(x == 0))),
    ROW(eqz, Exact, BITS(truth(!(x & ~kSign)))),
    ROW(nez, Exact, BITS(truth(x & ~kSign))),
    ROW(gtz, Exact, BITS(truth(!is_nan(x) && !(x & kSign) && x))),
    ROW(gez, Exact, BITS(truth(!is_nan(x) && (!(x & kSign) || x == kSign)))),
    ROW(ltz, Exact, BITS(truth(!is_nan(x) && x > kSign))),
    ROW(lez, Exact, BITS(truth(!is_nan(x) && ((x & kSign) || x == 0)))),
};

}  // namespace

RowSpan unary_rows() { return {kRows, sizeof kRows / sizeof *kRows}; }

}  // namespace tw
