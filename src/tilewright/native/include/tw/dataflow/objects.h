// The object API (Device 2.0): a Noc that moves between endpoints, and semaphores, over the same calls.
#pragma once
#include "api.h"
#include "circular_buffer.h"

enum class NocOptions : std::uint32_t {
    DEFAULT = 0, TXN_ID = 1, POSTED = 2, CUSTOM_VC = 4, MCAST_INCL_SRC = 8, INLINE_L1 = 16, INLINE_REG = 32,
};
constexpr NocOptions operator|(NocOptions a, NocOptions b) {
    return static_cast<NocOptions>(static_cast<std::uint32_t>(a) | static_cast<std::uint32_t>(b));
}
constexpr bool has_flag(NocOptions options, NocOptions flag) {
    return (static_cast<std::uint32_t>(options) & static_cast<std::uint32_t>(flag)) != 0;
}
struct NocOptVals {
    uint32_t vc = 0, trid = 0;
};

struct UnicastEndpoint {};
struct PrecomposedUnicastEndpoint {};
struct MulticastEndpoint {};

template <typename T, typename = std::uintptr_t>
class CoreLocalMem {
public:
    CoreLocalMem(std::uintptr_t address) : address_(address) {}
    CoreLocalMem(T* pointer) : address_(reinterpret_cast<std::uintptr_t>(pointer)) {}
    T* get_unsafe_ptr() const { return reinterpret_cast<T*>(address_); }
    std::uintptr_t get_address() const { return address_; }
    T& operator[](uint32_t index) const { return get_unsafe_ptr()[index]; }
    T& operator*() const { return *get_unsafe_ptr(); }
    T* operator->() const { return get_unsafe_ptr(); }
    CoreLocalMem operator+(std::ptrdiff_t count) const { return CoreLocalMem(address_ + count * sizeof(T)); }

private:
    std::uintptr_t address_;
};

struct NocRectangle {
    uint32_t noc_x_start{}, noc_y_start{}, noc_x_end{}, noc_y_end{};
};

// What an endpoint's arguments are called, and which address they make. An accessor of pages is what has no entry of its own.
template <typename T>
struct noc_traits_t {
    struct args {
        uint32_t page_id{};
        uint32_t offset_bytes = 0;
    };
    using src_args_type = args;
    using dst_args_type = args;
    static uint64_t remote(const T& accessor, const args& given, tw::Loc at) {
        return accessor.page_address(given.page_id, given.offset_bytes, at);
    }
};

namespace tw {
struct InL1 {
    uint32_t offset_bytes{};
};
struct InRectangle {
    uint32_t noc_x_start{}, noc_y_start{}, noc_x_end{}, noc_y_end{}, offset_bytes{};
};
inline u64 rectangle(u32 x0, u32 y0, u32 x1, u32 y1, u32 l1, Loc at) { return multicast_address(x0, y0, x1, y1, l1, at); }
}  // namespace tw

