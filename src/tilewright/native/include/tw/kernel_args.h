// Arguments of a kernel: compile-time words from TW_COMPILE_TIME_ARGS, run-time words from the driver.
#pragma once
#include <type_traits>

#include "types.h"

#ifndef TW_COMPILE_TIME_ARGS
#define TW_COMPILE_TIME_ARGS
#endif

namespace tw {

// One spare word keeps the array legal when there are no arguments.
constexpr u32 compile_time_args[] = {TW_COMPILE_TIME_ARGS};
constexpr u32 compile_time_arg_count = sizeof(compile_time_args) / sizeof(u32) - 1;

template <u32 kIndex>
constexpr u32 compile_time_arg() {
    static_assert(kIndex < compile_time_arg_count, "compile-time argument index is out of range");
    return compile_time_args[kIndex];
}

template <typename T>
inline T word_as(u32 word) {
    static_assert(sizeof(T) <= sizeof(u32), "arguments are 32-bit words");
    T value{};
    __builtin_memcpy(&value, &word, sizeof(T));
    return value;
}

}  // namespace tw

#define get_compile_time_arg_val(index) (::tw::compile_time_arg<(index)>())

template <typename T>
inline T get_arg_val(int index, TW_AT) {
    return tw::word_as<T>(tw::argument(static_cast<tw::u32>(index), false, tw_at));
}

template <typename T>
inline T get_common_arg_val(int index, TW_AT) {
    return tw::word_as<T>(tw::argument(static_cast<tw::u32>(index), true, tw_at));
}

inline std::uintptr_t get_arg_addr(int index, TW_AT) { return tw::argument_address(static_cast<tw::u32>(index), false, tw_at); }
inline std::uintptr_t get_common_arg_addr(int index, TW_AT) { return tw::argument_address(static_cast<tw::u32>(index), true, tw_at); }

inline std::uint8_t get_absolute_logical_x() { return static_cast<std::uint8_t>(tw::core_coordinate(false, true)); }
inline std::uint8_t get_absolute_logical_y() { return static_cast<std::uint8_t>(tw::core_coordinate(true, true)); }
inline std::uint8_t get_relative_logical_x() { return get_absolute_logical_x(); }
inline std::uint8_t get_relative_logical_y() { return get_absolute_logical_y(); }

#define DPRINT ::tw::Silence {}
#define DPRINT_UNPACK(...)
#define DPRINT_MATH(...)
#define DPRINT_PACK(...)
#define DeviceZoneScopedN(name)
#define ENDL() ""
namespace tw {
struct Silence {
    template <typename T>
    const Silence& operator<<(const T&) const {
        return *this;
    }
};
}  // namespace tw
