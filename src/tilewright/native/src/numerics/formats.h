// Between L1 bytes and the registers: unpacking into Src or DST, packing out of DST (rules U and C).
#pragma once
#include "bits.h"

namespace tw {

// Numbers of the vendor's DataFormat.
enum class Format : u8 { Float32 = 0, Tf32 = 4, Float16_b = 5, Bfp8_b = 6, Bfp4_b = 7, Int32 = 8, UInt16 = 9, UInt32 = 24, UInt8 = 30 };

const char* format_name(Format format);
u32 format_tile_bytes(Format format);
bool is_integer(Format format);

// A page of `format` -> 1024 register values. `to_dst` keeps all bits (U4); otherwise a float is cut to what Src holds.
void unpack_tile(const u8* page, Format format, bool wide, bool to_dst, u32* out);

struct Relu {
    enum class Mode : u8 { None, Zero, Min, Max } mode = Mode::None;
    u16 threshold = 0;  // bf16 bits
};

struct PackSetup {
    Format format = Format::Float16_b;
    bool wide = false;
    bool accumulate = false;
    bool precise = false;  // bfp8_pack_precise
    Relu relu;
};

void pack_tile(const u32* values, const PackSetup& setup, u8* page);

}  // namespace tw
