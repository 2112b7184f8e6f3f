#include "setup.h"

#include <string>

#include "findings.h"
#include "recording.h"
#include "registers.h"
#include "scheduler.h"

namespace tw {

namespace {

const char* kind_name(Kind kind) {
    constexpr const char* names[] = {"nothing", "copy", "add", "sub", "mul", "matmul", "reduce", "transpose", "unary_bcast", "transpose_dest"};
    return names[static_cast<int>(kind)];
}

std::string mode_name(const Mode& mode, bool unpack) {
    constexpr const char* bcasts[] = {"", "_bcast_cols", "_bcast_rows", "_bcast_scalar"};
    constexpr const char* pools[] = {"_sum", "_avg", "_max", "_min"};
    constexpr const char* axes[] = {"_row", "_col", "_scalar"};
    const bool binary = mode.kind == Kind::Add || mode.kind == Kind::Sub || mode.kind == Kind::Mul;
    std::string text = unpack && binary ? "binary" : kind_name(mode.kind);
    text += bcasts[mode.bcast & 3];
    if (mode.reuse) text += mode.reuse == 1 ? "_reuse_dest_srca" : "_reuse_dest_srcb";
    if (mode.kind == Kind::Reduce) text += std::string(pools[mode.pool & 3]) + axes[mode.axis % 3];
    if (mode.transpose) text += " transposed";
    if (mode.kind == Kind::Matmul && (mode.rows != 1 || mode.columns != 1)) {
        text += " " + std::to_string(mode.rows) + "x" + std::to_string(mode.columns);
        if (unpack) text += " kt " + std::to_string(mode.depth);
    }
    return text;
}

Kind unpack_kind(Kind kind) { return kind == Kind::Sub || kind == Kind::Mul ? Kind::Add : kind; }

SourceSetup setup_of(u32 cb, Loc at) {
    const Buffer& buffer = self_core().buffer(cb, at);
    return {true, buffer.format, buffer.to_dst};
}

void configure(bool side_a, bool side_b, u32 a, u32 b, Loc at) {
    if (self_role() != Role::Unpack) return;
    Core& core = self_core();
    if (side_a) core.source_a = setup_of(a, at);
    if (side_b) core.source_b = setup_of(b, at);
}

}  // namespace

// Ops whose init records instructions.
bool replays(const Mode& mode, bool wide) {
    if (mode.kind == Kind::Reduce) return reduces_by_matmul(mode);
    return mode.kind == Kind::Matmul || mode.kind == Kind::TransposeDest || (mode.kind == Kind::Transpose && wide);
}

bool reduces_by_matmul(const Mode& mode) { return mode.axis == 0 && mode.pool != 2; }

bool scaler_in_srca(const Mode& mode) { return reduces_by_matmul(mode) && machine.metal >= 78; }

u32 source_mask(const SourceSetup& setup, bool wide) {
    return wide && setup.format == Format::Float32 && !setup.to_dst ? 0xFFFFE000u : 0xFFFF0000u;
}

void check_started(const char* name, Loc at) {
    if (self_core().started[static_cast<int>(self_role())]) return;
    self_core().started[static_cast<int>(self_role())] = true;  // say it once
    report("missing-startup", at, "%s before %s", name,
           machine.metal >= 69 ? "compute_kernel_hw_startup()" : "binary_op_init_common(), init_sfpu() or mm_init()");
}

bool same_mode(const Mode& have, const Mode& want, bool unpack) {
    if (unpack ? unpack_kind(have.kind) != unpack_kind(want.kind) : have.kind != want.kind) return false;
    if (have.bcast != want.bcast || have.reuse != want.reuse || have.transpose != want.transpose) return false;
    if (have.kind == Kind::Reduce && (have.pool != want.pool || have.axis != want.axis)) return false;
    if (have.kind != Kind::Matmul) return true;
    return have.rows == want.rows && have.columns == want.columns && (!unpack || have.depth == want.depth);
}

void check_mode(const char* name, const Mode& have, const Mode& want, bool unpack, Loc at) {
    const Core& core = self_core();
    if (!unpack && core.replay_taken && replays(want, core.wide)) {
        report("wrong-init", at, "%s: %s has overwritten its instructions in the replay buffer, run its init again", name,
               core.replay_taken);
        return;
    }
    if (same_mode(have, want, unpack)) return;
    if (have.kind == Kind::None) {
        report("missing-init", at, "%s without its init: the %s was never set up", name, unpack ? "unpacker" : "math unit");
        return;
    }
    report("wrong-init", at, "%s needs the %s set up for %s, the last init was for %s", name, unpack ? "unpacker" : "math unit",
           mode_name(want, unpack).c_str(), mode_name(have, unpack).c_str());
}

void check_source_format(const char* name, const Buffer& buffer, const SourceSetup& setup, const char* side, Loc at) {
    if (!setup.known) return;
    if (setup.format == buffer.format && setup.to_dst == buffer.to_dst) return;
    report("format-mismatch", at, "%s reads buffer %u (%s%s) through %s, which is set up for %s%s: reconfig_data_format is missing", name,
           buffer.id, format_name(buffer.format), buffer.to_dst ? ", unpack to dest" : "", side, format_name(setup.format),
           setup.to_dst ? ", unpack to dest" : "");
}

void check_page_size(const char* name, const Buffer& buffer, Loc at) {
    if (buffer.page_bytes == format_tile_bytes(buffer.format)) return;
    report("page-size", at, "%s uses buffer %u as %s tiles of %u bytes, its pages have %u", name, buffer.id, format_name(buffer.format),
           format_tile_bytes(buffer.format), buffer.page_bytes);
}

void hw_startup(u32 a, u32 b, u32 out, bool reverse, bool must_be_first, Loc at) {
    self().last = at;
    Core& core = self_core();
    bool& started = core.started[static_cast<int>(self_role())];
    if (must_be_first && started) {
        report("late-startup", at, "compute_kernel_hw_startup() must be the first compute call and run once");
    }
    if (started && self_role() == Role::Math) start_anew(at);
    started = true;
    note("start", at, {a, b, out});
    configure(true, true, reverse ? b : a, reverse ? a : b, at);
    if (self_role() == Role::Pack) pack_init(out, at);
}

void set_math_mode(const Mode& mode) {
    self_core().math_mode = mode;
    self_core().replay_taken = nullptr;
}

void init(const char* name, Mode mode, u32 a, u32 b, u32 parts, Loc at) {
    self().last = at;
    if (self_role() == Role::Pack) return;
    check_started(name, at);
    self_core().buffer(a, at);
    self_core().buffer(b, at);
    if (self_role() == Role::Unpack && (parts & kUnpack)) self_core().unpack_mode = mode;
    if (self_role() == Role::Math && (parts & kMath)) set_math_mode(mode);
    if (parts & (self_role() == Role::Unpack ? kUnpack : kMath)) note("init", at, mode, {a, b});
}

void reduce_init(Mode mode, u32 data, u32 scaler, u32 out, Loc at) {
    if (self_role() != Role::Pack) return init("reduce_init", mode, data, scaler, kBoth, at);
    self().last = at;
    check_started("reduce_init", at);
    note("init", at, mode, {data, scaler});
    Core& core = self_core();
    core.buffer(out, at);
    core.mask_active = true;
    core.mask_axis = static_cast<Axis>(mode.axis);
    core.mask_at = at;
}

void reduce_uninit(Loc at) {
    self().last = at;
    note("reduce_uninit", at);
    if (self_role() == Role::Pack) self_core().mask_active = false;
}

void reconfig(bool side_a, bool side_b, u32 a, u32 b, Loc at) {
    self().last = at;
    if (self_role() == Role::Pack) return;
    check_started("reconfig_data_format", at);
    note(side_a && side_b ? "reconfig_data_format" : side_a ? "reconfig_data_format_srca" : "reconfig_data_format_srcb", at, {a, b});
    configure(side_a, side_b, a, b, at);
}

}  // namespace tw
