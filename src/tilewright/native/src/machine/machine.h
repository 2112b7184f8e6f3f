// The modelled chip: cores with five threads, buffers in L1, DST halves, and what each engine was last set up to do.
#pragma once
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "../../include/tw/runtime.h"
#include "../numerics/formats.h"
#include "../numerics/fpu.h"

namespace tw {

enum class Role : u8 { Reader, Unpack, Math, Pack, Writer };
constexpr int kRoles = 5;
constexpr u32 kMaxBuffers = 64;
constexpr u32 kMaxSemaphores = 16;
const char* role_name(Role role);

struct Core;
struct Thread;

struct Buffer {
    bool present = false;
    u32 id = 0, base = 0, page_bytes = 0, pages = 0;
    Format format = Format::Float16_b;
    bool to_dst = false;  // UnpackToDestFp32
    u32 received = 0, acked = 0;
    u32 read = 0, write = 0;          // page indices
    u32 waited = 0, reserved = 0;     // what consumer and producer may touch
    u32 packed = 0;                   // in-order packs since the last push
    u64 filled = 0;                   // pages of the reservation some pack or transfer wrote (first 64)
    Thread *producer = nullptr, *consumer = nullptr;
    u32 waits = 0, pops = 0;  // calls that succeeded
    Loc waited_at{0, ""};
    bool fed = false;     // by the stand-in for the reader
    bool backed = false;  // lies in the shard of a tensor: holds data from the start, and keeps it
    Buffer* alias = nullptr;  // the next index over the same L1

    u32 available() const { return received - acked; }
    u32 space() const { return pages - available(); }
};

// How a source register is set up: the format of the buffer last configured for it.
struct SourceSetup {
    bool known = false;
    Format format = Format::Float16_b;
    bool to_dst = false;
};

struct Slot {
    bool written = false;
    bool consumed = false;     // read by an op since it was written
    bool reduced = false;      // holds the result of reduce_tile
    Kind writer = Kind::None;  // last matrix op; None for the vector unit
    Loc at{0, ""};
};

struct DstHalf {
    std::vector<u32> values;
    std::vector<Slot> slots;
    bool ready = false;  // committed by math, not yet released by the packer
};

// One unpacked operand pair on its way to math.
struct SourceTiles {
    Mode mode;
    std::vector<u32> a, b;
    SourceSetup setup_a, setup_b;
    bool to_dst = false;
};

struct VectorState {
    bool any_init = false;
    u32 address_step = 0;      // of the second address mode: rows per store
    bool stepping = false;     // the first address mode moves too: exp without clamp leaves it so
    std::string owner[3];  // constants, look-up registers, load macros
    u32 variant[3] = {};
    std::map<std::string, std::vector<u32>> init_args;
};

struct PendingRead {
    u64 from;
    u32 l1, bytes, id;  // id: of its transactions, which a barrier may wait for alone
    Loc at;
};

struct PendingWrite {
    u32 l1, bytes;
    Loc at;
    const struct Core* to = nullptr;  // the one core it goes to
};

struct Core {
    u32 x = 0, y = 0;
    u8* l1 = nullptr;
    u32 l1_base = 0;
    Buffer buffers[kMaxBuffers];
    u32 semaphore_base = 0, argument_base = 0;

    // DST
    bool wide = false, full_sync = false;
    DstHalf halves[2];
    u32 math_half = 0, pack_half = 0;
    bool math_holds = false, pack_holds = false;
    bool math_anew = false;  // the half that math holds, or will hold, is the first

    // set-up of each engine, once per thread that owns it
    bool started[kRoles] = {};
    Mode unpack_mode, math_mode;
    const char* replay_taken = nullptr;  // the vector init that overwrote the matrix unit's replay buffer
    u32 math_offset = 0;                 // DST tile the math thread last worked on: addresses count from there
    SourceSetup source_a, source_b;
    std::deque<SourceTiles> sources;
    std::deque<u32> mail[2];  // words that the unpack thread has sent to math and to pack
    VectorState vector[2];  // math, pack
    bool pack_known = false;
    Format pack_format = Format::Float16_b;
    PackSetup pack;
    bool mask_active = false;
    Axis mask_axis = Axis::Row;
    Loc mask_at{0, ""};

    std::vector<u32> arguments[kRoles], common_arguments[kRoles];

    u32 halves_in_use() const { return full_sync ? 1u : 2u; }
    u32 capacity() const { return (16u >> (full_sync ? 0 : 1)) >> (wide ? 1 : 0); }
    Buffer& buffer(u32 cb, Loc at);
};

// Where a page of a tensor lies while the kernels run.
struct PageHome {
    u32 x = 0, y = 0, slot = 0;
};

struct TensorPages {
    u32 base = 0, page_bytes = 0;
    u32 read_alignment = 1;  // source and target of a read must agree modulo this
    u64 pages = 0;
    u8* data = nullptr;
    bool in_l1 = false;  // shards lie in the L1 of cores, from the same offset on everywhere
    u32 l1_offset = 0;
    std::vector<PageHome> homes;  // by page
};

struct Machine {
    u32 noc_x = 0, noc_y = 0;
    u32 l1_bytes = 0;
    int phases = 4;
    bool wide = false, full_sync = false, precise = false;
    bool erratum = false;  // of rule N7, see numerics/fpu.h
    int metal = 78;
    u8* arena = nullptr;
    u64 arena_bytes = 0;
    std::vector<Core*> cores;  // those alive now
    std::vector<TensorPages> tensors;
    bool blackhole = false;  // else Wormhole
    bool functions = false;  // the driver answers requests for functions
    std::vector<std::pair<std::string, int>> intended;  // lines that say they accumulate

    Core* core_at(u32 x, u32 y) const;
    bool says_accumulate(Loc at) const;
};

extern Machine machine;

// The thread now running.
Thread& self();
Core& self_core();
Role self_role();

struct Stats {
    u64 unpacked = 0, math = 0, vector = 0, packed = 0, read_bytes = 0, written_bytes = 0, switches = 0;
};
extern Stats stats;

}  // namespace tw
