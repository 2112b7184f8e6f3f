// The vector unit: checks that the right init ran, then applies one function to tiles in DST.
#include <string_view>

#include "../numerics/sfpu.h"
#include "findings.h"
#include "registers.h"
#include "scheduler.h"
#include "setup.h"

namespace tw {

namespace {

VectorState& state_of(bool pack_thread) { return self_core().vector[pack_thread ? 1 : 0]; }

bool runs_here(bool pack_thread) { return self_role() == (pack_thread ? Role::Pack : Role::Math); }

void check_init(const char* name, const char* init, u32 variant, const VectorState& state, Loc at) {
    const InitClass kind = init_class(init, variant);
    if (!state.any_init) {
        report("missing-init", at, "%s before any vector-unit init: %s() is missing", name, init);
        return;
    }
    if (kind == InitClass::Stateless) return;
    if (kind == InitClass::AddressMode) {
        if (!state.address_mode) report("missing-init", at, "%s without %s(): its address mode was never set", name, init);
        return;
    }
    const int resource = static_cast<int>(kind) - static_cast<int>(InitClass::Constants);
    const std::string& owner = state.owner[resource];
    if (owner.empty()) {
        report("missing-init", at, "%s without %s()", name, init);
    } else if (owner != init) {
        report("wrong-init", at, "%s needs %s(), but %s() ran last and overwrote its state", name, init, owner.c_str());
    } else if (!(variant & kInitBlind) && state.variant[resource] != variant) {
        report("wrong-init", at, "%s and %s() disagree in their template arguments", name, init);
    }
}

}  // namespace

void sfpu_init(const char* name, u32 variant, const u32* args, u32 count, bool pack_thread, Loc at) {
    self().last = at;
    if (!runs_here(pack_thread)) return;
    check_started(name, at);
    VectorState& state = state_of(pack_thread);
    state.any_init = true;
    state.init_args[name] = std::vector<u32>(args, args + count);
    const InitClass kind = init_class(name, variant);
    if (kind == InitClass::Stateless) return;
    if (kind == InitClass::AddressMode || kind == InitClass::Macros) state.address_mode = true;
    if (kind == InitClass::AddressMode) return;
    const int resource = static_cast<int>(kind) - static_cast<int>(InitClass::Constants);
    state.owner[resource] = name;
    state.variant[resource] = variant;
}

void sfpu(const char* name, const char* init, u32 variant, const u32* args, u32 count, u32 faces, bool pack_thread, Loc at) {
    self().last = at;
    if (!runs_here(pack_thread)) return;
    check_started(name, at);
    VectorState& state = state_of(pack_thread);
    check_init(name, init, variant, state, at);
    if (state.owner[1] != init) state.owner[1].clear();  // any other op overwrites the look-up registers
    const VectorOp* op = find_vector_op(name);
    if (!op) {
        report("not-modelled", at, "%s is not modelled", name);
        return;
    }
    bool reduced = false;
    VectorCall call;
    call.variant = variant & ~kInitBlind;
    call.wide = self_core().wide;
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
    wrote_slot(target, Kind::None, reduced, at);
}

}  // namespace tw
