// The packer: DST tiles to the back of a buffer.
#include "findings.h"
#include "recording.h"
#include "registers.h"
#include "scheduler.h"
#include "setup.h"

namespace tw {

namespace {

bool kept_by_mask(Axis axis, int i) {
    const int face = i >> 8, r = ((face >> 1) << 4) + ((i >> 4) & 15), c = ((face & 1) << 4) + (i & 15);
    if (axis == Axis::Row) return c == 0;
    if (axis == Axis::Column) return r == 0;
    return i == 0;
}

void set_format(u32 cb, Loc at) {
    Core& core = self_core();
    core.pack_known = true;
    core.pack_format = core.buffer(cb, at).format;
}

}  // namespace

void pack_init(u32 cb, Loc at) {
    self().last = at;
    if (self_role() != Role::Pack) return;
    set_format(cb, at);
}

void pack_reconfig(u32 cb, Loc at) {
    self().last = at;
    if (self_role() != Role::Pack) return;
    check_started("pack_reconfig_data_format", at);
    note("pack_reconfig_data_format", at, {cb});
    set_format(cb, at);
}

void pack_l1_accumulate(bool enable, Loc at) {
    self().last = at;
    if (self_role() != Role::Pack) return;
    note("pack_reconfig_l1_acc", at, {enable});
    self_core().pack.accumulate = enable;
}

void pack_relu(u32 mode, u32 threshold, Loc at) {
    self().last = at;
    if (self_role() != Role::Pack) return;
    note("pack_relu_config", at, {mode, threshold});
    if (threshold & 0x8000u) report("negative-threshold", at, "the packer's ReLU threshold must not be negative");
    self_core().pack.relu = {static_cast<Relu::Mode>(mode), static_cast<u16>(threshold)};
}

void pack(u32 dst, u32 cb, u32 page, bool any_order, Loc at) {
    self().last = at;
    if (self_role() != Role::Pack) return;
    check_started("pack_tile", at);
    note("pack_tile", at, {dst, cb});
    Core& core = self_core();
    Buffer& buffer = core.buffer(cb, at);
    if (!buffer.producer) buffer.producer = &self();
    if (buffer.producer != &self())
        report("two-owners", at, "buffer %u has two producer threads: %s and pack", cb, role_name(buffer.producer->role));
    const u32 offset = any_order ? page : buffer.packed++;
    const bool exists = may_read_slot(dst, "pack_tile", at);
    if (core.pack_known && core.pack_format != buffer.format) {
        report("format-mismatch", at, "pack_tile to buffer %u (%s) with the packer set up for %s: pack_reconfig_data_format is missing", cb,
               format_name(buffer.format), format_name(core.pack_format));
    }
    check_page_size("pack_tile", buffer, at);
    if (offset >= buffer.reserved) {
        report("missing-reserve", at, "pack_tile writes page %u of buffer %u after reserving %u", offset, cb, buffer.reserved);
    }
    u32 target = buffer.write + offset;
    if (target >= buffer.pages) {
        report("buffer-wrap", at, "pack_tile writes page %u of buffer %u past its end (%u pages, back at %u)", offset, cb, buffer.pages,
               buffer.write);
        target %= buffer.pages;
    }
    for (Buffer* view = &buffer; view; view = view->alias) {
        const u32 place = target - view->write;
        if (place < 64) view->filled |= u64{1} << place;
    }
    if (!exists) return;
    ++stats.packed;
    PackSetup setup = core.pack;
    setup.format = buffer.format;
    setup.wide = core.wide;
    setup.precise = machine.precise;
    u32 masked[kTile];
    const u32* values = slot_values(dst);
    if (core.mask_active) {
        if (!current_half().slots[dst].reduced) {
            report("missing-reduce-uninit", at,
                   "pack_tile of DST[%u], which is no reduction, under the edge mask of reduce_init (line %d): reduce_uninit is missing", dst,
                   core.mask_at.line);
        }
        for (int i = 0; i < kTile; ++i) masked[i] = kept_by_mask(core.mask_axis, i) ? values[i] : 0;
        values = masked;
    }
    u8* l1 = reinterpret_cast<u8*>(static_cast<std::uintptr_t>(buffer.base)) + static_cast<u64>(target) * buffer.page_bytes;
    pack_tile(values, setup, l1);
}

}  // namespace tw
