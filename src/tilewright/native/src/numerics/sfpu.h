// The vector unit: one function over tiles in DST.
#pragma once
#include "bits.h"

namespace tw {

// What an init leaves behind that its op needs (metal API, "init state model").
enum class InitClass : u8 { Stateless, AddressMode, Constants, Lookup, Macros };
InitClass init_class(const char* init, u32 variant);
bool writes_constants(const char* call);
bool stops_stepping(const char* init);
bool fills_replay(const char* init);

struct VectorCall {
    const u32* in[4] = {};
    u32* out = nullptr;
    const u32* params = nullptr;
    u32 param_count = 0;
    const u32* init_params = nullptr;
    u32 init_param_count = 0;
    u32 variant = 0;  // template arguments, as the API table folds them
    u32 faces = 0xF;  // which of the four faces the call covers
    bool wide = false;
    bool narrow = false;  // in a 32-bit DST, but as a 16-bit DST has it

    u32 param(u32 i) const { return i < param_count ? params[i] : 0u; }
    float scalar(u32 i) const { return as_float(param(i)); }
    u32 init_param(u32 i) const { return i < init_param_count ? init_params[i] : 0u; }
};

// Raw: no flushing. Integer: the same, cut to the format that the call names.
enum class Store : u8 { Exact, Truncate, NearestEven, NearestAway, Raw, Integer };

struct VectorOp {
    const char* name;   // the API function
    u8 inputs, outputs;  // DST indices it takes; outputs == 0 works in place on the first
    Store store;
    bool own;  // the hardware's algorithm; otherwise a formula, used only when the simulator's functions are not at hand
    u32 (*unary)(u32, const VectorCall&);
    u32 (*binary)(u32, u32, const VectorCall&);
    u32 (*ternary)(u32, u32, u32, const VectorCall&);
    void (*tile)(const VectorCall&);
};

const VectorOp* find_vector_op(const char* name);
void run_vector_op(const VectorOp& op, const VectorCall& call);

// Asks the driver for the function `name` of `count` values per input; false if it has none. See native/driver.py.
bool ask_function(const char* name, const VectorCall& call, u32 inputs, u32 count, const u32* const* in, u32* out);

bool on_blackhole();
u32 multiply_add(u32 x, u32 y, u32 z);  // rule S2, as the chip does it
inline u32 vector_add(u32 x, u32 z) { return multiply_add(x, 0x3F800000u, z); }
inline u32 vector_multiply(u32 x, u32 y) { return multiply_add(x, y, 0u); }

// z - x*y in the kernels' text: Blackhole negates a factor inside the multiply-add, on Wormhole it takes two instructions.
inline u32 subtract_product(u32 z, u32 x, u32 y) {
    return on_blackhole() ? multiply_add(x ^ kSign, y, z) : vector_add(vector_multiply(x, y) ^ kSign, z);
}

u32 stored(u32 bits, Store store, bool wide);  // rule S3

}  // namespace tw
