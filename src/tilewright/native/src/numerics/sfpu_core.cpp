// Multiply-add, stores and the loop every vector op shares.
#include <map>
#include <string>
#include <string_view>

#include "../machine/machine.h"
#include "formats.h"
#include "sfpu.h"
#include "sfpu_rows.h"

namespace tw {

namespace {

i64 shift_sticky(i64 value, int count) {
    if (count <= 0) return value;
    if (count > 40) count = 40;
    const i64 kept = value >> count;
    return kept | (kept != 0 && (kept << count) != value ? 1 : 0);
}

i64 significand_of(u32 bits) { return exponent_of(bits) ? static_cast<i64>((bits & kFraction) | 0x800000u) : 0; }

// 0 unless the result is a NaN; then Wormhole's pattern, into which its ordinary path leaks fraction bits.
u32 nan_pattern(u32 x, u32 y, u32 z, bool endless) {
    const u32 product_sign = (x ^ y) & kSign;
    const bool x_zero = is_zero_or_denormal(x), y_zero = is_zero_or_denormal(y);
    if (is_nan(x) || is_nan(y) || (is_infinite(x) && y_zero) || (is_infinite(y) && x_zero)) return product_sign | 0x7F800001u;
    if (is_infinite(z) && endless && (z & kSign) != product_sign) return product_sign | 0x7F800001u;
    return is_nan(z) ? (z & kSign) | 0x7F800001u : 0u;
}

// The chips differ at the edges. Blackhole: one NaN; zeros and what is flushed keep their sign; results below 2^-126 round on their own
// grid. Wormhole: NaNs with leaked bits, zeros all +0, a sticky bit lost when a sum grows by two bits, and a product that
// overflows counts as infinity beside the other infinity.
template <bool kBlackhole>
u32 multiply_add_on(u32 x, u32 y, u32 z) {
    const u32 product_sign = (x ^ y) & kSign;
    const int z_exponent = static_cast<int>(exponent_of(z));
    int exponent = static_cast<int>(exponent_of(x)) + static_cast<int>(exponent_of(y)) - 127;
    u32 nan = 0;
    if (exponent_of(x) == 255 || exponent_of(y) == 255 || exponent >= 255 || z_exponent == 255) {
        nan = nan_pattern(x, y, z, exponent_of(x) == 255 || exponent_of(y) == 255 || (!kBlackhole && exponent >= 255));
        if (!nan) return is_infinite(z) ? z : product_sign | kInfinity;
        if (kBlackhole) return 0x7FC00000u;
        if (exponent > 255) exponent = 255;
    }
    i64 product = significand_of(x) * significand_of(y);
    product = (product >> 20) | ((product & 0xFFFFF) != 0 ? 1 : 0);  // 24 + 3 bits, the rest or-ed into the last
    i64 addend = significand_of(z) << 3;
    if (product == 0 || exponent < 0) {
        if (!nan) return addend ? z : kBlackhole ? product_sign & z : 0u;
        product = 0;
        exponent = 0;
    }
    product = shift_sticky(product, z_exponent - exponent);
    addend = shift_sticky(addend, exponent - z_exponent);
    int top = exponent > z_exponent ? exponent : z_exponent;
    i64 sum = (product_sign ? -product : product) + (z & kSign ? -addend : addend);
    const u32 sign = nan ? nan : sum < 0 ? kSign : 0u;
    if (sum < 0) sum = -sum;
    if (sum == 0) return nan;
    int excess = 63 - __builtin_clzll(static_cast<u64>(sum)) - 26;
    top += excess;
    if (top >= 255) return nan ? nan : sign | kInfinity;
    if (kBlackhole && top <= 0) {
        ++excess;
        top = 0;
    }
    if (top < 0) return nan;
    const i64 lost = kBlackhole ? (sum & (excess | 1)) != 0 : sum & 1;
    sum = excess <= 0 ? sum << -excess : (sum >> excess) | lost;
    u32 packed = (static_cast<u32>(top) << 23) + (static_cast<u32>(sum >> 3) & kFraction);
    packed += static_cast<u32>(sum & 7) + (packed & 1u) > 4u ? 1u : 0u;
    if (packed >> 23) return sign | packed;
    return kBlackhole ? sign : nan;
}

}  // namespace

bool on_blackhole() { return machine.blackhole; }

u32 multiply_add(u32 x, u32 y, u32 z) { return machine.blackhole ? multiply_add_on<true>(x, y, z) : multiply_add_on<false>(x, y, z); }

u32 stored(u32 bits, Store store, bool wide) {
    if (store == Store::Raw || store == Store::Integer) return bits;
    if (is_zero_or_denormal(bits)) return bits & kSign;
    if (wide) return bits;
    if (store == Store::NearestEven) bits = round_to_bf16_even(bits);
    if (store == Store::NearestAway) bits = round_to_bf16_away(bits);
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

const char* variant_name(const VectorOp& op, const VectorCall& call) {
    const std::string_view name = op.name;
    if (call.narrow) return ":narrow";
    if (call.variant == 0) return name == "exp_tile" && call.param(0) != kOne ? ":scaled" : "";
    if (name == "recip_tile") return ":ieee";
    if (name != "exp_tile") return ":approx";
    if (call.init_param(1) == 0) return ":approx_unclamped";
    if (call.init_param(0) == kOne) return ":approx";
    return call.init_param(0) == 0x3F000000u ? ":approx_scale_half" : ":approx_scaled";
}

// In 16-bit DST a function of one tile is a table of all bf16 numbers, asked for once.
const std::vector<u32>* table_of(const std::string& name, const VectorCall& call) {
    static std::map<std::string, std::vector<u32>> tables;
    std::string key = name;
    for (u32 i = 0; i < call.param_count; ++i) key += "," + std::to_string(call.params[i]);
    for (u32 i = 0; i < call.init_param_count; ++i) key += ";" + std::to_string(call.init_params[i]);
    const auto known = tables.find(key);
    if (known != tables.end()) return known->second.empty() ? nullptr : &known->second;
    std::vector<u32> inputs(65536), results(65536);
    for (u32 i = 0; i < 65536; ++i) inputs[i] = i << 16;
    const u32* in[] = {inputs.data()};
    if (!ask_function(name.c_str(), call, 1, 65536, in, results.data())) results.clear();
    std::vector<u32>& kept = tables[key];
    kept = std::move(results);
    return kept.empty() ? nullptr : &kept;
}

// Functions of the kernels' own making: a few algorithms are here, the others come from the driver, if it offers them.
bool run_known_function(const VectorOp& op, const VectorCall& call) {
    if (op.own) return false;
    const std::string name = op.name + std::string(variant_name(op, call));
    u32 (*const wide)(u32) = call.wide && !call.narrow && op.inputs == 1 && name != "exp_tile:scaled" ? wide_function(op.name, call.variant) : nullptr;
    if (wide) {
        for (int i = 0; i < 1024; ++i) {
            if (call.faces >> (i >> 8) & 1u) call.out[i] = stored(wide(call.in[0][i]), Store::Exact, true);
        }
        return true;
    }
    if (!machine.functions) return false;
    u32 results[1024];
    if (op.inputs == 1 && !call.wide) {
        const std::vector<u32>* table = table_of(name, call);
        if (!table) return false;
        for (int i = 0; i < 1024; ++i) results[i] = (*table)[call.in[0][i] >> 16];
    } else if (!ask_function(name.c_str(), call, op.inputs, 1024, call.in, results)) {
        return false;
    }
    for (int i = 0; i < 1024; ++i) {
        if (call.faces >> (i >> 8) & 1u) call.out[i] = results[i];
    }
    return true;
}

}  // namespace

void run_vector_op(const VectorOp& op, const VectorCall& call) {
    if (op.tile) return op.tile(call);
    if (run_known_function(op, call)) return;
    for (int i = 0; i < 1024; ++i) {
        if (!(call.faces >> (i >> 8) & 1u)) continue;
        u32 value;
        if (op.unary) value = op.unary(op.inputs ? call.in[0][i] : 0u, call);
        else if (op.binary) value = op.binary(call.in[0][i], call.in[1][i], call);
        else value = op.ternary(call.in[0][i], call.in[1][i], call.in[2][i], call);
        call.out[i] = stored(value, op.store, call.wide);
        if (op.store == Store::Integer && call.variant == static_cast<u32>(Format::UInt16)) call.out[i] &= 0xFFFFu;
    }
}

}  // namespace tw
