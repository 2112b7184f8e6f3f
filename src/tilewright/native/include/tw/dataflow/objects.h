// The object API: Noc and CircularBuffer, over the same calls.
#pragma once
#include "api.h"

class CircularBuffer {
public:
    constexpr explicit CircularBuffer(uint32_t id) : id_(id) {}
    void reserve_back(uint32_t pages, TW_AT) const { tw::cb_reserve(id_, pages, tw_at); }
    void push_back(uint32_t pages, TW_AT) const { tw::cb_push(id_, pages, tw_at); }
    void wait_front(uint32_t pages, TW_AT) const { tw::cb_wait(id_, pages, tw_at); }
    void pop_front(uint32_t pages, TW_AT) const { tw::cb_pop(id_, pages, tw_at); }
    uint32_t get_write_ptr(TW_AT) const { return tw::cb_write_address(id_, tw_at); }
    uint32_t get_read_ptr(TW_AT) const { return tw::cb_read_address(id_, tw_at); }
    uint32_t get_tile_size(TW_AT) const { return tw::cb_page_bytes(id_, tw_at); }
    uint32_t get_cb_id() const { return id_; }

private:
    uint32_t id_;
};
using DataflowBuffer = CircularBuffer;

struct NocPage {
    uint32_t page_id = 0, offset_bytes = 0;
};
struct NocOffset {
    uint32_t offset_bytes = 0;
};

class Noc {
public:
    template <typename Accessor>
    void async_read(const Accessor& from, const CircularBuffer& to, uint32_t bytes, NocPage page, NocOffset offset = {}, TW_AT) const {
        tw::noc_read(from.page_address(page.page_id, page.offset_bytes, tw_at), to.get_write_ptr(tw_at) + offset.offset_bytes, bytes, tw_at);
    }
    template <typename Accessor>
    void async_write(const CircularBuffer& from, const Accessor& to, uint32_t bytes, NocOffset offset, NocPage page, TW_AT) const {
        tw::noc_write(from.get_read_ptr(tw_at) + offset.offset_bytes, to.page_address(page.page_id, page.offset_bytes, tw_at), bytes, tw_at);
    }
    void async_write_zeros(const CircularBuffer& to, uint32_t bytes, NocOffset offset = {}, TW_AT) const {
        tw::noc_zero(to.get_write_ptr(tw_at) + offset.offset_bytes, bytes, tw_at);
    }
    void async_read_barrier(TW_AT) const { tw::noc_read_barrier(tw_at); }
    void async_write_barrier(TW_AT) const { tw::noc_write_barrier(false, tw_at); }
    void async_writes_flushed(TW_AT) const { tw::noc_write_barrier(true, tw_at); }
};
