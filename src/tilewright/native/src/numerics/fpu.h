// The matrix unit's arithmetic: products, sums and accumulation into DST (rules M, P, A, N of the numeric rules).
#pragma once
#include "bits.h"

namespace tw {

// One addend of an accumulation: value * 2^(exponent - 127 - 23).
struct Term {
    i32 value = 0;
    int exponent = 0;
};

// How DST holds sums: in the upper 16 bits, or in 32. `hits` counts rule N7 on chips that have that erratum.
struct Width {
    bool wide = false;
    u32* hits = nullptr;
};

constexpr int kPhaseShift[4] = {0, 5, 7, 12};

struct Significand {
    int exponent;  // 0: the value is zero
    bool negative;
    u32 bits;  // 11 bits with the leading one
};

inline Significand split(u32 value) {
    const int exponent = static_cast<int>(exponent_of(value));
    if (exponent == 0) return {0, (value & kSign) != 0, 0};
    return {exponent, (value & kSign) != 0, 0x400u | ((value & kFraction) >> 13)};
}

inline u32 part_of_a(u32 significand, int phase) { return phase & 1 ? (significand >> 1) & 31u : significand >> 6; }
inline u32 part_of_b(u32 significand, int phase) { return phase & 2 ? (significand & 15u) << 3 : significand >> 4; }

// Adds up to two terms and the old DST value.
inline u32 accumulate(Term first, Term second, u32 dst, Width width) {
    const bool wide = width.wide;
    const int dst_exponent = static_cast<int>(exponent_of(dst));
    int top = first.exponent > second.exponent ? first.exponent : second.exponent;
    if (dst_exponent > top) top = dst_exponent;
    if (top <= 0) return 0;
    i32 a = shift_half_up(first.value, top - first.exponent);
    i32 b = shift_half_up(second.value, top - second.exponent);
    i32 d = 0;
    if (dst_exponent != 0) {
        d = static_cast<i32>((dst & kFraction) | 0x800000u);
        if (dst & kSign) d = -d;
        d = shift_half_away(d, top - dst_exponent);
    }
    if (!wide) {
        a = shift_half_up(a, 13) * 8192;
        b = shift_half_up(b, 13) * 8192;
        d = shift_half_away(d, 13) * 8192;
    }
    const i64 sum = static_cast<i64>(a) + b + d;
    if (sum == 0) return 0;
    const u32 sign = sum < 0 ? kSign : 0u;
    if (wide && sum == -1 && width.hits) {  // Wormhole erratum: the smallest negative sum comes out as -2^4 of the scale
        ++*width.hits;
        const int exponent = top + 4;
        return exponent >= 255 ? kSign | kInfinity : kSign | (static_cast<u32>(exponent) << 23);
    }
    u64 magnitude = static_cast<u64>(sum < 0 ? -sum : sum);
    int length = 64 - __builtin_clzll(magnitude);
    int exponent = top + length - 24;
    const int kept = wide ? 24 : 8;
    if (length > kept) {
        const int drop = length - kept;
        magnitude = (magnitude + (u64{1} << (drop - 1))) >> drop;
        if (magnitude >> kept) {
            magnitude >>= 1;
            ++exponent;
        }
    } else {
        magnitude <<= kept - length;
    }
    if (exponent <= 0) return 0;
    if (exponent >= 255) return sign | kInfinity;
    const u32 fraction = static_cast<u32>(magnitude) << (24 - kept);
    return sign | (static_cast<u32>(exponent) << 23) | (fraction & kFraction);
}

// ELWADD / ELWSUB of one pair: only the operand of smaller magnitude is shifted and rounded.
inline Term add_term(u32 left, u32 right, bool subtract) {
    Significand a = split(left), b = split(right);
    if (subtract) b.negative = !b.negative;
    const bool a_larger = a.exponent > b.exponent || (a.exponent == b.exponent && a.bits >= b.bits);
    const Significand large = a_larger ? a : b, small = a_larger ? b : a;
    if (large.exponent == 0) return {};
    const int gap = large.exponent - small.exponent;
    i32 moved = 0;
    if (small.exponent != 0 && gap < 12) moved = shift_half_away(static_cast<i32>(small.bits), gap);
    const i32 sum = (large.negative ? -1 : 1) * static_cast<i32>(large.bits) + (small.negative ? -1 : 1) * moved;
    return {sum * 8192, large.exponent};
}

// One fidelity phase of ELWMUL for one pair.
inline Term product_term(u32 left, u32 right, int phase) {
    const Significand a = split(left), b = split(right);
    if (a.exponent == 0 || b.exponent == 0) return {};
    const int exponent = a.exponent + b.exponent - 127 - kPhaseShift[phase];
    if (exponent <= 0) return {};
    const i32 product = static_cast<i32>(part_of_a(a.bits, phase) * part_of_b(b.bits, phase));
    return {(a.negative != b.negative ? -product : product) * 8192, exponent};
}

inline u32 fpu_add(u32 left, u32 right, bool subtract, u32 dst, Width width) {
    return accumulate(add_term(left, right, subtract), {}, dst, width);
}

inline u32 fpu_multiply(u32 left, u32 right, u32 dst, int phases, Width width) {
    for (int phase = 0; phase < phases; ++phase) dst = accumulate(product_term(left, right, phase), {}, dst, width);
    return dst;
}

// Tiles are 1024 values in face order; see `tile_index`.
constexpr int kTile = 1024;
inline int tile_index(int row, int column) {
    return ((row >> 4) * 2 + (column >> 4)) * 256 + (row & 15) * 16 + (column & 15);
}

enum class Pool : u8 { Sum, Average, Max, Min };
enum class Axis : u8 { Row, Column, Scalar };

// One 16-deep MVMUL step over `a` (SrcA, stride a_step) and `b` (SrcB, stride b_step), accumulated into dst.
u32 dot16(const u32* a, int a_step, const u32* b, int b_step, int phase, u32 dst, Width width);

// dst += in0 @ in1 for one tile; in0 goes to SrcB, in1 to SrcA.
void matmul_tile(const u32* in0, const u32* in1, u32* dst, int phases, Width width);

// `fresh`: the slot was not written since the acquire, so a maximum starts from minus infinity. `keep` masks what the
// intermediate row keeps on its way from DST back to Src.
void reduce_tile(const u32* data, const u32* scaler, u32* dst, Pool pool, Axis axis, int phases, Width width, bool fresh, u32 keep);

void transpose_tile(u32* tile);

}  // namespace tw
