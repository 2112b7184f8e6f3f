// Pooling: sums are matrix steps with a scaler, maxima compare bit patterns (rule R).
#include <algorithm>

#include "fpu.h"

namespace tw {

namespace {

constexpr u32 kLeast = 0xFFFFFFFFu;  // below every number in sign-magnitude order

u32 readable(u32 bits) { return is_zero_or_denormal(bits) ? 0u : bits; }

void sum_rows(const u32* data, const u32* scaler, u32* dst, int phases, Width width) {
    for (int r = 0; r < 32; ++r) {
        u32& target = dst[tile_index(r, 0)];
        for (int phase = 0; phase < phases; ++phase) {
            for (int column = 0; column < 32; column += 16) {
                const int face = tile_index(r, column);
                target = dot16(scaler + (face & ~255), 1, data + face, 1, phase, target, width);
            }
        }
    }
}

void sum_columns(const u32* data, const u32* scaler, u32* dst, int phases, Width width) {
    for (int c = 0; c < 32; ++c) {
        u32& target = dst[tile_index(0, c)];
        for (int row = 0; row < 32; row += 16) {
            const int face = tile_index(row, c);
            for (int phase = 0; phase < phases; ++phase) target = dot16(data + face, 16, scaler + (face & ~255), 1, phase, target, width);
        }
    }
}

void sum_all(const u32* data, const u32* scaler, u32* dst, int phases, Width width, u32 keep) {
    u32 row[16] = {};
    for (int face = 0; face < 4; ++face) {
        for (int phase = 0; phase < phases; ++phase) {
            for (int c = 0; c < 16; ++c) row[c] = dot16(data + face * 256 + c, 16, scaler + face * 256, 1, phase, row[c], width);
        }
    }
    for (u32& value : row) value &= keep;
    for (int phase = 0; phase < phases; ++phase) dst[0] = dot16(row, 1, scaler, 1, phase, dst[0], width);
}

void maximum(const u32* data, u32* dst, Axis axis, Width width, bool fresh) {
    const int lines = axis == Axis::Scalar ? 1 : 32;
    for (int line = 0; line < lines; ++line) {
        const int at = axis == Axis::Row ? tile_index(line, 0) : axis == Axis::Column ? tile_index(0, line) : 0;
        u32 best = fresh ? kLeast : dst[at];
        if (axis == Axis::Scalar) {
            for (int i = 0; i < kTile; ++i) best = larger(best, readable(data[i]));
        } else {
            for (int i = 0; i < 32; ++i)
                best = larger(best, readable(data[axis == Axis::Row ? tile_index(line, i) : tile_index(i, line)]));
        }
        dst[at] = axis == Axis::Row && width.wide ? fpu_add(best, 0, false, 0, width) : best;
    }
}

}  // namespace

void reduce_tile(const u32* data, const u32* scaler, u32* dst, Pool pool, Axis axis, int phases, Width width, bool fresh, u32 keep) {
    if (pool == Pool::Max) return maximum(data, dst, axis, width, fresh);
    if (axis == Axis::Row) return sum_rows(data, scaler, dst, phases, width);
    if (axis == Axis::Column) return sum_columns(data, scaler, dst, phases, width);
    sum_all(data, scaler, dst, phases, width, keep);
}

}  // namespace tw
