// MVMUL: sixteen products per step in two groups of eight (rule K).
#include <algorithm>

#include "fpu.h"

namespace tw {

namespace {

struct Group {
    int exponents[8];
    i32 products[8];

    Term sum() const {
        const int top = *std::max_element(exponents, exponents + 8);
        if (top <= 0) return {};
        i32 total = 0;
        for (int i = 0; i < 8; ++i) total += shift_half_away(products[i], top - exponents[i]);
        return {total * 8192, top};
    }
};

}  // namespace

u32 dot16(const u32* a, int a_step, const u32* b, int b_step, int phase, u32 dst, Width width) {
    Group groups[2];
    for (int i = 0; i < 16; ++i) {
        const Significand left = split(a[i * a_step]), right = split(b[i * b_step]);
        const bool zero = left.exponent == 0 || right.exponent == 0;
        const i32 product = zero ? 0 : static_cast<i32>(part_of_a(left.bits, phase) * part_of_b(right.bits, phase));
        groups[i >> 3].exponents[i & 7] = zero ? 0 : left.exponent + right.exponent - 127 - kPhaseShift[phase];
        groups[i >> 3].products[i & 7] = left.negative != right.negative ? -product : product;
    }
    return accumulate(groups[0].sum(), groups[1].sum(), dst, width);
}

namespace {

constexpr i32 kNoExponent = -4096;  // of a zero: below any sum, so it never decides the scale of a group
constexpr i32 kGone = 20;           // a 12-bit product has vanished after this many places

// One operand tile as rows of 32: exponents, and the signed part of the significand that one phase multiplies.
struct Decoded {
    alignas(32) i32 exponent[kTile];
    alignas(32) i32 part[kTile];
};

void decode_exponents(const u32* tile, Decoded& out) {
    for (int r = 0; r < 32; ++r) {
        for (int c = 0; c < 32; ++c) {
            const i32 exponent = static_cast<i32>(exponent_of(tile[tile_index(r, c)]));
            out.exponent[r * 32 + c] = exponent ? exponent : kNoExponent;
        }
    }
}

template <typename Part>
void decode_parts(const u32* tile, Decoded& out, Part part) {
    for (int r = 0; r < 32; ++r) {
        for (int c = 0; c < 32; ++c) {
            const Significand value = split(tile[tile_index(r, c)]);
            const i32 bits = static_cast<i32>(part(value.bits));
            out.part[r * 32 + c] = value.negative ? -bits : bits;
        }
    }
}

}  // namespace

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
__attribute__((target_clones("avx2", "default")))
#endif
static void group_sums(const i32* __restrict a_part, const i32* __restrict a_exponent, const i32* __restrict b_part,
                       const i32* __restrict b_exponent, i32 offset, i32* __restrict value, i32* __restrict exponent) {
    // Eight k for one row and 32 columns: a is [k][column], b is [k] of the row. The part of b comes doubled, so that one
    // shift by gap + 1 rounds ties away from zero for both signs.
    i32 top[32], total[32];
    for (int c = 0; c < 32; ++c) top[c] = 0;
    for (int k = 0; k < 8; ++k) {
        const i32 base = b_exponent[k] - offset;
        for (int c = 0; c < 32; ++c) {
            const i32 e = a_exponent[k * 32 + c] + base;
            top[c] = e > top[c] ? e : top[c];
        }
    }
    for (int c = 0; c < 32; ++c) total[c] = 0;
    for (int k = 0; k < 8; ++k) {
        const i32 base = b_exponent[k] - offset, factor = b_part[k] * 2;
        for (int c = 0; c < 32; ++c) {
            i32 gap = top[c] - (a_exponent[k * 32 + c] + base);
            gap = gap > kGone ? kGone : gap;
            const i32 doubled = a_part[k * 32 + c] * factor;
            total[c] += (doubled + (1 << gap) + (doubled >> 31)) >> (gap + 1);
        }
    }
    for (int c = 0; c < 32; ++c) {
        value[c] = top[c] > 0 ? total[c] * 8192 : 0;
        exponent[c] = top[c];
    }
}

void matmul_tile(const u32* in0, const u32* in1, u32* dst, int phases, Width width) {
    static Decoded a, b;  // threads of the model take turns, so one pair serves all
    decode_exponents(in1, a);
    decode_exponents(in0, b);
    for (int phase = 0; phase < phases; ++phase) {
        decode_parts(in1, a, [phase](u32 bits) { return part_of_a(bits, phase); });
        decode_parts(in0, b, [phase](u32 bits) { return part_of_b(bits, phase); });
        const i32 offset = 127 + kPhaseShift[phase];
        for (int half = 0; half < 32; half += 16) {
            for (int r = 0; r < 32; ++r) {
                i32 value[2][32], exponent[2][32];
                for (int g = 0; g < 2; ++g) {
                    const int k = half + 8 * g;
                    group_sums(a.part + k * 32, a.exponent + k * 32, b.part + r * 32 + k, b.exponent + r * 32 + k, offset, value[g],
                               exponent[g]);
                }
                for (int c = 0; c < 32; ++c) {
                    u32& target = dst[tile_index(r, c)];
                    target = accumulate({value[0][c], exponent[0][c]}, {value[1][c], exponent[1][c]}, target, width);
                }
            }
        }
    }
}

void transpose_tile(u32* tile) {
    for (int r = 0; r < 32; ++r)
        for (int c = 0; c < r; ++c) std::swap(tile[tile_index(r, c)], tile[tile_index(c, r)]);
}

}  // namespace tw
