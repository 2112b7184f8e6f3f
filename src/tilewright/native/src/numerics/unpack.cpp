#include "formats.h"

namespace tw {

const char* format_name(Format format) {
    switch (format) {
        case Format::Float32: return "float32";
        case Format::Tf32: return "tf32";
        case Format::Float16_b: return "bfloat16";
        case Format::Bfp8_b: return "bfp8_b";
        case Format::Bfp4_b: return "bfp4_b";
        case Format::Int32: return "int32";
        case Format::UInt16: return "uint16";
        case Format::UInt32: return "uint32";
        case Format::UInt8: return "uint8";
    }
    return "unknown";
}

u32 format_tile_bytes(Format format) {
    switch (format) {
        case Format::Float16_b:
        case Format::UInt16: return 2048;
        case Format::Bfp8_b: return 1088;
        case Format::Bfp4_b: return 576;
        case Format::UInt8: return 1024;
        default: return 4096;
    }
}

bool is_integer(Format format) {
    return format == Format::Int32 || format == Format::UInt16 || format == Format::UInt32 || format == Format::UInt8;
}

namespace {

u32 from_block_float(u8 datum, u32 shared_exponent) {
    const u32 sign = datum & 0x80u ? kSign : 0u;
    u32 magnitude = datum & 0x7Fu;
    if (magnitude == 0) return sign ? kSign | kInfinity : 0u;
    u32 exponent = shared_exponent;
    while (!(magnitude & 0x40u)) {
        magnitude <<= 1;
        --exponent;
    }
    return sign | ((exponent & 0xFFu) << 23) | ((magnitude & 0x3Fu) << 17);
}

}  // namespace

void unpack_tile(const u8* page, Format format, bool wide, bool to_dst, u32* out) {
    switch (format) {
        case Format::Float16_b:
            for (int i = 0; i < 1024; ++i) {
                u16 half;
                std::memcpy(&half, page + 2 * i, 2);
                out[i] = static_cast<u32>(half) << 16;
            }
            return;
        case Format::Bfp8_b:
            for (int i = 0; i < 1024; ++i) out[i] = from_block_float(page[64 + i], page[i / 16]);
            return;
        case Format::Bfp4_b:  // sign and three bits, two to a byte: the upper bits of a bfp8_b datum
            for (int i = 0; i < 1024; ++i) {
                const u32 datum = page[64 + i / 2] >> (4 * (i & 1));
                out[i] = from_block_float(static_cast<u8>(datum << 4), page[i / 16]);
            }
            return;
        case Format::UInt16:
            for (int i = 0; i < 1024; ++i) {
                u16 half;
                std::memcpy(&half, page + 2 * i, 2);
                out[i] = half;
            }
            return;
        case Format::UInt8:
            for (int i = 0; i < 1024; ++i) out[i] = page[i];
            return;
        default: break;
    }
    std::memcpy(out, page, 4096);
    if (to_dst || format != Format::Float32) return;
    for (int i = 0; i < 1024; ++i) out[i] = wide ? out[i] & 0xFFFFE000u : flush_denormal(out[i]) & 0xFFFF0000u;
}

}  // namespace tw
