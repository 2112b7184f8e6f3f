// Circular buffers: cumulative waits, one producer and one consumer, no wrap inside a block.
#include "findings.h"
#include "recording.h"
#include "noc.h"
#include "scheduler.h"

namespace tw {

Buffer& Core::buffer(u32 cb, Loc at) {
    if (cb < kMaxBuffers && buffers[cb].present) return buffers[cb];
    report("unknown-buffer", at, "buffer %u is not configured for this kernel", cb);
    halt_run();
}

namespace {

// In a compute kernel the unpack thread consumes and the pack thread produces; the calls are empty for the others.
bool consumes() { return self_role() != Role::Math && self_role() != Role::Pack; }
bool produces() { return self_role() != Role::Math && self_role() != Role::Unpack; }

void claim(Thread*& owner, const Buffer& buffer, const char* what, Loc at) {
    if (!owner) owner = &self();
    if (owner == &self()) return;
    report("two-owners", at, "buffer %u has two %s threads: %s and %s", buffer.id, what, role_name(owner->role), role_name(self_role()));
}

u32 within_capacity(const Buffer& buffer, u32 pages, const char* call, Loc at) {
    if (pages <= buffer.pages) return pages;
    report("beyond-capacity", at, "%s of %u pages on buffer %u, which has %u", call, pages, buffer.id, buffer.pages);
    return buffer.pages;
}

void advance(u32& pointer, const Buffer& buffer, u32 pages, const char* call, Loc at) {
    pointer += pages;
    if (pointer > buffer.pages) {
        report("buffer-wrap", at, "%s of %u pages crosses the end of buffer %u (%u pages): the hardware does not wrap inside a block",
               call, pages, buffer.id, buffer.pages);
    }
    if (pointer >= buffer.pages) pointer -= buffer.pages;
}

std::string counts(const Buffer& buffer, u32 wanted, u32 have, const char* unit) {
    char text[120];
    std::snprintf(text, sizeof text, "on buffer %u wants %u %s, has %u", buffer.id, wanted, unit, have);
    return text;
}

}  // namespace

void cb_wait(u32 cb, u32 pages, Loc at) {
    self().last = at;
    if (!consumes()) return;
    note("cb_wait_front", at, {cb, pages});
    Buffer& buffer = self_core().buffer(cb, at);
    claim(buffer.consumer, buffer, "consumer", at);
    pages = within_capacity(buffer, pages, "cb_wait_front", at);
    wait_until([&] { return buffer.available() >= pages; }, "cb_wait_front", at,
               [&] { return counts(buffer, pages, buffer.available(), "pages"); }, &buffer, pages, false);
    ++buffer.waits;
    buffer.waited_at = at;
    if (pages > buffer.waited) buffer.waited = pages;
}

void cb_pop(u32 cb, u32 pages, Loc at) {
    self().last = at;
    if (!consumes()) return;
    note("cb_pop_front", at, {cb, pages});
    Buffer& buffer = self_core().buffer(cb, at);
    claim(buffer.consumer, buffer, "consumer", at);
    if (pages > buffer.waited) {
        if (pages > buffer.available()) {
            report("pop-beyond", at, "cb_pop_front of %u pages on buffer %u, which holds %u", pages, cb, buffer.available());
            pages = buffer.available();
        } else {
            report("missing-wait", at, "cb_pop_front of %u pages on buffer %u after waiting for %u", pages, cb, buffer.waited);
        }
    }
    check_writes_sent(self(), buffer.base + buffer.read * buffer.page_bytes, pages * buffer.page_bytes, at);
    advance(buffer.read, buffer, pages, "cb_pop_front", at);
    ++buffer.pops;
    buffer.acked += pages;
    buffer.waited -= pages < buffer.waited ? pages : buffer.waited;
}

void cb_reserve(u32 cb, u32 pages, Loc at) {
    self().last = at;
    if (!produces()) return;
    note("cb_reserve_back", at, {cb, pages});
    Buffer& buffer = self_core().buffer(cb, at);
    claim(buffer.producer, buffer, "producer", at);
    pages = within_capacity(buffer, pages, "cb_reserve_back", at);
    wait_until([&] { return buffer.space() >= pages; }, "cb_reserve_back", at,
               [&] { return counts(buffer, pages, buffer.space(), "free pages"); }, &buffer, pages, true);
    if (pages > buffer.reserved) buffer.reserved = pages;
}

void cb_push(u32 cb, u32 pages, Loc at) {
    self().last = at;
    if (!produces()) return;
    note("cb_push_back", at, {cb, pages});
    Buffer& buffer = self_core().buffer(cb, at);
    claim(buffer.producer, buffer, "producer", at);
    if (buffer.fed) report("two-owners", at, "buffer %u was waited for as an input before, now the kernel pushes to it", cb);
    if (pages > buffer.reserved) {
        if (pages > buffer.space()) {
            report("push-beyond", at, "cb_push_back of %u pages on buffer %u, which has room for %u", pages, cb, buffer.space());
            pages = buffer.space();
        } else {
            report("missing-reserve", at, "cb_push_back of %u pages on buffer %u after reserving %u", pages, cb, buffer.reserved);
        }
    }
    check_reads_landed(self(), buffer.base + buffer.write * buffer.page_bytes, pages * buffer.page_bytes, at);
    if (self_role() == Role::Pack && !buffer.backed) {
        for (u32 i = 0; i < pages && i < 64; ++i) {
            if (buffer.filled >> i & 1u) continue;
            report("push-unwritten", at, "cb_push_back hands out page %u of buffer %u that nothing was packed into", i, cb);
            break;
        }
    }
    buffer.filled = pages >= 64 ? 0 : buffer.filled >> pages;
    advance(buffer.write, buffer, pages, "cb_push_back", at);
    buffer.received += pages;
    buffer.reserved -= pages < buffer.reserved ? pages : buffer.reserved;
    buffer.packed = 0;
}

bool cb_has_pages(u32 cb, u32 pages, Loc at) {
    Buffer& buffer = self_core().buffer(cb, at);
    if (buffer.available() < pages) yield_now();  // a poll must let the producer run
    return buffer.available() >= pages;
}

bool cb_has_space(u32 cb, u32 pages, Loc at) {
    Buffer& buffer = self_core().buffer(cb, at);
    if (buffer.space() < pages) yield_now();
    return buffer.space() >= pages;
}

u32 cb_read_address(u32 cb, Loc at) {
    const Buffer& buffer = self_core().buffer(cb, at);
    return buffer.base + buffer.read * buffer.page_bytes;
}

u32 cb_write_address(u32 cb, Loc at) {
    const Buffer& buffer = self_core().buffer(cb, at);
    return buffer.base + buffer.write * buffer.page_bytes;
}

u32 cb_page_bytes(u32 cb, Loc at) { return self_core().buffer(cb, at).page_bytes; }
u32 cb_page_count(u32 cb, Loc at) { return self_core().buffer(cb, at).pages; }
u32 cb_format(u32 cb, Loc at) { return static_cast<u32>(self_core().buffer(cb, at).format); }

u32 cb_tile_address(u32 cb, u32 tile, Loc at) {
    const Buffer& buffer = self_core().buffer(cb, at);
    return buffer.base + (buffer.read + tile) * buffer.page_bytes;
}

// The unpack thread reads, and sends the word to the other two.
u32 cb_tile_value(u32 cb, u32 tile, u32 element, Loc at) {
    self().last = at;
    Core& core = self_core();
    if (self_role() == Role::Math || self_role() == Role::Pack) {
        std::deque<u32>& box = core.mail[self_role() == Role::Pack];
        wait_until([&] { return !box.empty(); }, "read_tile_value", at, [] { return std::string("waits for the unpack thread"); });
        const u32 word = box.front();
        box.pop_front();
        return word;
    }
    const Buffer& buffer = core.buffer(cb, at);
    if (tile >= buffer.waited) {
        report("missing-wait", at, "read_tile_value of tile %u of buffer %u after waiting for %u", tile, cb, buffer.waited);
    }
    const u32 address = cb_tile_address(cb, tile, at) + element * 4;
    u32 word;
    std::memcpy(&word, reinterpret_cast<const void*>(static_cast<std::uintptr_t>(address)), 4);
    if (self_role() == Role::Unpack) {
        for (std::deque<u32>& box : core.mail) box.push_back(word);
    }
    return word;
}

}  // namespace tw
