// DST: two halves handed back and forth between math and the packer, zero at every acquire.
#include "registers.h"

#include <algorithm>

#include "findings.h"
#include "recording.h"
#include "scheduler.h"

namespace tw {

void prepare_registers(Core& core) {
    for (DstHalf& half : core.halves) {
        half.values.assign(core.capacity() * kTile, 0);
        half.slots.assign(core.capacity(), Slot{});
        half.ready = false;
    }
}

DstHalf& current_half() {
    Core& core = self_core();
    return core.halves[self_role() == Role::Pack ? core.pack_half : core.math_half];
}

u32* slot_values(u32 slot) { return current_half().values.data() + static_cast<std::size_t>(slot) * kTile; }

bool may_use_slot(u32 slot, const char* name, Loc at) {
    const Core& core = self_core();
    const bool packing = self_role() == Role::Pack;
    if (packing ? !core.pack_holds : !core.math_holds) {
        report(packing ? "pack-outside-window" : "math-outside-window", at, "%s %s", name,
               packing ? "outside tile_regs_wait() .. tile_regs_release()" : "outside tile_regs_acquire() .. tile_regs_commit()");
    }
    if (slot < core.capacity()) return true;
    report("dst-out-of-range", at, "%s uses DST[%u]; %s %u-bit DST has %u tiles", name, slot,
           core.full_sync ? "full-sync" : "half-sync", core.wide ? 32u : 16u, core.capacity());
    return false;
}

bool may_read_slot(u32 slot, const char* name, Loc at) {
    if (!may_use_slot(slot, name, at)) return false;
    Slot& state = current_half().slots[slot];
    if (!state.written) report("read-unwritten", at, "%s reads DST[%u], which nothing wrote since tile_regs_acquire()", name, slot);
    state.consumed = true;
    return true;
}

void wrote_slot(u32 slot, Kind writer, bool reduced, Loc at) {
    Slot& state = current_half().slots[slot];
    state.written = true;
    state.consumed = false;
    state.reduced = reduced;
    state.writer = writer;
    state.at = at;
}

void start_anew(Loc at) {
    Core& core = self_core();
    bool results = false;
    for (const Slot& slot : core.halves[core.math_half].slots) results = results || slot.written;
    if (core.math_holds && !core.math_anew && !core.full_sync && results) {
        report("late-startup", at, "the init goes back to the first half of DST, and results may be in the other");
    }
    core.math_anew = true;
}

void regs_acquire(Loc at) {
    self().last = at;
    if (self_role() != Role::Math) return;
    note("tile_regs_acquire", at);
    Core& core = self_core();
    if (core.math_holds) report("acquire-twice", at, "tile_regs_acquire() again without tile_regs_commit()");
    DstHalf& half = core.halves[core.math_half];
    wait_until([&] { return !half.ready; }, "tile_regs_acquire", at,
               [] { return std::string("waits for the packer to release DST"); });
    core.math_holds = true;
}

void regs_commit(Loc at) {
    self().last = at;
    if (self_role() != Role::Math) return;
    note("tile_regs_commit", at);
    Core& core = self_core();
    if (!core.math_holds) {
        report("commit-without-acquire", at, "tile_regs_commit() without tile_regs_acquire()");
        DstHalf& half = core.halves[core.math_half];
        wait_until([&] { return !half.ready; }, "tile_regs_commit", at,
                   [] { return std::string("waits for the packer to release DST"); });
    }
    core.halves[core.math_half].ready = true;
    core.math_half = (core.math_half + 1) % core.halves_in_use();
    if (!core.full_sync) core.math_offset = 0;
    core.math_holds = false;
    core.math_anew = false;
}

void regs_wait(Loc at) {
    self().last = at;
    if (self_role() != Role::Pack) return;
    note("tile_regs_wait", at);
    Core& core = self_core();
    DstHalf& half = core.halves[core.pack_half];
    wait_until([&] { return half.ready; }, "tile_regs_wait", at, [] { return std::string("waits for math to commit DST"); });
    core.pack_holds = true;
}

void regs_release(Loc at) {
    self().last = at;
    if (self_role() != Role::Pack) return;
    note("tile_regs_release", at);
    Core& core = self_core();
    if (!core.pack_holds) {
        report("release-without-wait", at, "tile_regs_release() without tile_regs_wait()");
        return;
    }
    DstHalf& half = core.halves[core.pack_half];
    std::fill(half.values.begin(), half.values.end(), 0u);
    std::fill(half.slots.begin(), half.slots.end(), Slot{});
    half.ready = false;
    core.pack_half = (core.pack_half + 1) % core.halves_in_use();
    core.pack_holds = false;
}

void set_dest_width(bool wide, Loc at) {
    self().last = at;
    Core& core = self_core();
    if (self_role() != Role::Math || core.wide == wide) return;
    if (core.math_holds) report("width-inside-window", at, "the width of DST changes between tile_regs_acquire() and tile_regs_commit()");
    wait_until([&] { return !core.halves[0].ready && !core.halves[1].ready; }, "set_fp32_dest_acc", at,
               [] { return std::string("waits for the packer to drain DST"); });
    core.wide = wide;
    core.pack.wide = wide;
    prepare_registers(core);
}

}  // namespace tw
