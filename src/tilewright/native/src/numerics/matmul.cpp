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

u32 dot16(const u32* a, int a_step, const u32* b, int b_step, int phase, u32 dst, bool wide) {
    Group groups[2];
    for (int i = 0; i < 16; ++i) {
        const Significand left = split(a[i * a_step]), right = split(b[i * b_step]);
        const bool zero = left.exponent == 0 || right.exponent == 0;
        const i32 product = zero ? 0 : static_cast<i32>(part_of_a(left.bits, phase) * part_of_b(right.bits, phase));
        groups[i >> 3].exponents[i & 7] = zero ? 0 : left.exponent + right.exponent - 127 - kPhaseShift[phase];
        groups[i >> 3].products[i & 7] = left.negative != right.negative ? -product : product;
    }
    return accumulate(groups[0].sum(), groups[1].sum(), dst, wide);
}

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
__attribute__((target_clones("avx2", "default")))
#endif
static void group_sums(const i32* a_part, const i32* a_exponent, const i32* b_part, const i32* b_exponent, int offset, i32* value,
                       i32* exponent) {
    // Eight k for one row and 32 columns: a is [k][column], b is [k] of the row.
    i32 top[32];
    for (int c = 0; c < 32; ++c) top[c] = -100000;
    for (int k = 0; k < 8; ++k) {
        const i32 eb = b_exponent[k];
        for (int c = 0; c < 32; ++c) {
            const i32 ea = a_exponent[k * 32 + c];
            const i32 e = (ea != 0) & (eb != 0) ? ea + eb - offset : 0;
            top[c] = e > top[c] ? e : top[c];
        }
    }
    i32 total[32] = {};
    for (int k = 0; k < 8; ++k) {
        const i32 eb = b_exponent[k], pb = b_part[k];
        for (int c = 0; c < 32; ++c) {
            const i32 ea = a_exponent[k * 32 + c];
            const i32 live = (ea != 0) & (eb != 0);
            i32 gap = top[c] - (ea + eb - offset);
            gap = live ? gap : 0;
            gap = gap > 20 ? 20 : gap;  // a 12-bit product is gone after 13 places
            const i32 product = live ? a_part[k * 32 + c] * pb : 0;
            const i32 negative = product >> 31;
            const i32 magnitude = (product ^ negative) - negative;
            const i32 moved = (magnitude + ((1 << gap) >> 1)) >> gap;
            total[c] += (moved ^ negative) - negative;
        }
    }
    for (int c = 0; c < 32; ++c) {
        value[c] = top[c] > 0 ? total[c] * 8192 : 0;
        exponent[c] = top[c] > 0 ? top[c] : 0;
    }
}

void matmul_tile(const u32* in0, const u32* in1, u32* dst, int phases, bool wide) {
    static thread_local i32 a_exponent[kTile], b_exponent[kTile], a_part[kTile], b_part[kTile];
    for (int r = 0; r < 32; ++r) {
        for (int c = 0; c < 32; ++c) {
            a_exponent[r * 32 + c] = static_cast<i32>(exponent_of(in1[tile_index(r, c)]));
            b_exponent[r * 32 + c] = static_cast<i32>(exponent_of(in0[tile_index(r, c)]));
        }
    }
    for (int phase = 0; phase < phases; ++phase) {
        for (int r = 0; r < 32; ++r) {
            for (int c = 0; c < 32; ++c) {
                const Significand a = split(in1[tile_index(r, c)]), b = split(in0[tile_index(r, c)]);
                const i32 pa = static_cast<i32>(part_of_a(a.bits, phase)), pb = static_cast<i32>(part_of_b(b.bits, phase));
                a_part[r * 32 + c] = a.negative ? -pa : pa;
                b_part[r * 32 + c] = b.negative ? -pb : pb;
            }
        }
        const int offset = 127 + kPhaseShift[phase];
        for (int half = 0; half < 32; half += 16) {
            for (int r = 0; r < 32; ++r) {
                i32 value[2][32], exponent[2][32];
                for (int g = 0; g < 2; ++g) {
                    const int k = half + 8 * g;
                    group_sums(a_part + k * 32, a_exponent + k * 32, b_part + r * 32 + k, b_exponent + r * 32 + k, offset, value[g],
                               exponent[g]);
                }
                for (int c = 0; c < 32; ++c) {
                    u32& target = dst[tile_index(r, c)];
                    target = accumulate({value[0][c], exponent[0][c]}, {value[1][c], exponent[1][c]}, target, wide);
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
