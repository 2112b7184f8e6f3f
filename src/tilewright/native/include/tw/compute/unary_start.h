// Start-up of kernels whose inputs go to DST by copy (older releases).
#pragma once
#include "move.h"

namespace ckernel {

template <auto...>
inline void unary_op_init_common(uint32_t in, uint32_t out, TW_AT) {
    tw::hw_startup(in, in, out, false, false, tw_at);
    tw::init("unary_op_init_common", tw::copy_mode(0), in, in, tw::kBoth, tw_at);
}
template <auto...>
inline void init_sfpu(uint32_t in, uint32_t out, TW_AT) {
    unary_op_init_common(in, out, tw_at);
}

}  // namespace ckernel
