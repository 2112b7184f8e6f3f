// The matrix unit: the unpack half of every op moves tiles to Src, the math half computes into DST.
#include <algorithm>

#include "findings.h"
#include "recording.h"
#include "registers.h"
#include "scheduler.h"
#include "setup.h"

namespace tw {

namespace {

constexpr std::size_t kSourceBanks = 2;

const u8* page_of(const Buffer& buffer, u32 page) {
    return reinterpret_cast<const u8*>(static_cast<std::uintptr_t>(buffer.base)) + static_cast<u64>(page) * buffer.page_bytes;
}

void read_operand(const char* name, u32 cb, u32 tile, const SourceSetup& setup, const char* side, bool direct, std::vector<u32>& out,
                  Loc at) {
    Core& core = self_core();
    Buffer& buffer = core.buffer(cb, at);
    check_source_format(name, buffer, setup, side, at);
    check_page_size(name, buffer, at);
    if (buffer.to_dst && !direct)
        report("unpack-to-dest-operand", at, "%s takes buffer %u, which is in UnpackToDestFp32 mode, through Src", name, cb);
    if (tile >= buffer.waited) {
        report("missing-wait", at, "%s reads tile %u of buffer %u after waiting for %u", name, tile, cb, buffer.waited);
    }
    u32 page = buffer.read + tile;
    if (page >= buffer.pages) {
        report("buffer-wrap", at, "%s reads tile %u of buffer %u past its end (%u pages, front at %u)", name, tile, cb, buffer.pages,
               buffer.read);
        page %= buffer.pages;
    }
    const std::size_t start = out.size();
    out.resize(start + kTile);
    unpack_tile(page_of(buffer, page), buffer.format, core.wide, direct && (buffer.to_dst || is_integer(buffer.format)), &out[start]);
}

void unpack_half(const char* name, Mode mode, u32 a, u32 b, u32 tile_a, u32 tile_b, Loc at) {
    Core& core = self_core();
    check_mode(name, core.unpack_mode, mode, true, at);
    wait_until([&] { return core.sources.size() < kSourceBanks; }, name, at, [] { return std::string("waits for math to use Src"); });
    SourceTiles tiles;
    tiles.mode = mode;
    tiles.setup_a = core.source_a;
    tiles.setup_b = core.source_b;
    switch (mode.kind) {
        case Kind::Copy:
        case Kind::Transpose:
            read_operand(name, a, tile_a, core.source_a, "SrcA", true, tiles.a, at);
            tiles.to_dst = core.buffer(a, at).to_dst || is_integer(core.buffer(a, at).format);
            break;
        case Kind::UnaryBcast: {
            tiles.to_dst = core.buffer(a, at).to_dst;
            const SourceSetup& setup = tiles.to_dst ? core.source_a : core.source_b;
            read_operand(name, a, tile_a, setup, tiles.to_dst ? "SrcA" : "SrcB", true, tiles.b, at);
            break;
        }
        case Kind::Matmul:
            for (u32 r = 0; r < mode.rows; ++r) read_operand(name, a, tile_a + r * mode.depth, core.source_b, "SrcB", false, tiles.b, at);
            for (u32 c = 0; c < mode.columns; ++c) {
                read_operand(name, b, tile_b + c, core.source_a, "SrcA", false, tiles.a, at);
                if (mode.transpose) transpose_tile(&tiles.a[c * kTile]);
            }
            break;
        case Kind::Reduce: {
            const bool swapped = scaler_in_srca(mode);
            read_operand(name, a, tile_a, swapped ? core.source_b : core.source_a, swapped ? "SrcB" : "SrcA", false, tiles.a, at);
            read_operand(name, b, tile_b, swapped ? core.source_a : core.source_b, swapped ? "SrcA" : "SrcB", false, tiles.b, at);
            break;
        }
        default:
            if (mode.reuse == 0) {
                read_operand(name, a, tile_a, core.source_a, "SrcA", false, tiles.a, at);
                read_operand(name, b, tile_b, core.source_b, "SrcB", false, tiles.b, at);
            } else if (mode.reuse == 1) {
                read_operand(name, a, tile_a, core.source_b, "SrcB", false, tiles.b, at);
            } else {
                read_operand(name, a, tile_a, core.source_a, "SrcA", false, tiles.a, at);
            }
    }
    ++stats.unpacked;
    core.sources.push_back(std::move(tiles));
}

int broadcast_index(u32 bcast, int i, u32 row) {
    const int face = i >> 8, r = ((face >> 1) << 4) + ((i >> 4) & 15), c = ((face & 1) << 4) + (i & 15);
    switch (bcast) {
        case 1: return tile_index(r, 0);
        case 2: return tile_index(static_cast<int>(row), c);
        case 3: return 0;
        default: return i;
    }
}

void copy_into(const SourceTiles& tiles, u32* dst, bool wide) {
    for (int i = 0; i < kTile; ++i) dst[i] = tiles.to_dst || !wide ? tiles.a[i] : fpu_add(tiles.a[i], 0, false, 0, {true});
}

void spread_into(const SourceTiles& tiles, u32* dst, u32 bcast, bool wide) {
    for (int i = 0; i < kTile; ++i) {
        const u32 value = tiles.b[broadcast_index(bcast, i, 0)];
        dst[i] = tiles.to_dst || !wide ? value : fpu_add(value, 0, false, 0, {true});
    }
}

void binary_into(const SourceTiles& tiles, u32* dst, const Mode& mode, bool accumulates, u32 row, Width width) {
    const u32 keep_a = source_mask(tiles.setup_a, width.wide), keep_b = source_mask(tiles.setup_b, width.wide);
    for (int i = 0; i < kTile; ++i) {
        const u32 left = mode.reuse == 1 ? dst[i] & keep_a : tiles.a[i];
        const u32 right = mode.reuse == 2 ? dst[i] & keep_b : tiles.b[broadcast_index(mode.bcast, i, row)];
        if (mode.kind == Kind::Mul) {
            dst[i] = fpu_multiply(left, right, mode.reuse ? 0 : dst[i], machine.phases, width);
        } else {
            dst[i] = fpu_add(left, right, mode.kind == Kind::Sub, accumulates ? dst[i] : 0, width);
        }
    }
}

// An accumulating op needs a slot that is zero, or that it means to add to.
void check_accumulation(const char* name, const Mode& mode, u32 slot, bool intended, Loc at) {
    const Slot& state = current_half().slots[slot];
    if (!state.written || intended || machine.says_accumulate(at)) return;
    if (state.writer == mode.kind && !state.consumed) return;
    if (state.writer == Kind::Copy && !state.consumed) return;  // an addend or partial sums loaded just for this
    report("dirty-accumulate", at, "%s adds to DST[%u], which line %d wrote in this window", name, slot, state.at.line);
}

void math_half(const char* name, const Mode& mode, u32 dst, u32 extra, Loc at) {
    Core& core = self_core();
    check_mode(name, core.math_mode, mode, false, at);
    const Mode set = core.math_mode;
    wait_until([&] { return !core.sources.empty(); }, name, at, [] { return std::string("waits for unpack to fill Src"); });
    const SourceTiles tiles = std::move(core.sources.front());
    core.sources.pop_front();
    if (!same_mode(tiles.mode, mode, true)) {
        report("source-mismatch", at, "%s finds in Src what another op unpacked", name);
        return;
    }
    const u32 results = mode.kind == Kind::Matmul ? mode.rows * mode.columns : 1u;
    for (u32 i = 0; i < results; ++i) {
        if (!may_use_slot(dst + i, name, at)) return;
    }
    ++stats.math;
    if (mode.reuse) may_read_slot(dst, name, at);
    const bool adds = mode.kind == Kind::Mul || mode.kind == Kind::Add || mode.kind == Kind::Sub;
    const bool accumulates = adds && set.accumulate && !mode.reuse;
    const bool always = mode.kind == Kind::Matmul || mode.kind == Kind::Reduce || (mode.kind == Kind::Mul && !mode.reuse);
    if (always || accumulates) {
        const bool intended = adds && set.accumulate && set.stated;
        for (u32 i = 0; i < results; ++i) check_accumulation(name, mode, dst + i, intended, at);
    }
    u32* target = slot_values(dst);
    const Slot& before = current_half().slots[dst];
    const bool kept = before.written && before.reduced && (mode.reuse || accumulates || mode.kind == Kind::Mul);
    const bool reduced = mode.kind == Kind::Reduce || kept;
    u32 hits = 0;
    const Width width{core.wide, machine.erratum ? &hits : nullptr};
    switch (mode.kind) {
        case Kind::Copy:
        case Kind::Transpose: {
            SourceTiles moved = tiles;
            if (mode.kind == Kind::Transpose || mode.transpose) transpose_tile(moved.a.data());
            copy_into(moved, target, core.wide);
            break;
        }
        case Kind::UnaryBcast:
            if (mode.bcast == 2 && core.wide && !tiles.to_dst)
                report("broken-on-hardware", at, "unary_bcast<ROW> of a buffer that goes through Src gives garbage in 32-bit DST");
            if (tiles.to_dst && core.math_offset && machine.metal < 81)
                report("broken-on-hardware", at,
                       "unary_bcast of 32-bit tiles lands %u tiles too far: before ttnn 0.81 it counts from the tile that math used last",
                       core.math_offset);
            spread_into(tiles, target, mode.bcast, core.wide);
            break;
        case Kind::Matmul:
            for (u32 r = 0; r < mode.rows; ++r)
                for (u32 c = 0; c < mode.columns; ++c)
                    matmul_tile(&tiles.b[r * kTile], &tiles.a[c * kTile], slot_values(dst + r * mode.columns + c), machine.phases, width);
            break;
        case Kind::Reduce: {
            const SourceSetup& data = scaler_in_srca(mode) ? tiles.setup_b : tiles.setup_a;
            reduce_tile(tiles.a.data(), tiles.b.data(), target, static_cast<Pool>(mode.pool), static_cast<Axis>(mode.axis), machine.phases,
                        width, !current_half().slots[dst].written, source_mask(data, core.wide));
            break;
        }
        default: binary_into(tiles, target, mode, accumulates, extra, width);
    }
    for (; hits; --hits) report("near-cancellation", at, "%s: the chip makes a sum of -1 unit of its grid 2^27 times too large", name);
    for (u32 i = 0; i < results; ++i) wrote_slot(dst + i, mode.kind, reduced, at);
    const bool unpacked_there = tiles.to_dst && (mode.kind == Kind::Copy || mode.kind == Kind::UnaryBcast);
    if (!unpacked_there) core.math_offset = dst + results - 1;
}

}  // namespace

void execute(const char* name, Mode mode, u32 a, u32 b, u32 tile_a, u32 tile_b, u32 dst, u32 extra, Loc at) {
    self().last = at;
    if (self_role() == Role::Pack) return;
    check_started(name, at);
    note("execute", at, mode, {a, b, dst});
    if (self_role() == Role::Unpack) return unpack_half(name, mode, a, b, tile_a, tile_b, at);
    math_half(name, mode, dst, extra, at);
}

// The transpose flag of these two belongs to the init alone, so they follow what their own thread was set up for.
void copy_tile_now(u32 cb, u32 tile, u32 dst, Loc at) {
    Mode mode;
    mode.kind = Kind::Copy;
    const Mode& set = self_role() == Role::Unpack ? self_core().unpack_mode : self_core().math_mode;
    if (set.kind == Kind::Copy) mode.transpose = set.transpose;
    execute("copy_tile", mode, cb, cb, tile, tile, dst, 0, at);
}

void matmul_tiles_now(u32 a, u32 b, u32 tile_a, u32 tile_b, u32 dst, Loc at) {
    Mode mode;
    mode.kind = Kind::Matmul;
    const Mode& set = self_role() == Role::Unpack ? self_core().unpack_mode : self_core().math_mode;
    if (set.kind == Kind::Matmul) mode.transpose = set.transpose;
    execute("matmul_tiles", mode, a, b, tile_a, tile_b, dst, 0, at);
}

void math_init(const char* name, Mode mode, Loc at) {
    self().last = at;
    if (self_role() != Role::Math) return;
    check_started(name, at);
    note("init", at, mode, {});
    set_math_mode(mode);
}

void transpose_dest(const char* name, u32 dst, Loc at) {
    self().last = at;
    if (self_role() != Role::Math) return;
    check_started(name, at);
    Mode mode;
    mode.kind = Kind::TransposeDest;
    note("execute", at, mode, {});
    check_mode(name, self_core().math_mode, mode, false, at);
    if (!may_read_slot(dst, name, at)) return;
    transpose_tile(slot_values(dst));
    wrote_slot(dst, Kind::TransposeDest, false, at);
}

}  // namespace tw
