// Pages of a tensor: TensorAccessor, and the address generators of the oldest spelling.
#pragma once
#include "../kernel_args.h"

#ifndef TW_ACCESSOR_WORDS
#define TW_ACCESSOR_WORDS 2  // compile-time words an interleaved tensor takes: configuration, aligned page size
#endif

template <std::uint32_t kOffset, std::uint32_t kCommonOffset = 0>
struct TensorAccessorArgs {
    static constexpr std::uint32_t config = tw::compile_time_arg<kOffset>();
    static constexpr bool is_sharded = (config & 1u) != 0;
    static constexpr bool is_dram = (config & 2u) != 0;

    // A sharded tensor also has its rank, its banks, tensor and shard sizes in pages, and two bank coordinates per word.
    static constexpr std::uint32_t num_compile_time_args() {
        if constexpr (is_sharded) {
            constexpr std::uint32_t rank = tw::compile_time_arg<kOffset + 2>(), banks = tw::compile_time_arg<kOffset + 3>() & 0x7FFFFFFFu;
            return 4 + 2 * rank + (banks + 1) / 2;
        }
        return TW_ACCESSOR_WORDS;
    }
    static constexpr std::uint32_t next_compile_time_args_offset() { return kOffset + num_compile_time_args(); }
    static constexpr std::uint32_t next_common_runtime_args_offset() { return kCommonOffset; }
    static constexpr std::uint32_t page_bytes() {
        if constexpr (TW_ACCESSOR_WORDS > 1) return tw::compile_time_arg<kOffset + 1>();
        return 0;
    }
};

template <typename Args>
struct TensorAccessor {
    std::uint32_t base, page;

    constexpr TensorAccessor(const Args&, std::uint32_t address, std::uint32_t page_bytes = Args::page_bytes())
        : base(address), page(page_bytes) {}

    std::uint32_t bytes() const { return page; }
    std::uint32_t get_aligned_page_size() const { return page; }
    std::uint64_t page_address(std::uint32_t index, std::uint32_t offset, tw::Loc at) const {
        return tw::page_address(base, index, page, offset, at);
    }
    std::uint64_t get_noc_addr(std::uint32_t index, std::uint32_t offset = 0, std::uint8_t = 0, TW_AT) const {
        return page_address(index, offset, tw_at);
    }
};

template <bool kDram>
struct InterleavedAddrGen {
    std::uint32_t bank_base_address, page_size;

    std::uint32_t bytes() const { return page_size; }
    std::uint64_t page_address(std::uint32_t index, std::uint32_t offset, tw::Loc at) const {
        return tw::page_address(bank_base_address, index, page_size, offset, at);
    }
    std::uint64_t get_noc_addr(std::uint32_t index, std::uint32_t offset = 0, std::uint8_t = 0, TW_AT) const {
        return page_address(index, offset, tw_at);
    }
};

#if TW_METAL < 78
template <bool kDram, std::uint32_t = 0>
struct InterleavedAddrGenFast {
    std::uint32_t bank_base_address, page_size;
    DataFormat data_format;

    std::uint32_t bytes() const { return page_size; }
    std::uint64_t page_address(std::uint32_t index, std::uint32_t offset, tw::Loc at) const {
        return tw::page_address(bank_base_address, index, page_size, offset, at);
    }
    std::uint64_t get_noc_addr(std::uint32_t index, std::uint32_t offset = 0, std::uint8_t = 0, TW_AT) const {
        return page_address(index, offset, tw_at);
    }
};
#endif
