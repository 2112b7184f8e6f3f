// Arguments by name, as experimental/kernel_args.h has them: get_arg(args::rows).
#pragma once
#include "kernel_args.h"

namespace experimental {

template <typename T>
struct RtaArg {
    std::uint32_t byte_offset;
};
template <typename T>
struct CrtaArg {
    std::uint32_t byte_offset;
};
template <typename T>
struct CtaVal {
    T value;
};

template <typename T>
inline T get_arg(RtaArg<T> arg, TW_AT) {
    return ::get_arg_val<T>(static_cast<int>(arg.byte_offset / 4), tw_at);
}
template <typename T>
inline T get_arg(CrtaArg<T> arg, TW_AT) {
    return ::get_common_arg_val<T>(static_cast<int>(arg.byte_offset / 4), tw_at);
}
template <typename T>
constexpr T get_arg(CtaVal<T> arg) {
    return arg.value;
}

}  // namespace experimental
