// Integer functions. DST keeps two's complement in the low bits of a datum; 16-bit values fit both widths of DST.
#include <algorithm>
#include <numeric>

#include "sfpu_rows.h"

namespace tw {

namespace {

using Call = const VectorCall&;

i32 as_int(u32 bits) { return static_cast<i32>(bits); }

// The template argument that names the data format is the call's variant.
bool is_unsigned(Call call) { return call.variant == static_cast<u32>(Format::UInt32); }

u32 floor_divide(u32 a, u32 b) {
    const i64 x = as_int(a), y = as_int(b);
    if (y == 0) return 0;
    i64 quotient = x / y;
    if (x % y != 0 && (x < 0) != (y < 0)) --quotient;
    return static_cast<u32>(quotient);
}

u32 floor_remainder(u32 a, u32 b) {
    const i64 x = as_int(a), y = as_int(b);
    if (y == 0) return 0;
    i64 rest = x % y;
    if (rest != 0 && (rest < 0) != (y < 0)) rest += y;
    return static_cast<u32>(rest);
}

#define UNARY(name, expression) \
    {name, 1, 0, Store::Integer, true, [](u32 x, Call call) -> u32 { const u32 p = call.param(0), q = call.param(1); (void)p; (void)q; return expression; }, nullptr, nullptr, nullptr}
#define BINARY(name, expression) \
    {name, 2, 1, Store::Integer, true, nullptr, [](u32 a, u32 b, Call call) -> u32 { (void)call; return expression; }, nullptr, nullptr}

const VectorOp kIntegerRows[] = {
    UNARY("add_unary_tile_int32", x + p),
    UNARY("sub_unary_tile_int32", x - p),
    UNARY("rsub_unary_int32_tile", p - x),
    UNARY("abs_tile_int32", static_cast<u32>(std::abs(as_int(x)))),
    UNARY("negative_tile_int32", 0u - x),
    UNARY("signbit_tile_int32", as_int(x) < 0 ? 1u : 0u),
    UNARY("identity_tile_uint32", x),
    UNARY("relu_tile_int32", as_int(x) < 0 ? 0u : x),
    UNARY("relu_max_tile_int32", as_int(x) < 0 ? 0u : static_cast<u32>(std::min(as_int(x), as_int(p)))),
    UNARY("relu_min_tile_int32", static_cast<u32>(std::max(as_int(x), as_int(p)))),
    UNARY("clamp_tile_int32", static_cast<u32>(std::min(std::max(as_int(x), as_int(p)), as_int(q)))),
    UNARY("unary_max_int32_tile", static_cast<u32>(std::max(as_int(x), as_int(p)))),
    UNARY("unary_min_int32_tile", static_cast<u32>(std::min(as_int(x), as_int(p)))),
    UNARY("unary_max_uint32_tile", std::max(x, p)),
    UNARY("unary_min_uint32_tile", std::min(x, p)),
    UNARY("unary_eq_tile_int32", x == p),
    UNARY("unary_ne_tile_int32", x != p),
    UNARY("unary_gt_tile_int32", as_int(x) > as_int(p)),
    UNARY("unary_ge_tile_int32", as_int(x) >= as_int(p)),
    UNARY("unary_lt_tile_int32", as_int(x) < as_int(p)),
    UNARY("unary_le_tile_int32", as_int(x) <= as_int(p)),
    UNARY("eqz_tile_int32", x == 0),
    UNARY("nez_tile_int32", x != 0),
    UNARY("gtz_tile_int32", as_int(x) > 0),
    UNARY("gez_tile_int32", as_int(x) >= 0),
    UNARY("ltz_tile_int32", as_int(x) < 0),
    UNARY("lez_tile_int32", as_int(x) <= 0),
    UNARY("relu_max_tile_uint32", std::min(x, p)),
    UNARY("relu_min_tile_uint32", std::max(x, p)),
    UNARY("remainder_tile_uint32", p == 0 ? 0u : x % p),
    UNARY("eqz_tile_uint32", x == 0),
    UNARY("nez_tile_uint32", x != 0),
    UNARY("bitwise_and_tile", x & p),
    UNARY("bitwise_or_tile", x | p),
    UNARY("bitwise_xor_tile", x ^ p),
    UNARY("bitwise_not_tile", ~x),
    UNARY("left_shift_tile", p < 32 ? x << p : 0u),
    UNARY("right_shift_tile", p < 32 ? static_cast<u32>(as_int(x) >> p) : 0u),
    BINARY("add_int_tile", a + b),
    BINARY("sub_int_tile", a - b),
    BINARY("rsub_int_tile", b - a),
    BINARY("mul_int_tile", a * b),
    BINARY("div_int32_floor_tile", floor_divide(a, b)),
    BINARY("div_int32_trunc_tile", b == 0 ? 0u : static_cast<u32>(static_cast<i64>(as_int(a)) / as_int(b))),
    BINARY("div_int32_tile", b == 0 ? 0u : narrowed(static_cast<double>(as_int(a)) / as_int(b))),
    BINARY("fmod_int32_tile", b == 0 ? 0u : static_cast<u32>(static_cast<i64>(as_int(a)) % as_int(b))),
    BINARY("remainder_int32_tile", floor_remainder(a, b)),
    BINARY("remainder_uint32_tile", b == 0 ? 0u : a % b),
    BINARY("gcd_tile", static_cast<u32>(std::gcd(static_cast<i64>(as_int(a)), static_cast<i64>(as_int(b))))),
    BINARY("lcm_tile", static_cast<u32>(std::lcm(static_cast<i64>(as_int(a)), static_cast<i64>(as_int(b))))),
    BINARY("binary_max_int32_tile", static_cast<u32>(std::max(as_int(a), as_int(b)))),
    BINARY("binary_min_int32_tile", static_cast<u32>(std::min(as_int(a), as_int(b)))),
    BINARY("binary_max_uint32_tile", std::max(a, b)),
    BINARY("binary_min_uint32_tile", std::min(a, b)),
    BINARY("eq_int_tile", a == b),
    BINARY("ne_int_tile", a != b),
    BINARY("lt_int_tile", is_unsigned(call) ? a < b : as_int(a) < as_int(b)),
    BINARY("gt_int_tile", is_unsigned(call) ? a > b : as_int(a) > as_int(b)),
    BINARY("le_int_tile", is_unsigned(call) ? a <= b : as_int(a) <= as_int(b)),
    BINARY("ge_int_tile", is_unsigned(call) ? a >= b : as_int(a) >= as_int(b)),
    BINARY("bitwise_and_binary_tile", a & b),
    BINARY("bitwise_or_binary_tile", a | b),
    BINARY("bitwise_xor_binary_tile", a ^ b),
    BINARY("binary_left_shift_tile", b < 32 ? a << b : 0u),
    BINARY("binary_right_shift_tile", b < 32 ? static_cast<u32>(as_int(a) >> b) : 0u),
    BINARY("binary_logical_right_shift_tile", b < 32 ? a >> b : 0u),
};

}  // namespace

RowSpan integer_rows() { return {kIntegerRows, sizeof kIntegerRows / sizeof *kIntegerRows}; }

}  // namespace tw

#undef UNARY
#undef BINARY
