// What the host runtime offers to the kernel API headers. Every call names the kernel line it came from.
#pragma once
#include <cstddef>
#include <cstdint>

namespace tw {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

struct Loc {
    int line;
    const char* file;
    static constexpr Loc current(int line = __builtin_LINE(), const char* file = __builtin_FILE()) { return {line, file}; }
};

// Default argument of every API function: the caller's line.
#define TW_AT ::tw::Loc tw_at = ::tw::Loc::current()

// A finding only the API header can see.
void complain(const char* code, const char* message, Loc at);

// ---- buffers -------------------------------------------------------------------------------------------------------
void cb_wait(u32 cb, u32 pages, Loc at);
void cb_pop(u32 cb, u32 pages, Loc at);
void cb_reserve(u32 cb, u32 pages, Loc at);
void cb_push(u32 cb, u32 pages, Loc at);
bool cb_has_pages(u32 cb, u32 pages, Loc at);
bool cb_has_space(u32 cb, u32 pages, Loc at);
u32 cb_read_address(u32 cb, Loc at);
u32 cb_write_address(u32 cb, Loc at);
u32 cb_page_bytes(u32 cb, Loc at);
u32 cb_page_count(u32 cb, Loc at);
u32 cb_format(u32 cb, Loc at);
u32 cb_tile_address(u32 cb, u32 tile, Loc at);
u32 cb_tile_value(u32 cb, u32 tile, u32 element, Loc at);

// ---- arguments and place -------------------------------------------------------------------------------------------
u32 argument(u32 index, bool common, Loc at);
u32 argument_address(u32 index, bool common, Loc at);
u32 core_coordinate(bool y, bool logical);
u32 processor();  // 1 unpack, 2 math, 3 pack, 0 one that moves data

// ---- DST protocol ----------------------------------------------------------------------------------------------------
void regs_acquire(Loc at);
void regs_commit(Loc at);
void regs_wait(Loc at);
void regs_release(Loc at);
void set_dest_width(bool wide, Loc at);

// ---- matrix unit -------------------------------------------------------------------------------------------------------
enum class Kind : std::uint8_t { None, Copy, Add, Sub, Mul, Matmul, Reduce, Transpose, UnaryBcast, TransposeDest };

// What an init programs and an op needs: one word per choice, compared field by field.
struct Mode {
    Kind kind = Kind::None;
    std::uint8_t bcast = 0;      // BroadcastType
    std::uint8_t reuse = 0;      // EltwiseBinaryReuseDestType
    std::uint8_t pool = 0;       // PoolType
    std::uint8_t axis = 0;       // ReduceDim
    std::uint8_t transpose = 0;
    std::uint8_t columns = 1, rows = 1, depth = 1;  // matmul_block
    bool accumulate = false;     // acc_to_dest
    bool stated = false;         // the kernel said so itself
};

enum Part : u32 { kUnpack = 1, kMath = 2, kBoth = 3 };

void hw_startup(u32 a, u32 b, u32 out, bool reverse, bool must_be_first, Loc at);
void init(const char* name, Mode mode, u32 a, u32 b, u32 parts, Loc at);
void reduce_init(Mode mode, u32 data, u32 scaler, u32 out, Loc at);
void reduce_uninit(Loc at);
void execute(const char* name, Mode mode, u32 a, u32 b, u32 tile_a, u32 tile_b, u32 dst, u32 extra, Loc at);
void copy_tile_now(u32 cb, u32 tile, u32 dst, Loc at);
void matmul_tiles_now(u32 a, u32 b, u32 tile_a, u32 tile_b, u32 dst, Loc at);
void math_init(const char* name, Mode mode, Loc at);
void transpose_dest(const char* name, u32 dst, Loc at);
void reconfig(bool side_a, bool side_b, u32 a, u32 b, Loc at);

// ---- packer ------------------------------------------------------------------------------------------------------------
void pack_init(u32 cb, Loc at);
void pack(u32 dst, u32 cb, u32 page, bool any_order, Loc at);
void pack_reconfig(u32 cb, Loc at);
void pack_l1_accumulate(bool enable, Loc at);
void pack_relu(u32 mode, u32 threshold, Loc at);

// ---- vector unit ---------------------------------------------------------------------------------------------------------
// `variant` folds the template arguments that init and call must share; `pack_thread` is for the *_pack functions.
constexpr u32 kInitBlind = 0x80000000u;  // flag of a call's variant: its init has no say in it
constexpr u32 kNarrow = 0x40000000u;  // flag of a variant: the function as a 16-bit DST has it, whatever DST is
constexpr u32 kWidthless = 0x20000000u;  // flag of an init's variant: it does the same for every width of DST
void sfpu_init(const char* name, u32 variant, const u32* args, u32 count, bool pack_thread, Loc at);
void sfpu(const char* name, const char* init, u32 variant, const u32* args, u32 count, u32 faces, bool pack_thread, Loc at);

// ---- NoC -------------------------------------------------------------------------------------------------------------------
u64 page_address(u32 base, u64 page, u32 page_bytes, u32 offset, Loc at);
u64 core_address(u32 x, u32 y, u32 l1, Loc at);
u64 multicast_address(u32 x0, u32 y0, u32 x1, u32 y1, u32 l1, Loc at);
void noc_read(u64 from, u32 l1, u32 bytes, Loc at);
void noc_write(u32 l1, u64 to, u32 bytes, Loc at);
void noc_multicast(u32 l1, u64 to, u32 bytes, u32 receivers, bool with_self, bool linked, Loc at);
void noc_read_barrier(Loc at);
void noc_read_id(u32 id, Loc at);
void noc_read_id_barrier(u32 id, Loc at);
void noc_write_barrier(bool only_sent, Loc at);
void noc_zero(u32 l1, u32 bytes, Loc at);
u32 semaphore_address(u32 id, Loc at);
void semaphore_set(u32 address, u32 value, Loc at);
void semaphore_wait(u32 address, u32 value, bool at_least, Loc at);
void semaphore_add(u64 address, u32 amount, Loc at);
void semaphore_multicast(u32 address, u64 to, u32 receivers, bool with_self, bool linked, Loc at);
void atomic_barrier(Loc at);
void spin(Loc at);  // lets the others run inside a polling loop

}  // namespace tw
