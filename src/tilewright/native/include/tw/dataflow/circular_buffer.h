// A circular buffer as an object, in kernels of every kind.
#pragma once
#include "../kernel_args.h"

class CircularBuffer {
public:
    enum class AddrSelector { WRITE_PTR, READ_PTR };

    constexpr explicit CircularBuffer(std::uint32_t id) : id_(id) {}
    void reserve_back(std::int32_t pages, TW_AT) const { tw::cb_reserve(id_, pages, tw_at); }
    void push_back(std::int32_t pages, TW_AT) const { tw::cb_push(id_, pages, tw_at); }
    void wait_front(std::int32_t pages, TW_AT) const { tw::cb_wait(id_, pages, tw_at); }
    void pop_front(std::int32_t pages, TW_AT) const { tw::cb_pop(id_, pages, tw_at); }
    bool pages_reservable_at_back(std::int32_t pages, TW_AT) const { return tw::cb_has_space(id_, pages, tw_at); }
    bool pages_available_at_front(std::int32_t pages, TW_AT) const { return tw::cb_has_pages(id_, pages, tw_at); }
    std::uint32_t get_write_ptr(TW_AT) const { return tw::cb_write_address(id_, tw_at); }
    std::uint32_t get_read_ptr(TW_AT) const { return tw::cb_read_address(id_, tw_at); }
    std::uint32_t get_tile_size(TW_AT) const { return tw::cb_page_bytes(id_, tw_at); }
    DataFormat get_dataformat(TW_AT) const { return static_cast<DataFormat>(tw::cb_format(id_, tw_at)); }
    std::uint32_t get_tile_address(std::uint32_t tile, TW_AT) const { return tw::cb_tile_address(id_, tile, tw_at); }
    std::uint32_t read_tile_value(std::uint32_t tile, std::uint32_t element, TW_AT) const {
        return tw::cb_tile_value(id_, tile, element, tw_at);
    }
    std::uint32_t get_cb_id() const { return id_; }

private:
    std::uint32_t id_;
};
using DataflowBuffer = CircularBuffer;

// use<CircularBuffer::AddrSelector::READ_PTR>(cb): the pointer that a transfer takes, where it is not the usual one.
template <CircularBuffer::AddrSelector kSide>
struct CircularBufferView {
    const CircularBuffer& cb;
    std::uint32_t address(tw::Loc at) const {
        return kSide == CircularBuffer::AddrSelector::READ_PTR ? cb.get_read_ptr(at) : cb.get_write_ptr(at);
    }
};
template <CircularBuffer::AddrSelector kSide>
constexpr auto use(const CircularBuffer& cb) {
    return CircularBufferView<kSide>{cb};
}
