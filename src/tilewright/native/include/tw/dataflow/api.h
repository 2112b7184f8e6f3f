// Reader and writer kernels: buffers, pages of tensors, the NoC, semaphores.
#pragma once
#include "../kernel_args.h"
#include "accessor.h"

using std::uint32_t;
using std::uint64_t;

constexpr std::uint8_t noc_index = 0;

namespace tw {
struct MyCoordinate {
    bool y;
    u32 operator[](std::size_t) const { return core_coordinate(y, false); }
};
inline u32 address_of(const volatile void* pointer) { return static_cast<u32>(reinterpret_cast<std::uintptr_t>(pointer)); }
}  // namespace tw
inline constexpr tw::MyCoordinate my_x{false}, my_y{true};

inline void cb_wait_front(uint32_t cb, uint32_t pages, TW_AT) { tw::cb_wait(cb, pages, tw_at); }
inline void cb_pop_front(uint32_t cb, uint32_t pages, TW_AT) { tw::cb_pop(cb, pages, tw_at); }
inline void cb_reserve_back(uint32_t cb, uint32_t pages, TW_AT) { tw::cb_reserve(cb, pages, tw_at); }
inline void cb_push_back(uint32_t cb, uint32_t pages, TW_AT) { tw::cb_push(cb, pages, tw_at); }
inline bool cb_pages_available_at_front(uint32_t cb, uint32_t pages, TW_AT) { return tw::cb_has_pages(cb, pages, tw_at); }
inline bool cb_pages_reservable_at_back(uint32_t cb, uint32_t pages, TW_AT) { return tw::cb_has_space(cb, pages, tw_at); }
inline uint32_t get_read_ptr(uint32_t cb, TW_AT) { return tw::cb_read_address(cb, tw_at); }
inline uint32_t get_write_ptr(uint32_t cb, TW_AT) { return tw::cb_write_address(cb, tw_at); }
inline uint32_t get_tile_size(uint32_t cb, TW_AT) { return tw::cb_page_bytes(cb, tw_at); }
inline DataFormat get_dataformat(uint32_t cb, TW_AT) { return static_cast<DataFormat>(tw::cb_format(cb, tw_at)); }

struct LocalCBInterface {
    uint32_t fifo_page_size, fifo_num_pages, fifo_size, fifo_rd_ptr, fifo_wr_ptr;
};
inline LocalCBInterface get_local_cb_interface(uint32_t cb, TW_AT) {
    const uint32_t page = tw::cb_page_bytes(cb, tw_at), pages = tw::cb_page_count(cb, tw_at);
    return {page, pages, page * pages, tw::cb_read_address(cb, tw_at), tw::cb_write_address(cb, tw_at)};
}

// ---- addresses
inline uint64_t get_noc_addr(uint32_t x, uint32_t y, uint32_t l1, std::uint8_t = noc_index, TW_AT) { return tw::core_address(x, y, l1, tw_at); }
inline uint64_t get_noc_addr(uint32_t l1, std::uint8_t = noc_index, TW_AT) {
    return tw::core_address(tw::core_coordinate(false, false), tw::core_coordinate(true, false), l1, tw_at);
}
inline uint64_t get_noc_multicast_addr(uint32_t x0, uint32_t y0, uint32_t x1, uint32_t y1, uint32_t l1, std::uint8_t = noc_index, TW_AT) {
    return tw::multicast_address(x0, y0, x1, y1, l1, tw_at);
}
template <typename Generator, typename = decltype(&Generator::page_address)>
inline uint64_t get_noc_addr(uint32_t page, const Generator& generator, uint32_t offset = 0, std::uint8_t = noc_index, TW_AT) {
    return generator.page_address(page, offset, tw_at);
}

// ---- transfers
template <auto...>
inline void noc_async_read(uint64_t from, uint32_t l1, uint32_t bytes, std::uint8_t = noc_index, TW_AT) {
    tw::noc_read(from, l1, bytes, tw_at);
}
template <auto...>
inline void noc_async_write(uint32_t l1, uint64_t to, uint32_t bytes, std::uint8_t = noc_index, TW_AT) {
    tw::noc_write(l1, to, bytes, tw_at);
}
inline void noc_async_read_one_packet(uint64_t from, uint32_t l1, uint32_t bytes, std::uint8_t = noc_index, TW_AT) {
    tw::noc_read(from, l1, bytes, tw_at);
}
inline void noc_async_write_one_packet(uint32_t l1, uint64_t to, uint32_t bytes, std::uint8_t = noc_index, TW_AT) {
    tw::noc_write(l1, to, bytes, tw_at);
}
inline void noc_async_read_barrier(std::uint8_t = noc_index, TW_AT) { tw::noc_read_barrier(tw_at); }
inline void noc_async_read_set_trid(uint32_t id = 0, std::uint8_t = noc_index, TW_AT) { tw::noc_read_id(id, tw_at); }
inline void noc_async_read_barrier_with_trid(uint32_t id, std::uint8_t = noc_index, TW_AT) { tw::noc_read_id_barrier(id, tw_at); }
inline void noc_async_write_barrier(std::uint8_t = noc_index, TW_AT) { tw::noc_write_barrier(false, tw_at); }
inline void noc_async_writes_flushed(std::uint8_t = noc_index, TW_AT) { tw::noc_write_barrier(true, tw_at); }
inline void noc_async_atomic_barrier(std::uint8_t = noc_index, TW_AT) { tw::atomic_barrier(tw_at); }
inline void noc_async_full_barrier(std::uint8_t = noc_index, TW_AT) {
    tw::noc_read_barrier(tw_at);
    tw::noc_write_barrier(false, tw_at);
    tw::atomic_barrier(tw_at);
}

