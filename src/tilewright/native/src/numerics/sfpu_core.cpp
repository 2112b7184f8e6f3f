// Multiply-add, stores and the loop every vector op shares.
#include <map>
#include <string>
#include <string_view>

#include "../machine/machine.h"
#include "sfpu.h"
#include "sfpu_rows.h"

namespace tw {

u32 multiply_add(u32 x, u32 y, u32 z) {
    x = flush_denormal(x);
    y = flush_denormal(y);
    z = flush_denormal(z);
    const u32 product_sign = (x ^ y) & kSign;
    if (is_nan(x) || is_nan(y) || is_nan(z)) return not_a_number(x, y, z);
    const bool product_infinite = is_infinite(x) || is_infinite(y);
    if (product_infinite) {
        if (!(x & ~kSign) || !(y & ~kSign)) return not_a_number(x, y, z);
        if (is_infinite(z) && (z & kSign) != product_sign) return not_a_number(x, y, z);
        return product_sign | kInfinity;
    }
    if (is_infinite(z)) return z;
    const bool product_zero = !(x & ~kSign) || !(y & ~kSign);
    int exponent = product_zero ? 0 : static_cast<int>(exponent_of(x)) + static_cast<int>(exponent_of(y)) - 127;
    if (product_zero || exponent < 0) return z & ~kSign ? z : 0u;
    u64 product = static_cast<u64>((x & kFraction) | 0x800000u) * ((y & kFraction) | 0x800000u);
    // 24 + 3 bits, everything below or-ed into the last.
    u64 significand = (product >> 20) | ((product & 0xFFFFFu) != 0 ? 1u : 0u);
    i64 sum = static_cast<i64>(significand);
    bool negative = product_sign != 0;
    if (z & ~kSign) {
        i64 addend = static_cast<i64>((z & kFraction) | 0x800000u) << 3;
        const int z_exponent = static_cast<int>(exponent_of(z));
        const int gap = exponent - z_exponent;
        auto shifted = [](i64 value, int count) {
            if (count >= 28) return i64{0};
            const i64 kept = value >> count;
            if (kept == 0) return i64{0};
            return kept | ((value & ((i64{1} << count) - 1)) != 0 ? 1 : 0);
        };
        if (gap >= 0) {
            addend = shifted(addend, gap);
        } else {
            sum = shifted(sum, -gap);
            exponent = z_exponent;
        }
        const i64 signed_product = negative ? -sum : sum, signed_addend = z & kSign ? -addend : addend;
        sum = signed_product + signed_addend;
        negative = sum < 0;
        if (negative) sum = -sum;
    }
    if (sum == 0) return 0;
    // Leading one to bit 26, then round the three extra bits to nearest even.
    int length = 64 - __builtin_clzll(static_cast<u64>(sum));
    while (length > 27) {
        sum = (sum >> 1) | (sum & 1);
        --length;
        ++exponent;
    }
    while (length < 27) {
        sum <<= 1;
        ++length;
        --exponent;
    }
    u64 rounded = static_cast<u64>(sum >> 3);
    const u32 rest = static_cast<u32>(sum & 7);
    if (rest > 4 || (rest == 4 && (rounded & 1))) ++rounded;
    if (rounded >> 24) {
        rounded >>= 1;
        ++exponent;
    }
    const u32 sign = negative ? kSign : 0u;
    if (exponent <= 0) return 0;
    if (exponent >= 255) return sign | kInfinity;
    return sign | (static_cast<u32>(exponent) << 23) | (static_cast<u32>(rounded) & kFraction);
}

u32 not_a_number(u32 x, u32 y, u32 z) {
    const u32 sign = is_nan(z) ? z & kSign : is_nan(x) || is_nan(y) ? (x ^ y) & kSign : 0u;
    return sign | 0x7FC00000u;
}

u32 stored(u32 bits, Store store, bool wide) {
    if (store == Store::Raw) return wide ? bits : bits & 0xFFFF0000u;
    if (wide) return flush_denormal(bits);
    if (store == Store::NearestEven) return round_to_bf16_even(bits);
    return bits & 0xFFFF0000u;
}

const VectorOp* find_vector_op(const char* name) {
    static const std::map<std::string_view, const VectorOp*> index = [] {
        std::map<std::string_view, const VectorOp*> found;
        for (const auto& rows : vector_rows()) {
            for (std::size_t i = 0; i < rows.count; ++i) found[rows.first[i].name] = &rows.first[i];
        }
        return found;
    }();
    const auto found = index.find(name);
    return found == index.end() ? nullptr : found->second;
}

namespace {

const std::vector<u16>* table_of(const VectorOp& op, const VectorCall& call) {
    if (!op.table || call.wide) return nullptr;
    std::string key = op.table;
    for (u32 i = 0; i < call.param_count; ++i) key += "/" + std::to_string(call.params[i]);
    for (u32 i = 0; i < call.init_param_count; ++i) key += "/" + std::to_string(call.init_params[i]);
    if (call.variant) key += "+" + std::to_string(call.variant);
    const auto found = machine.tables.find(key);
    return found == machine.tables.end() ? nullptr : &found->second;
}

}  // namespace

void run_vector_op(const VectorOp& op, const VectorCall& call) {
    if (op.tile) return op.tile(call);
    const std::vector<u16>* table = op.unary ? table_of(op, call) : nullptr;
    for (int i = 0; i < 1024; ++i) {
        if (!(call.faces >> (i >> 8) & 1u)) continue;
        u32 value;
        if (table) {
            call.out[i] = static_cast<u32>((*table)[call.in[0][i] >> 16]) << 16;
            continue;
        }
        if (op.unary) value = op.unary(op.inputs ? call.in[0][i] : 0u, call);
        else if (op.binary) value = op.binary(call.in[0][i], call.in[1][i], call);
        else value = op.ternary(call.in[0][i], call.in[1][i], call.in[2][i], call);
        call.out[i] = stored(value, op.store, call.wide);
    }
}

}  // namespace tw
