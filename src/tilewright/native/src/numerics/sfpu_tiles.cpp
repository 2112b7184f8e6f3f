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

// How sfpu_reduce joins two values: pools are sum, average, maximum, minimum.
u32 pooled(u32 a, u32 b, u32 pool) {
    if (pool < 2) return vector_add(a, b);
    return (pool == 2 ? ordered(b) > ordered(a) : ordered(b) < ordered(a)) ? b : a;
}

// A register holds four rows of the eight even or the eight odd columns of a face; first column as its name.
constexpr int kRegisterColumns[] = {0, 1, 16, 17};

void reduce_rows(Call call, u32 pool) {
    for (int r = 0; r < 32; ++r) {
        u32 lanes[8];
        for (int j = 0; j < 8; ++j) {
            u32 parts[4];
            for (int k = 0; k < 4; ++k) parts[k] = call.in[0][tile_index(r, kRegisterColumns[k] + 2 * j)];
            lanes[j] = pool < 2 ? pooled(parts[0], pooled(parts[1], pooled(parts[2], parts[3], pool), pool), pool)
                                : pooled(pooled(parts[0], parts[2], pool), pooled(parts[1], parts[3], pool), pool);
        }
        for (int distance = 4; distance; distance /= 2) {
            u32 turned[8];
            for (int j = 0; j < 8; ++j) turned[j] = lanes[(j - distance + 8) % 8];
            for (int j = 0; j < 8; ++j) lanes[j] = pooled(lanes[j], turned[j], pool);
        }
        for (int j = 0; j < 8; ++j) call.out[tile_index(r, 2 * j)] = stored(lanes[j], Store::Truncate, call.wide);
    }
}

void reduce_columns(Call call, u32 pool) {
    for (int c = 0; c < 32; ++c) {
        u32 rows[4];
        if (pool < 2) {
            u32 sums[8][4];  // block of four rows, lane
            for (int lane = 0; lane < 4; ++lane) {
                for (int block = 7; block >= 0; --block) {
                    const u32 own = call.in[0][tile_index(4 * block + lane, c)];
                    sums[block][lane] = block % 4 == 3 ? own : vector_add(own, sums[block + 1][lane]);
                }
                sums[0][lane] = vector_add(sums[0][lane], sums[4][lane]);
            }
            for (int i = 0; i < 4; ++i)
                rows[i] = vector_add(vector_add(sums[i][0], sums[i][1]), vector_add(sums[i][2], sums[i][3]));
            if (pool == 1)
                for (u32& row : rows) row = vector_multiply(row, as_bits(1.0f / 32.0f));
        } else {
            for (int lane = 0; lane < 4; ++lane) {
                rows[lane] = call.in[0][tile_index(lane, c)];
                for (int block = 1; block < 8; ++block) rows[lane] = pooled(rows[lane], call.in[0][tile_index(4 * block + lane, c)], pool);
            }
            for (int lane = 2; lane >= 0; --lane) {
                const u32 best = pooled(rows[lane], rows[lane + 1], pool), other = pooled(rows[lane], rows[lane + 1], 5 - pool);
                rows[lane] = best;
                rows[lane + 1] = other;
            }
        }
        for (int i = 0; i < 4; ++i) call.out[tile_index(i, c)] = stored(rows[i], Store::Truncate, call.wide);
    }
}

// Variant: pool; parameter: dimension.
void reduce(Call call) {
    std::vector<u32> before(call.in[0], call.in[0] + kTile);
    VectorCall kept = call;
    kept.in[0] = before.data();
    for (int i = 0; i < kTile; ++i) call.out[i] = before[i];
    if (call.param(0) == 0) reduce_rows(kept, call.variant);
    else reduce_columns(kept, call.variant);
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

const VectorOp kTilesRows[] = {
    TILE("sfpu_add_bcast_col", 2, 0, (broadcast<0, true>)),   TILE("sfpu_add_bcast_row", 2, 0, (broadcast<0, false>)),
    TILE("sfpu_sub_bcast_col", 2, 0, (broadcast<1, true>)),   TILE("sfpu_sub_bcast_row", 2, 0, (broadcast<1, false>)),
    TILE("sfpu_mul_bcast_col", 2, 0, (broadcast<2, true>)),   TILE("sfpu_mul_bcast_row", 2, 0, (broadcast<2, false>)),
    TILE("sfpu_bcast", 2, 0, broadcast_by_template),          TILE("sfpu_reduce", 1, 0, reduce),
    TILE("alt_complex_rotate90_tile", 1, 0, rotate_complex),  TILE("tiled_prod_tile", 1, 0, product),                   TILE("cumsum_tile", 1, 0, running_sum),
};

}  // namespace

RowSpan tile_rows() { return {kTilesRows, sizeof kTilesRows / sizeof *kTilesRows}; }

}  // namespace tw

#undef TILE
