// The vector ops, in tables by arity; and what their functions share.
#pragma once
#include <cmath>
#include <cstddef>
#include <vector>

#include "formats.h"
#include "sfpu.h"

namespace tw {

struct RowSpan {
    const VectorOp* first;
    std::size_t count;
};

RowSpan unary_rows();
RowSpan scalar_rows();
RowSpan binary_rows();
RowSpan tile_rows();
RowSpan integer_rows();

inline std::vector<RowSpan> vector_rows() { return {unary_rows(), scalar_rows(), binary_rows(), tile_rows(), integer_rows()}; }

// The algorithm of a function in 32-bit DST, if it is here.
u32 (*wide_function(const char* name, u32 variant))(u32);

inline double real(u32 bits) { return static_cast<double>(as_float(flush_denormal(bits))); }
inline u32 narrowed(double value) { return as_bits(static_cast<float>(value)); }
constexpr u32 kOne = 0x3F800000u;
// x - y as the kernels compute it, and the comparison they make of its sign.
inline u32 vector_subtract(u32 x, u32 y) { return vector_add(y ^ kSign, x); }
inline bool less(u32 x, u32 y) { return (vector_subtract(x, y) & kSign) != 0; }
inline bool greater(u32 x, u32 y) {
    const u32 difference = vector_subtract(x, y);
    return !(difference & kSign) && difference != 0;
}
// Calls that take floats and integers name the data format.
inline bool is_integer_call(const VectorCall& call) { return is_integer(static_cast<Format>(call.variant)); }
inline u32 truth(bool value) { return value ? kOne : 0u; }

}  // namespace tw