template <>
struct noc_traits_t<CircularBuffer> {
    using src_args_type = tw::InL1;
    using dst_args_type = tw::InL1;
    using dst_args_mcast_type = tw::InRectangle;
    static uint32_t source(const CircularBuffer& cb, const tw::InL1& given, tw::Loc at) { return cb.get_read_ptr(at) + given.offset_bytes; }
    static uint32_t target(const CircularBuffer& cb, const tw::InL1& given, tw::Loc at) { return cb.get_write_ptr(at) + given.offset_bytes; }
    static uint64_t many(const CircularBuffer& cb, const tw::InRectangle& given, tw::Loc at) {
        return tw::rectangle(given.noc_x_start, given.noc_y_start, given.noc_x_end, given.noc_y_end,
                             cb.get_write_ptr(at) + given.offset_bytes, at);
    }
};
template <CircularBuffer::AddrSelector kSide>
struct noc_traits_t<CircularBufferView<kSide>> {
    using src_args_type = tw::InL1;
    using dst_args_type = tw::InL1;
    using dst_args_mcast_type = tw::InRectangle;
    using View = CircularBufferView<kSide>;
    static uint32_t source(const View& view, const tw::InL1& given, tw::Loc at) { return view.address(at) + given.offset_bytes; }
    static uint32_t target(const View& view, const tw::InL1& given, tw::Loc at) { return view.address(at) + given.offset_bytes; }
    static uint64_t many(const View& view, const tw::InRectangle& given, tw::Loc at) {
        return tw::rectangle(given.noc_x_start, given.noc_y_start, given.noc_x_end, given.noc_y_end, view.address(at) + given.offset_bytes, at);
    }
};
template <typename T, typename A>
struct noc_traits_t<CoreLocalMem<T, A>> {
    using src_args_type = tw::InL1;
    using dst_args_type = tw::InL1;
    static uint32_t source(const CoreLocalMem<T, A>& memory, const tw::InL1& given, tw::Loc) {
        return static_cast<uint32_t>(memory.get_address()) + given.offset_bytes;
    }
    static uint32_t target(const CoreLocalMem<T, A>& memory, const tw::InL1& given, tw::Loc at) { return source(memory, given, at); }
};
template <>
struct noc_traits_t<UnicastEndpoint> {
    struct args {
        uint32_t noc_x{}, noc_y{}, addr{};
    };
    using src_args_type = args;
    using dst_args_type = args;
    static uint64_t remote(const UnicastEndpoint&, const args& given, tw::Loc at) {
        return tw::core_address(given.noc_x, given.noc_y, given.addr, at);
    }
};
template <>
struct noc_traits_t<PrecomposedUnicastEndpoint> {
    struct args {
        uint64_t noc_addr{};
    };
    using src_args_type = args;
    using dst_args_type = args;
    static uint64_t remote(const PrecomposedUnicastEndpoint&, const args& given, tw::Loc) { return given.noc_addr; }
};
template <>
struct noc_traits_t<MulticastEndpoint> {
    struct dst_args_mcast_type {
        uint32_t noc_x_start{}, noc_y_start{}, noc_x_end{}, noc_y_end{}, addr{};
    };
    static uint64_t many(const MulticastEndpoint&, const dst_args_mcast_type& given, tw::Loc at) {
        return tw::rectangle(given.noc_x_start, given.noc_y_start, given.noc_x_end, given.noc_y_end, given.addr, at);
    }
};

class Noc {
    template <typename T>
    using src_args_t = typename noc_traits_t<T>::src_args_type;
    template <typename T>
    using dst_args_t = typename noc_traits_t<T>::dst_args_type;
    template <typename T>
    using dst_args_mcast_t = typename noc_traits_t<T>::dst_args_mcast_type;

public:
    Noc() = default;
    explicit Noc(std::uint8_t id) : id_(id) {}
    std::uint8_t get_noc_id() const { return id_; }

    template <NocOptions kOptions = NocOptions::DEFAULT, uint32_t = 0, bool = true, typename Src, typename Dst>
    void async_read(const Src& from, const Dst& to, uint32_t bytes, const src_args_t<Src>& source, const dst_args_t<Dst>& target,
                    const NocOptVals& values = {}, TW_AT) const {
        if (has_flag(kOptions, NocOptions::TXN_ID)) tw::noc_read_id(values.trid, tw_at);  // and it stays
        tw::noc_read(noc_traits_t<Src>::remote(from, source, tw_at), noc_traits_t<Dst>::target(to, target, tw_at), bytes, tw_at);
    }
    template <NocOptions = NocOptions::DEFAULT, uint32_t = 0, bool = true, typename Src, typename Dst>
    void async_write(const Src& from, const Dst& to, uint32_t bytes, const src_args_t<Src>& source, const dst_args_t<Dst>& target,
                     const NocOptVals& = {}, TW_AT) const {
        tw::noc_write(noc_traits_t<Src>::source(from, source, tw_at), noc_traits_t<Dst>::remote(to, target, tw_at), bytes, tw_at);
    }
    template <NocOptions kOptions = NocOptions::DEFAULT, uint32_t = 0, typename Src, typename Dst>
    void async_write_multicast(const Src& from, const Dst& to, uint32_t bytes, uint32_t receivers, const src_args_t<Src>& source,
                               const dst_args_mcast_t<Dst>& target, bool linked = false, TW_AT) const {
        tw::noc_multicast(noc_traits_t<Src>::source(from, source, tw_at), noc_traits_t<Dst>::many(to, target, tw_at), bytes, receivers,
                          has_flag(kOptions, NocOptions::MCAST_INCL_SRC), linked, tw_at);
    }
    template <typename Dst>
    void async_write_zeros(const Dst& to, uint32_t bytes, const dst_args_t<Dst>& target = {}, TW_AT) const {
        tw::noc_zero(noc_traits_t<Dst>::target(to, target, tw_at), bytes, tw_at);
    }
    void write_zeros_l1_barrier() const {}

