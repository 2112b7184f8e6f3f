// Vector ops that mix elements of a tile: broadcasts between DST tiles and reductions.
#include "fpu.h"
#include "sfpu_rows.h"

namespace tw {

namespace {

using Call = const VectorCall&;

u32 combine(u32 a, u32 b, int kind) {
    if (kind == 0) return vector_add(a, b);
    if (kind == 1) return vector_subtract(a, b);
    return vector_multiply(a, b);
}

template <int kKind, bool kColumn>
void broadcast(Call call) {
    for (int r = 0; r < 32; ++r) {
        for (int c = 0; c < 32; ++c) {
            const u32 other = call.in[1][kColumn ? tile_index(r, 0) : tile_index(0, c)];
            call.out[tile_index(r, c)] = stored(combine(call.in[0][tile_index(r, c)], other, kKind), Store::Truncate, call.wide);
        }
    }
}

// The template arguments of sfpu_bcast: dimension as the variant, op as a parameter.
void broadcast_by_template(Call call) {
    const bool column = call.variant == 1;
    const u32 op = call.param(0);
    if (op == 2) return column ? broadcast<0, true>(call) : broadcast<0, false>(call);
    if (op == 3) return column ? broadcast<1, true>(call) : broadcast<1, false>(call);
    return column ? broadcast<2, true>(call) : broadcast<2, false>(call);
}

// Variant: pool; parameter: dimension.
void reduce(Call call) {
    const u32 pool = call.variant, axis = call.param(0);
    for (int line = 0; line < 32; ++line) {
        u32 value = 0;
        for (int i = 0; i < 32; ++i) {
            const u32 next = call.in[0][axis == 0 ? tile_index(line, i) : tile_index(i, line)];
            if (i == 0) value = next;
            else if (pool < 2) value = vector_add(value, next);
            else if (pool == 2) value = ordered(next) > ordered(value) ? next : value;
            else value = ordered(next) < ordered(value) ? next : value;
        }
        if (pool == 1) value = vector_multiply(value, as_bits(1.0f / 32.0f));
        call.out[axis == 0 ? tile_index(line, 0) : tile_index(0, line)] = stored(value, Store::NearestEven, call.wide);
    }
}

void product(Call call) {
    u32 value = kOne;
    for (int i = 0; i < kTile; ++i) value = vector_multiply(value, call.in[0][i]);
    for (int i = 0; i < kTile; ++i) call.out[i] = stored(value, Store::Truncate, call.wide);
}

// Pairs of neighbours as complex numbers, multiplied by i.
void rotate_complex(Call call) {
    for (int i = 0; i < kTile; i += 2) {
        const u32 re = call.in[0][i], im = call.in[0][i + 1];
        call.out[i] = stored(im ^ kSign, Store::Exact, call.wide);
        call.out[i + 1] = stored(re, Store::Exact, call.wide);
    }
}

void running_sum(Call call) {
    for (int c = 0; c < 32; ++c) {
        u32 value = 0;
        for (int r = 0; r < 32; ++r) {
            value = vector_add(value, call.in[0][tile_index(r, c)]);
            call.out[tile_index(r, c)] = stored(value, Store::Truncate, call.wide);
        }
    }
}

#define TILE(name, inputs, outputs, function) {name, inputs, outputs, Store::Exact, true, nullptr, nullptr, nullptr, function}

const VectorOp kRows[] = {
    TILE("sfpu_add_bcast_col", 2, 0, (broadcast<0, true>)),   TILE("sfpu_add_bcast_row", 2, 0, (broadcast<0, false>)),
    TILE("sfpu_sub_bcast_col", 2, 0, (broadcast<1, true>)),   TILE("sfpu_sub_bcast_row", 2, 0, (broadcast<1, false>)),
    TILE("sfpu_mul_bcast_col", 2, 0, (broadcast<2, true>)),   TILE("sfpu_mul_bcast_row", 2, 0, (broadcast<2, false>)),
    TILE("sfpu_bcast", 2, 0, broadcast_by_template),          TILE("sfpu_reduce", 1, 0, reduce),
    TILE("alt_complex_rotate90_tile", 1, 0, rotate_complex),  TILE("tiled_prod_tile", 1, 0, product),                   TILE("cumsum_tile", 1, 0, running_sum),
};

}  // namespace

RowSpan tile_rows() { return {kRows, sizeof kRows / sizeof *kRows}; }

}  // namespace tw
