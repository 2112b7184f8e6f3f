// DPRINT with a format, as releases from 0.78 on have it: text and numbers, one line per call, with the core in front.
#pragma once
#include <cstdio>
#include <cstring>
#include <string>

#include "kernel_args.h"

struct SliceRange {
    std::uint8_t h0, h1, hs, w0, w1, ws;
};
enum dprint_tslice_cb_t { TSLICE_INPUT_CB, TSLICE_OUTPUT_CB };
enum dprint_tslice_ptr_t { TSLICE_RD_PTR, TSLICE_WR_PTR };

template <int kBytes = 64>
struct TileSlice {
    template <typename... Rest>
    TileSlice(tw::u32 buffer, int tile_index, const SliceRange& rows, Rest... rest)
        : cb(buffer), tile(tile_index), row(rows.h0), writes(tw::processor() == 3 || (asks_for_writes(rest) || ...)) {}
    tw::u32 cb;
    int tile;
    int row;
    bool writes;  // of the block that is being filled, not of the one that was waited for

   private:
    static bool asks_for_writes(dprint_tslice_ptr_t pointer) { return pointer == TSLICE_WR_PTR; }
    template <typename Other>
    static bool asks_for_writes(Other) { return false; }
};

namespace tw {

inline std::string shown(const char* text) { return text; }
inline std::string shown(bool value) { return value ? "1" : "0"; }
template <typename T>
std::string shown(const T& value) { return std::to_string(value); }
// One row of a tile as it lies in L1: faces of 16x16, the left two above the right two by rows of faces.
template <int kBytes>
std::string shown(const TileSlice<kBytes>& part, TW_AT) {
    std::string text = "row " + std::to_string(part.row) + " of tile " + std::to_string(part.tile) + " of c_" + std::to_string(part.cb);
    const auto format = static_cast<DataFormat>(cb_format(part.cb, tw_at));
    const u32 bytes = format == DataFormat::Float32 || format == DataFormat::Int32 || format == DataFormat::UInt32 ? 4
                      : format == DataFormat::Float16_b || format == DataFormat::UInt16                            ? 2
                                                                                                                   : 0;
    if (bytes == 0) return text;  // formats with shared exponents stay closed
    const u32 block = part.writes ? cb_write_address(part.cb, tw_at) : cb_read_address(part.cb, tw_at);
    const u32 address = block + part.tile * cb_page_bytes(part.cb, tw_at);
    text += ":";
    for (u32 column = 0; column < 32; ++column) {
        const u32 face = part.row / 16 * 2 + column / 16, element = face * 256 + part.row % 16 * 16 + column % 16;
        u32 word = 0;
        std::memcpy(&word, reinterpret_cast<const void*>(static_cast<std::uintptr_t>(address + element * bytes)), bytes);
        char number[32];
        if (format == DataFormat::Float32 || format == DataFormat::Float16_b) {
            if (bytes == 2) word <<= 16;
            float value;
            std::memcpy(&value, &word, 4);
            std::snprintf(number, sizeof number, " %g", value);
        } else {
            std::snprintf(number, sizeof number, format == DataFormat::Int32 ? " %d" : " %u", word);
        }
        text += number;
    }
    return text;
}

template <typename... Values>
void print_line(const char* format, const Values&... values) {
    const std::string texts[] = {shown(values)..., ""};
    std::string line = "(" + std::to_string(core_coordinate(false, true)) + ", " + std::to_string(core_coordinate(true, true)) + ") ";
    std::size_t next = 0;
    for (const char* at = format; *at != 0; ++at) {
        if ((at[0] == '{' && at[1] == '{') || (at[0] == '}' && at[1] == '}')) {
            line += *at++;
        } else if (*at == '{') {
            while (*at != '}') ++at;
            line += next < sizeof...(values) ? texts[next++] : "";
        } else {
            line += *at;
        }
    }
    std::fputs(line.c_str(), stderr);  // standard output belongs to the runner
}

}  // namespace tw

#undef DPRINT
#undef DPRINT_UNPACK
#undef DPRINT_MATH
#undef DPRINT_PACK
#define DPRINT(...) ::tw::print_line(__VA_ARGS__)
#define DPRINT_UNPACK(...) (::tw::processor() == 1 ? DPRINT(__VA_ARGS__) : void())
#define DPRINT_MATH(...) (::tw::processor() == 2 ? DPRINT(__VA_ARGS__) : void())
#define DPRINT_PACK(...) (::tw::processor() == 3 ? DPRINT(__VA_ARGS__) : void())
#define DEVICE_PRINT(...) DPRINT(__VA_ARGS__)
#define DEVICE_PRINT_UNPACK(...) DPRINT_UNPACK(__VA_ARGS__)
#define DEVICE_PRINT_MATH(...) DPRINT_MATH(__VA_ARGS__)
#define DEVICE_PRINT_PACK(...) DPRINT_PACK(__VA_ARGS__)