template <typename Accessor>
inline void noc_async_read_page(uint32_t page, const Accessor& accessor, uint32_t l1, uint32_t offset = 0, std::uint8_t = noc_index, TW_AT) {
    tw::noc_read(accessor.page_address(page, offset, tw_at), l1, accessor.bytes() - offset, tw_at);
}
template <typename Accessor>
inline void noc_async_write_page(uint32_t page, const Accessor& accessor, uint32_t l1, uint32_t size = 0, uint32_t offset = 0,
                                 std::uint8_t = noc_index, TW_AT) {
    tw::noc_write(l1, accessor.page_address(page, offset, tw_at), size ? size : accessor.bytes() - offset, tw_at);
}
template <typename Accessor>
inline void noc_async_read_tile(uint32_t page, const Accessor& accessor, uint32_t l1, uint32_t offset = 0, std::uint8_t = noc_index, TW_AT) {
    tw::noc_read(accessor.page_address(page, offset, tw_at), l1, accessor.bytes() - offset, tw_at);
}
template <typename Accessor>
inline void noc_async_write_tile(uint32_t page, const Accessor& accessor, uint32_t l1, std::uint8_t = noc_index, TW_AT) {
    tw::noc_write(l1, accessor.page_address(page, 0, tw_at), accessor.bytes(), tw_at);
}

template <auto...>
inline void noc_async_write_multicast(uint32_t l1, uint64_t to, uint32_t bytes, uint32_t receivers, bool linked = false, std::uint8_t = noc_index, TW_AT) {
    tw::noc_multicast(l1, to, bytes, receivers, false, linked, tw_at);
}
template <auto...>
inline void noc_async_write_multicast_loopback_src(uint32_t l1, uint64_t to, uint32_t bytes, uint32_t receivers, bool linked = false,
                                                   std::uint8_t = noc_index, TW_AT) {
    tw::noc_multicast(l1, to, bytes, receivers, true, linked, tw_at);
}

// ---- semaphores
template <auto...>
inline uint32_t get_semaphore(uint32_t id, TW_AT) {
    return tw::semaphore_address(id, tw_at);
}
inline void noc_semaphore_set(volatile tt_l1_ptr uint32_t* word, uint32_t value, TW_AT) {
    tw::semaphore_set(tw::address_of(word), value, tw_at);
}
inline void noc_semaphore_wait(volatile tt_l1_ptr uint32_t* word, uint32_t value, TW_AT) {
    tw::semaphore_wait(tw::address_of(word), value, false, tw_at);
}
inline void noc_semaphore_wait_min(volatile tt_l1_ptr uint32_t* word, uint32_t value, TW_AT) {
    tw::semaphore_wait(tw::address_of(word), value, true, tw_at);
}
template <auto...>
inline void noc_semaphore_inc(uint64_t address, uint32_t amount, std::uint8_t = noc_index, TW_AT) {
    tw::semaphore_add(address, amount, tw_at);
}
inline void noc_semaphore_set_remote(uint32_t l1, uint64_t to, std::uint8_t = noc_index, TW_AT) { tw::noc_write(l1, to, 4, tw_at); }
inline void noc_semaphore_set_multicast(uint32_t l1, uint64_t to, uint32_t receivers, bool linked = false, std::uint8_t = noc_index, TW_AT) {
    tw::semaphore_multicast(l1, to, receivers, false, linked, tw_at);
}
inline void noc_semaphore_set_multicast_loopback_src(uint32_t l1, uint64_t to, uint32_t receivers, bool linked = false, std::uint8_t = noc_index, TW_AT) {
    tw::semaphore_multicast(l1, to, receivers, true, linked, tw_at);
}
inline void invalidate_l1_cache(TW_AT) { tw::spin(tw_at); }
