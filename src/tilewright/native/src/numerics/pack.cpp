// The packer: DST to L1, with ReLU, rounding, block floats and accumulation in L1.
#include <algorithm>
#include <cmath>

#include "formats.h"

namespace tw {

namespace {

u32 nan_to_infinity(u32 bits) { return is_nan(bits) ? (bits & kSign) | kInfinity : bits; }

u32 tidy(u32 bits) {
    bits = nan_to_infinity(bits);
    return is_zero_or_denormal(bits) ? 0u : bits;
}

// DST value -> bf16 in the upper half (C1, C2).
u32 to_bf16(u32 bits, bool wide) {
    if (!wide) return tidy(bits);
    bits = nan_to_infinity(bits);
    return tidy((bits + 0x8000u) & 0xFFFF0000u);
}

u32 apply_relu(u32 bits, const Relu& relu, bool full_width) {
    if (relu.mode == Relu::Mode::None) return bits;
    if (bits & kSign) return 0;
    const u32 threshold = static_cast<u32>(relu.threshold) << 16;
    if (relu.mode == Relu::Mode::Min && bits <= threshold) return 0;
    const u32 compared = full_width ? bits & 0xFFFFE000u : bits;
    if (relu.mode == Relu::Mode::Max && compared > threshold) return threshold;
    return bits;
}

u16 accumulate_bf16(u16 stored, u16 packed) {
    const u32 a = flush_denormal(static_cast<u32>(stored) << 16), b = flush_denormal(static_cast<u32>(packed) << 16);
    const double sum = static_cast<double>(as_float(a)) + static_cast<double>(as_float(b));
    if (std::isnan(sum)) return 0x7FC0;
    // Every sum of two bf16 is exact in double up to 2^-45 relative; odd rounding to float keeps the tie information.
    float narrowed = static_cast<float>(sum);
    if (static_cast<double>(narrowed) != sum && std::isfinite(narrowed)) {
        u32 bits = as_bits(narrowed);
        const bool too_large = std::fabs(static_cast<double>(narrowed)) > std::fabs(sum);
        if (too_large) --bits;
        narrowed = as_float(bits | 1u);
    }
    const u32 rounded = round_to_bf16_even(as_bits(narrowed));
    return static_cast<u16>(flush_denormal(rounded) >> 16);
}

u32 accumulate_f32(u32 stored, u32 packed) {
    const u32 sum = as_bits(as_float(flush_denormal(stored)) + as_float(flush_denormal(packed)));
    return is_nan(sum) ? 0x7FC00000u : flush_denormal(sum);
}

void pack_bf16(const u32* values, const PackSetup& setup, u8* page) {
    for (int i = 0; i < 1024; ++i) {
        u16 half = static_cast<u16>(apply_relu(to_bf16(values[i], setup.wide), setup.relu, false) >> 16);
        if (setup.accumulate) {
            u16 stored;
            std::memcpy(&stored, page + 2 * i, 2);
            half = accumulate_bf16(stored, half);
        }
        std::memcpy(page + 2 * i, &half, 2);
    }
}

void pack_f32(const u32* values, const PackSetup& setup, u8* page) {
    for (int i = 0; i < 1024; ++i) {
        u32 word = apply_relu(setup.wide ? values[i] : tidy(values[i]), setup.relu, setup.wide);
        if (setup.accumulate) {
            u32 stored;
            std::memcpy(&stored, page + 4 * i, 4);
            word = accumulate_f32(stored, word);
        }
        std::memcpy(page + 4 * i, &word, 4);
    }
}

void pack_block_float(const u32* values, const PackSetup& setup, u8* page) {
    for (int row = 0; row < 64; ++row) {
        u32 block[16], shared = 0;
        for (int i = 0; i < 16; ++i) {
            u32 bits = nan_to_infinity(values[row * 16 + i]);
            if (setup.wide) bits &= 0xFFFF0000u;
            bits = apply_relu(bits, setup.relu, false);
            if (!(setup.wide && setup.precise) && exponent_of(bits) != 0) {
                const u32 rounded = (bits & ~kSign) + 0x00010000u;  // to six fraction bits, ties away
                bits = (bits & kSign) | (rounded & 0xFFFE0000u);
            }
            block[i] = is_zero_or_denormal(bits) ? 0u : bits;
            shared = std::max(shared, exponent_of(block[i]));
        }
        page[row] = static_cast<u8>(shared);
        for (int i = 0; i < 16; ++i) {
            const u32 gap = shared - exponent_of(block[i]);
            u32 magnitude = 0;
            if (exponent_of(block[i]) != 0 && gap < 8) {
                const u32 significand = 0x80u | ((block[i] & kFraction) >> 16);
                magnitude = std::min((significand + (1u << gap)) >> (gap + 1), 127u);
            }
            page[64 + row * 16 + i] = static_cast<u8>(magnitude | (magnitude && (block[i] & kSign) ? 0x80u : 0u));
        }
    }
}

// bfp4_b is bfp8_b cut to three bits of magnitude; a magnitude that becomes zero has no sign.
void pack_small_block_float(const u32* values, const PackSetup& setup, u8* page) {
    u8 wide[1088];
    pack_block_float(values, setup, wide);
    std::memcpy(page, wide, 64);
    for (int i = 0; i < 1024; i += 2) {
        u32 pair = 0;
        for (int place = 0; place < 2; ++place) {
            const u32 datum = wide[64 + i + place] >> 4;
            if (datum & 7u) pair |= datum << (4 * place);
        }
        page[64 + i / 2] = static_cast<u8>(pair);
    }
}

}  // namespace

void pack_tile(const u32* values, const PackSetup& setup, u8* page) {
    switch (setup.format) {
        case Format::Float16_b: return pack_bf16(values, setup, page);
        case Format::Float32: return pack_f32(values, setup, page);
        case Format::Bfp8_b: return pack_block_float(values, setup, page);
        case Format::Bfp4_b: return pack_small_block_float(values, setup, page);
        case Format::UInt16:
            for (int i = 0; i < 1024; ++i) {
                const u16 half = static_cast<u16>(values[i]);
                std::memcpy(page + 2 * i, &half, 2);
            }
            return;
        case Format::UInt8:
            for (int i = 0; i < 1024; ++i) page[i] = static_cast<u8>(values[i]);
            return;
        default: std::memcpy(page, values, 4096);
    }
}

}  // namespace tw
