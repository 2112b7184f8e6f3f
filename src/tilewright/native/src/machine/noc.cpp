// Transfers between L1, other cores and tensors. Reads land at the barrier, as late as the hardware allows.
#include "noc.h"

#include <algorithm>

#include "findings.h"
#include "recording.h"

namespace tw {

namespace {

constexpr u32 kTransactionIds = 16;
constexpr u64 kTensorBit = u64{1} << 63, kCoreBit = u64{1} << 62, kMulticastBit = u64{1} << 61;

u8* pointer(u32 l1) { return reinterpret_cast<u8*>(static_cast<std::uintptr_t>(l1)); }

u32 arena_base() { return static_cast<u32>(reinterpret_cast<std::uintptr_t>(machine.arena)); }

// An address in some core's L1 -> the offset that is the same on every core.
u32 offset_of(u32 l1) {
    if (l1 < arena_base()) return l1;
    return static_cast<u32>((l1 - arena_base()) % machine.l1_bytes);
}

bool inside_l1(const Core& core, u32 l1, u64 bytes) { return l1 >= core.l1_base && l1 + bytes <= u64{core.l1_base} + machine.l1_bytes; }

bool overlaps(u64 a, u64 a_bytes, u64 b, u64 b_bytes) { return a < b + b_bytes && b < a + a_bytes; }

Buffer* buffer_at(Core& core, u32 l1) {
    for (Buffer& buffer : core.buffers) {
        if (buffer.present && l1 >= buffer.base && l1 < buffer.base + buffer.page_bytes * buffer.pages) return &buffer;
    }
    return nullptr;
}

bool inside_window(const Buffer& buffer, u32 l1, u32 bytes, u32 first, u32 count) {
    const u32 start = buffer.base + first * buffer.page_bytes;
    return l1 >= start && u64{l1} + bytes <= u64{start} + u64{count} * buffer.page_bytes;
}

// What is reserved may go on at the ring's start: blocks that are under way together.
bool inside_ring(const Buffer& buffer, u32 l1, u32 bytes, u32 first, u32 count) {
    if (inside_window(buffer, l1, bytes, first, count < buffer.pages - first ? count : buffer.pages - first)) return true;
    return first + count > buffer.pages && inside_window(buffer, l1, bytes, 0, first + count - buffer.pages);
}

// Several indices may share one piece of L1, so any of them may hold the reservation. What a thread fills itself, it must have
// reserved itself; what is sent somewhere by NoC address may have been reserved by any thread there.
bool reserved(Core& core, u32 l1, u32 bytes, bool by_self) {
    for (Buffer& buffer : core.buffers) {
        if (by_self && buffer.producer != &self()) continue;
        if (buffer.present && inside_ring(buffer, l1, bytes, buffer.write, buffer.reserved)) return true;
    }
    return false;
}

bool waited_for(Core& core, u32 l1, u32 bytes) {
    for (Buffer& buffer : core.buffers) {
        if (buffer.consumer != &self()) continue;
        if (buffer.present && inside_window(buffer, l1, bytes, buffer.read, buffer.waited)) return true;
    }
    return false;
}

// A transfer in the list of calls: a page of a tensor, or the L1 of a core.
void note_transfer(const char* tensor_call, const char* core_call, u64 address, u32 bytes, Loc at) {
    if (!recording()) return;
    if (address & kTensorBit) {
        const u64 index = (address >> 48) & 0x7FFF;
        note(tensor_call, at, {index, (address & 0xFFFFFFFFFFFFull) / machine.tensors[index].page_bytes, bytes});
    } else if (address & kCoreBit) {
        note(core_call, at, {(address >> 32) & 0xFF, (address >> 40) & 0xFF, bytes});
    }
}

void note_rectangle(const char* name, u64 to, u32 bytes, bool linked, Loc at) {
    note(name, at, {(to >> 32) & 0x3F, (to >> 38) & 0x3F, (to >> 44) & 0x3F, (to >> 50) & 0x3F, bytes, linked});
}

bool is_semaphore(const Core& core, u32 offset) {
    const u32 first = core.semaphore_base - core.l1_base;
    return offset >= first && offset < first + kMaxSemaphores * 16;
}

u32 semaphore_of(const Core& core, u32 offset) { return (offset - (core.semaphore_base - core.l1_base)) / 16; }

u32 word_at(const u8* place) {
    u32 value;
    std::memcpy(&value, place, 4);
    return value;
}

// The core a NoC address names; none for tensors.
Core* core_of(u64 address) {
    return address & kCoreBit ? machine.core_at((address >> 32) & 0xFF, (address >> 40) & 0xFF) : nullptr;
}

bool check_destination(Core& core, u32 l1, u32 bytes, const char* call, Loc at, bool by_self = false) {
    if (!inside_l1(core, l1, bytes)) {
        report("address-out-of-range", at, "%s of %u bytes to 0x%x, outside L1 of core (%u,%u)", call, bytes, l1, core.x, core.y);
        return false;
    }
    const Buffer* buffer = buffer_at(core, l1);
    if (buffer && !reserved(core, l1, bytes, by_self)) {
        report("missing-reserve", at, "%s into buffer %u of core (%u,%u), outside the %u pages reserved there", call, buffer->id, core.x,
               core.y, buffer->reserved);
    }
    return true;
}

bool check_source(u32 l1, u32 bytes, const char* call, Loc at) {
    Core& core = self_core();
    if (!inside_l1(core, l1, bytes)) {
        report("address-out-of-range", at, "%s of %u bytes from 0x%x, outside this core's L1", call, bytes, l1);
        return false;
    }
    check_reads_landed(self(), l1, bytes, at);
    const Buffer* buffer = buffer_at(core, l1);
    if (buffer && !waited_for(core, l1, bytes) && !reserved(core, l1, bytes, true)) {
        report("missing-wait", at, "%s from buffer %u, outside the %u pages waited for", call, buffer->id, buffer->waited);
    }
    return true;
}

// Pages start at multiples of the step that their memory is read in.
void check_alignment(u64 from, u32 l1, Loc at) {
    if (!(from & kTensorBit)) return;
    const TensorPages& tensor = machine.tensors[(from >> 48) & 0x7FFF];
    const u32 byte = static_cast<u32>((from & 0xFFFFFFFFFFFFull) % tensor.page_bytes), step = tensor.read_alignment;
    if (byte % step != offset_of(l1) % step)
        report("misaligned-read", at, "NoC read from byte %u of a page to L1 0x%x: they must agree modulo %u", byte, offset_of(l1), step);
}

u8* shard_place(const TensorPages& tensor, u64 offset) {
    const PageHome& home = tensor.homes[offset / tensor.page_bytes];
    const Core* core = machine.core_at(home.x + machine.noc_x, home.y + machine.noc_y);
    return core->l1 + tensor.l1_offset + home.slot * tensor.page_bytes + offset % tensor.page_bytes;
}

u8* resolve(u64 address, u32 bytes, const char* call, Loc at) {
    if (address & kTensorBit) {
        const std::size_t index = (address >> 48) & 0x7FFF;
        const u64 offset = address & 0xFFFFFFFFFFFFull;
        TensorPages& tensor = machine.tensors[index];
        if (offset + bytes <= tensor.pages * tensor.page_bytes) return tensor.in_l1 ? shard_place(tensor, offset) : tensor.data + offset;
        report("tensor-out-of-range", at, "%s of %u bytes at byte %llu of a tensor of %llu", call, bytes,
               static_cast<unsigned long long>(offset), static_cast<unsigned long long>(tensor.pages * tensor.page_bytes));
        return nullptr;
    }
    if (!(address & kCoreBit)) {
        report("address-out-of-range", at, "%s: 0x%llx is no NoC address", call, static_cast<unsigned long long>(address));
        return nullptr;
    }
    Core* core = core_of(address);
    const u32 offset = static_cast<u32>(address);
    if (core && u64{offset} + bytes <= machine.l1_bytes) return pointer(core->l1_base + offset);
    report("address-out-of-range", at, "%s to core (%u,%u) offset 0x%x, which does not exist", call,
           static_cast<u32>((address >> 32) & 0xFF), static_cast<u32>((address >> 40) & 0xFF), offset);
    return nullptr;
}

std::vector<Core*> receivers_of(u64 to, bool with_self, u32 stated, const char* call, Loc at) {
    u32 x0 = (to >> 32) & 0x3F, y0 = (to >> 38) & 0x3F, x1 = (to >> 44) & 0x3F, y1 = (to >> 50) & 0x3F;
    const bool up = x0 < x1 || y0 < y1, down = x0 > x1 || y0 > y1;
    if (self_role() == Role::Writer ? up : down)
        report("multicast-corners", at, "%s from (%u,%u) to (%u,%u): the NoC of the %s runs the other way round and reaches nobody", call,
               x0, y0, x1, y1, role_name(self_role()));
    if (x0 > x1) std::swap(x0, x1);
    if (y0 > y1) std::swap(y0, y1);
    std::vector<Core*> cores;
    for (u32 y = y0; y <= y1; ++y) {
        for (u32 x = x0; x <= x1; ++x) {
            Core* core = machine.core_at(x, y);
            if (!core) {
                report("address-out-of-range", at, "%s to core (%u,%u), which runs no kernel", call, x, y);
            } else if (with_self || core != &self_core()) {
                cores.push_back(core);
            }
        }
    }
    if (cores.size() != stated)
        report("multicast-count", at, "%s says %u receivers, the rectangle has %zu", call, stated, cores.size());
    return cores;
}

}  // namespace

Core* Machine::core_at(u32 x, u32 y) const {
    for (Core* core : cores) {
        if (core->x + noc_x == x && core->y + noc_y == y) return core;
    }
    return nullptr;
}

void check_reads_landed(const Thread& thread, u32 l1, u32 bytes, Loc at) {
    for (const PendingRead& read : thread.reads) {
        if (!overlaps(read.l1, read.bytes, l1, bytes)) continue;
        report("missing-barrier", at, "uses L1 that the NoC read of line %d has not filled yet: noc_async_read_barrier() is missing",
               read.at.line);
        return;
    }
}

void check_writes_sent(const Thread& thread, u32 l1, u32 bytes, Loc at) {
    for (const PendingWrite& write : thread.writes) {
        if (write.bytes == 0 || !overlaps(write.l1, write.bytes, l1, bytes)) continue;
        report("missing-barrier", at, "gives back L1 that the NoC write of line %d may still read: noc_async_write_barrier() is missing",
               write.at.line);
        return;
    }
}

u64 page_address(u32 base, u64 page, u32 page_bytes, u32 offset, Loc at) {
    self().last = at;
    for (std::size_t i = 0; i < machine.tensors.size(); ++i) {
        const TensorPages& tensor = machine.tensors[i];
        if (tensor.base != base) continue;
        if (page >= tensor.pages) {
            report("tensor-out-of-range", at, "page %llu of the tensor at 0x%x, which has %llu", static_cast<unsigned long long>(page), base,
                   static_cast<unsigned long long>(tensor.pages));
            page = tensor.pages - 1;
        }
        if (page_bytes && page_bytes != tensor.page_bytes)
            report("page-size", at, "the tensor at 0x%x has pages of %u bytes, the accessor says %u", base, tensor.page_bytes, page_bytes);
        return kTensorBit | (static_cast<u64>(i) << 48) | (page * tensor.page_bytes + offset);
    }
    report("unknown-tensor", at, "no tensor has its base at 0x%x", base);
    halt_run();
}

u64 core_address(u32 x, u32 y, u32 l1, Loc at) {
    self().last = at;
    return kCoreBit | (static_cast<u64>(x & 0xFF) << 32) | (static_cast<u64>(y & 0xFF) << 40) | offset_of(l1);
}

u64 multicast_address(u32 x0, u32 y0, u32 x1, u32 y1, u32 l1, Loc at) {
    self().last = at;
    return kMulticastBit | (static_cast<u64>(x0 & 0x3F) << 32) | (static_cast<u64>(y0 & 0x3F) << 38) |
           (static_cast<u64>(x1 & 0x3F) << 44) | (static_cast<u64>(y1 & 0x3F) << 50) | offset_of(l1);
}

void noc_read(u64 from, u32 l1, u32 bytes, Loc at) {
    self().last = at;
    note_transfer("read_page", "read_core", from, bytes, at);
    if (!check_destination(self_core(), l1, bytes, "NoC read", at, true)) return;
    check_alignment(from, l1, at);
    self().reads.push_back({from, l1, bytes, self().read_id, at});
    stats.read_bytes += bytes;
}

static void land(const PendingRead& read) {
    const u8* source = resolve(read.from, read.bytes, "NoC read", read.at);
    if (source) std::memmove(pointer(read.l1), source, read.bytes);
}

void noc_read_barrier(Loc at) {
    self().last = at;
    note("noc_async_read_barrier", at);
    for (const PendingRead& read : self().reads) land(read);
    self().reads.clear();
}

void noc_read_id(u32 id, Loc at) {
    self().last = at;
    note("noc_async_read_set_trid", at, {id});
    if (id >= kTransactionIds) report("address-out-of-range", at, "transaction id %u: the NoC has %u", id, kTransactionIds);
    self().read_id = id % kTransactionIds;
}

void noc_read_id_barrier(u32 id, Loc at) {
    self().last = at;
    note("noc_async_read_barrier_with_trid", at, {id});
    std::vector<PendingRead>& reads = self().reads;
    for (const PendingRead& read : reads) {
        if (read.id == id) land(read);
    }
    reads.erase(std::remove_if(reads.begin(), reads.end(), [&](const PendingRead& read) { return read.id == id; }), reads.end());
}

void noc_write(u32 l1, u64 to, u32 bytes, Loc at) {
    self().last = at;
    if (!check_source(l1, bytes, "NoC write", at)) return;
    u8* target = resolve(to, bytes, "NoC write", at);
    if (!target) return;
    Core* core = core_of(to);
    if (core) check_destination(*core, core->l1_base + static_cast<u32>(to), bytes, "NoC write", at);
    std::memmove(target, pointer(l1), bytes);
    if (core && bytes == 4 && is_semaphore(*core, static_cast<u32>(to))) {
        note_change("semaphore_write", at, *core, semaphore_of(*core, static_cast<u32>(to)), word_at(target));
    } else {
        note_transfer("write_page", "write_core", to, bytes, at);
    }
    self().writes.push_back({l1, bytes, at, core});
    stats.written_bytes += bytes;
}

void noc_multicast(u32 l1, u64 to, u32 bytes, u32 receivers, bool with_self, bool linked, Loc at) {
    self().last = at;
    if (!check_source(l1, bytes, "multicast", at)) return;
    note_rectangle("multicast", to, bytes, linked, at);
    for (Core* core : receivers_of(to, with_self, receivers, "multicast", at)) {
        const u32 target = core->l1_base + static_cast<u32>(to);
        if (core == &self_core() && target == l1) continue;
        if (check_destination(*core, target, bytes, "multicast", at)) std::memmove(pointer(target), pointer(l1), bytes);
    }
    self().writes.push_back({l1, bytes, at});
    stats.written_bytes += bytes;
}

void noc_write_barrier(bool only_sent, Loc at) {
    self().last = at;
    note(only_sent ? "noc_async_writes_flushed" : "noc_async_write_barrier", at);
    if (!only_sent) return self().writes.clear();
    for (PendingWrite& write : self().writes) write.bytes = 0;  // left L1, not yet known to have arrived
}

void noc_zero(u32 l1, u32 bytes, Loc at) {
    self().last = at;
    note("write_zeros", at, {bytes});
    if (check_destination(self_core(), l1, bytes, "NoC write of zeros", at, true)) std::memset(pointer(l1), 0, bytes);
}

void finish_transfers(Thread& thread) {
    if (!thread.reads.empty()) {
        const Loc at = thread.reads.front().at;
        report("missing-barrier", at, "the kernel ends with this NoC read under way: noc_async_read_barrier() is missing");
        noc_read_barrier(at);
    }
    if (!thread.writes.empty()) {
        report("missing-barrier", thread.writes.front().at,
               "the kernel ends with this NoC write under way: noc_async_write_barrier() is missing");
        thread.writes.clear();
    }
    if (!thread.increments.empty()) {
        report("missing-barrier", thread.increments.front(),
               "the kernel ends with this increment under way: noc_async_atomic_barrier() is missing");
        thread.increments.clear();
    }
}

// Data and the signal that it is there travel apart.
static void check_writes_arrive_before(const Core* core, Loc at) {
    for (const PendingWrite& write : self().writes) {
        if (write.bytes == 0 || write.to != core) continue;
        report("signal-before-data", at,
               "this increment may arrive before the NoC write of line %d does: noc_async_write_barrier() is missing between them",
               write.at.line);
        return;
    }
}

u32 semaphore_address(u32 id, Loc at) {
    if (id >= kMaxSemaphores) {
        report("unknown-semaphore", at, "semaphore %u: a core has %u", id, kMaxSemaphores);
        halt_run();
    }
    return self_core().semaphore_base + id * 16;
}

void semaphore_set(u32 address, u32 value, Loc at) {
    self().last = at;
    *reinterpret_cast<volatile u32*>(pointer(address)) = value;
    note_change("semaphore_set", at, self_core(), semaphore_of(self_core(), offset_of(address)), value);
}

void semaphore_wait(u32 address, u32 value, bool at_least, Loc at) {
    self().last = at;
    const volatile u32* word = reinterpret_cast<const volatile u32*>(pointer(address));
    const u32 id = (offset_of(address) - offset_of(self_core().semaphore_base)) / 16;
    wait_until([&] { return at_least ? *word >= value : *word == value; }, at_least ? "noc_semaphore_wait_min" : "noc_semaphore_wait", at,
               [&] {
                   char text[100];
                   std::snprintf(text, sizeof text, "on semaphore %u wants %s%u, has %u", id, at_least ? "at least " : "", value, *word);
                   return std::string(text);
               });
    note("semaphore_wait", at, {id, value, at_least, last_change(self_core(), id)});
}

void semaphore_add(u64 address, u32 amount, Loc at) {
    self().last = at;
    u8* word = resolve(address, 4, "semaphore increment", at);
    if (!word) return;
    check_writes_arrive_before(core_of(address), at);
    u32 value;
    std::memcpy(&value, word, 4);
    value += amount;
    std::memcpy(word, &value, 4);
    if (Core* core = core_of(address)) note_change("semaphore_add", at, *core, semaphore_of(*core, static_cast<u32>(address)), value);
    if (self().increments.empty()) self().increments.push_back(at);  // the first is enough to tell
}

void semaphore_multicast(u32 address, u64 to, u32 receivers, bool with_self, bool linked, Loc at) {
    self().last = at;
    note_rectangle("multicast", to, 4, linked, at);
    for (Core* core : receivers_of(to, with_self, receivers, "semaphore multicast", at)) {
        std::memmove(pointer(core->l1_base + static_cast<u32>(to)), pointer(address), 4);
        note_change("semaphore_arrives", at, *core, semaphore_of(*core, static_cast<u32>(to)), word_at(pointer(address)));
    }
    self().writes.push_back({address, 4, at});
}

void atomic_barrier(Loc at) {
    self().last = at;
    note("noc_async_atomic_barrier", at);
    self().increments.clear();
}

void spin(Loc at) {
    self().last = at;
    yield_now();
}

}  // namespace tw
