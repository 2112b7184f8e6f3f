// The vector unit: checks that the right init ran, then applies one function to tiles in DST.
#include <string_view>

#include "../numerics/sfpu.h"
#include "findings.h"
#include "recording.h"
#include "registers.h"
#include "scheduler.h"
#include "setup.h"

namespace tw {

namespace {

constexpr u32 kRowsPerStore = 2;
constexpr u32 kFaces = 0xF;
constexpr int kConstants = 0;  // index of their owner

VectorState& state_of(bool pack_thread) { return self_core().vector[pack_thread ? 1 : 0]; }

bool runs_here(bool pack_thread) { return self_role() == (pack_thread ? Role::Pack : Role::Math); }

// An init that does the same for every width of DST does for any.
bool differs(u32 init, u32 call) {
    const u32 compared = init & kWidthless ? ~(kWidthless | kNarrow) : ~0u;
    return (init & compared) != (call & compared);
}

void check_init(const char* name, const char* init, u32 variant, const VectorState& state, Loc at) {
    const InitClass kind = init_class(init, variant & ~kNarrow);
    if (!state.any_init) {
        report("missing-init", at, "%s before any vector-unit init: %s() is missing", name, init);
        return;
    }
    if (kind == InitClass::Stateless) return;
    if (kind == InitClass::AddressMode) {
        if (!state.address_step) report("missing-init", at, "%s without %s(): its address mode was never set", name, init);
        if (state.address_step > kRowsPerStore) report("wrong-init", at, "%s needs %s(): another init changed its address mode", name, init);
        return;
    }
    const int resource = static_cast<int>(kind) - static_cast<int>(InitClass::Constants);
    const std::string& owner = state.owner[resource];
    if (owner.empty()) {
        report("missing-init", at, "%s without %s()", name, init);
    } else if (owner != init) {
        report("wrong-init", at, "%s needs %s(), but %s() ran last and overwrote its state", name, init, owner.c_str());
    } else if (!(variant & kInitBlind) && differs(state.variant[resource], variant)) {
        report("wrong-init", at, "%s and %s() disagree in their template arguments", name, init);
    }
}

}  // namespace

void sfpu_init(const char* name, u32 variant, const u32* args, u32 count, bool pack_thread, Loc at) {
    self().last = at;
    if (!runs_here(pack_thread)) return;
    check_started(name, at);
    note_words(name, at, {variant & ~kInitBlind, kFaces}, args, count);
    VectorState& state = state_of(pack_thread);
    state.any_init = true;
    state.init_args[name] = std::vector<u32>(args, args + count);
    const std::string_view called = name;
    const bool fast_exp = called == "exp_tile_init" && (variant & 1u);
    if (fills_replay(name) || (fast_exp && count > 1 && args[1] == 0)) self_core().replay_taken = name;
    if (stops_stepping(name)) state.stepping = false;
    const InitClass kind = init_class(name, variant);
    if (kind == InitClass::Stateless) return;
    if (kind == InitClass::AddressMode || kind == InitClass::Macros) state.address_step = kRowsPerStore;
    if (called == "square_tile_init" && machine.metal >= 81) state.address_step = 2 * kRowsPerStore;
    if (kind == InitClass::AddressMode) return;
    const int resource = static_cast<int>(kind) - static_cast<int>(InitClass::Constants);
    state.owner[resource] = name;
    state.variant[resource] = variant;
    if (fast_exp || called == "typecast_tile_init") state.owner[kConstants] = name;
}

void sfpu(const char* name, const char* init, u32 variant, const u32* args, u32 count, u32 faces, bool pack_thread, Loc at) {
    self().last = at;
    if (!runs_here(pack_thread)) return;
    check_started(name, at);
    note_words(name, at, {variant & ~kInitBlind, faces}, args, count);
    VectorState& state = state_of(pack_thread);
    check_init(name, init, variant, state, at);
    if (state.stepping && std::string_view(init) != "exp_tile_init") {
        report("wrong-init", at, "%s after exp_tile without clamp, which leaves the vector unit stepping through DST", name);
        state.stepping = false;
    }
    if (state.owner[1] != init) state.owner[1].clear();  // any other op overwrites the look-up registers
    if (writes_constants(name)) state.owner[kConstants] = init;
    const bool exact_exp = std::string_view(name) == "exp_tile" && !(variant & 1u);
    const bool narrow = !self_core().wide || (variant & kNarrow);
    if (!pack_thread && (fills_replay(init) || (exact_exp && narrow))) self_core().replay_taken = name;
    const VectorOp* op = find_vector_op(name);
    if (!op) {
        report("not-modelled", at, "%s is not modelled", name);
        return;
    }
    if (op->inputs == 1 && op->outputs == 1 && args[0] == args[1]) {  // a copy onto itself only moves the address
        self_core().math_offset = 0;
        return;
    }
    if (!pack_thread) self_core().math_offset = op->inputs + op->outputs == 1 ? args[0] : 0;
    bool reduced = false;
    VectorCall call;
    call.wide = self_core().wide;
    call.variant = variant & ~(kInitBlind | kNarrow);
    call.narrow = call.wide && (variant & kNarrow);
    call.faces = faces;
    const u32 slots = op->inputs + op->outputs;
    if (count < slots) {
        report("not-modelled", at, "%s takes %u DST indices, got %u", name, slots, count);
        return;
    }
    for (u32 i = 0; i < op->inputs; ++i) {
        if (!may_read_slot(args[i], name, at)) return;
        reduced = reduced || current_half().slots[args[i]].reduced;
        call.in[i] = slot_values(args[i]);
    }
    // In-place ops name their slot once.
    const u32 target = args[op->outputs ? op->inputs : 0];
    if (!may_use_slot(target, name, at)) return;
    call.out = slot_values(target);
    call.params = args + slots;
    call.param_count = count - slots;
    const auto init_args = state.init_args.find(init);
    if (init_args != state.init_args.end()) {
        call.init_params = init_args->second.data();
        call.init_param_count = static_cast<u32>(init_args->second.size());
    }
    ++stats.vector;
    run_vector_op(*op, call);
    if (std::string_view(name) == "exp_tile" && (variant & 1u) && call.init_param_count > 1 && call.init_param(1) == 0) state.stepping = true;
    wrote_slot(target, Kind::None, reduced, at);
}

}  // namespace tw