    template <NocOptions kOptions = NocOptions::DEFAULT>
    void async_read_barrier(const NocOptVals& values = {}, TW_AT) const {
        has_flag(kOptions, NocOptions::TXN_ID) ? tw::noc_read_id_barrier(values.trid, tw_at) : tw::noc_read_barrier(tw_at);
    }
    template <NocOptions = NocOptions::DEFAULT>
    void async_write_barrier(const NocOptVals& = {}, TW_AT) const { tw::noc_write_barrier(false, tw_at); }
    template <NocOptions = NocOptions::DEFAULT>
    void async_writes_flushed(const NocOptVals& = {}, TW_AT) const { tw::noc_write_barrier(true, tw_at); }
    void async_atomic_barrier(TW_AT) const { tw::atomic_barrier(tw_at); }
    void async_full_barrier(TW_AT) const { noc_async_full_barrier(noc_index, tw_at); }

private:
    std::uint8_t id_ = noc_index;
};

enum class ProgrammableCoreType { TENSIX };

template <ProgrammableCoreType = ProgrammableCoreType::TENSIX>
class Semaphore {
public:
    explicit Semaphore(uint32_t id, TW_AT) : address_(tw::semaphore_address(id, tw_at)) {}
    void up(uint32_t amount, TW_AT) const { tw::semaphore_set(address_, value() + amount, tw_at); }
    void down(uint32_t amount, TW_AT) const {
        tw::semaphore_wait(address_, amount, true, tw_at);
        tw::semaphore_set(address_, value() - amount, tw_at);
    }
    void set(uint32_t level, TW_AT) const { tw::semaphore_set(address_, level, tw_at); }
    void wait(uint32_t level, TW_AT) const { tw::semaphore_wait(address_, level, false, tw_at); }
    void wait_min(uint32_t level, TW_AT) const { tw::semaphore_wait(address_, level, true, tw_at); }
    uint32_t value() const { return *reinterpret_cast<const volatile uint32_t*>(static_cast<std::uintptr_t>(address_)); }

    void up(const Noc&, uint32_t x, uint32_t y, uint32_t amount, std::uint8_t = 0, TW_AT) const {
        tw::semaphore_add(tw::core_address(x, y, address_, tw_at), amount, tw_at);
    }
    void relay_unicast(const Noc&, const Semaphore& target, uint32_t x, uint32_t y, TW_AT) const {
        tw::noc_write(address_, tw::core_address(x, y, target.address_, tw_at), 4, tw_at);
    }
    template <NocOptions kOptions = NocOptions::DEFAULT>
    void set_multicast(const Noc& noc, uint32_t x0, uint32_t y0, uint32_t x1, uint32_t y1, uint32_t receivers, bool linked = false, TW_AT) const {
        relay_multicast<kOptions>(noc, *this, x0, y0, x1, y1, receivers, linked, tw_at);
    }
    template <NocOptions kOptions = NocOptions::DEFAULT>
    void relay_multicast(const Noc&, const Semaphore& target, uint32_t x0, uint32_t y0, uint32_t x1, uint32_t y1, uint32_t receivers,
                         bool linked = false, TW_AT) const {
        tw::semaphore_multicast(address_, tw::multicast_address(x0, y0, x1, y1, target.address_, tw_at), receivers,
                                has_flag(kOptions, NocOptions::MCAST_INCL_SRC), linked, tw_at);
    }

private:
    uint32_t address_;
};
Semaphore(uint32_t) -> Semaphore<>;
