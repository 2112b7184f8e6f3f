// Names and values of the kernel API's enumerations.
#pragma once
#include <cstdint>

#include "runtime.h"

#ifndef TW_METAL
#define TW_METAL 78
#endif

#define ALWI inline __attribute__((always_inline))
#define FORCE_INLINE inline __attribute__((always_inline))
#define tt_l1_ptr
#define tt_reg_ptr
#define TILE_HEIGHT 32
#define TILE_WIDTH 32
#define TILE_R_DIM 32
#define TILE_C_DIM 32
#define FACE_HEIGHT 16
#define FACE_WIDTH 16
#define FACE_R_DIM 16
#define FACE_C_DIM 16

enum class DataFormat : std::uint8_t {
    Float32 = 0, Float16 = 1, Bfp8 = 2, Bfp4 = 3, Tf32 = 4, Float16_b = 5, Bfp8_b = 6, Bfp4_b = 7, Int32 = 8, UInt16 = 9,
    Lf8 = 10, Bfp2 = 11, Int8 = 14, Bfp2_b = 15, UInt32 = 24, UInt8 = 30, Invalid = 255,
};

namespace tt {
enum CBIndex : std::uint8_t {
    c_0, c_1, c_2, c_3, c_4, c_5, c_6, c_7, c_8, c_9, c_10, c_11, c_12, c_13, c_14, c_15,
    c_16, c_17, c_18, c_19, c_20, c_21, c_22, c_23, c_24, c_25, c_26, c_27, c_28, c_29, c_30, c_31,
    c_32, c_33, c_34, c_35, c_36, c_37, c_38, c_39, c_40, c_41, c_42, c_43, c_44, c_45, c_46, c_47,
    c_48, c_49, c_50, c_51, c_52, c_53, c_54, c_55, c_56, c_57, c_58, c_59, c_60, c_61, c_62, c_63,
};
// The names before them; kernels of old still say tt::CB::c_in0, and some of the first new ones tt::CB::c_0.
struct CB {
    enum : std::uint8_t {
        c_in0, c_in1, c_in2, c_in3, c_in4, c_in5, c_in6, c_in7,
        dataflow0, dataflow1, dataflow2, dataflow3, dataflow4, dataflow5, dataflow6, dataflow7,
        c_out0, c_out1, c_out2, c_out3, c_out4, c_out5, c_out6, c_out7,
        c_intermed0, c_intermed1, c_intermed2, c_intermed3, c_intermed4, c_intermed5, c_intermed6, c_intermed7,
        c_0 = 0, c_1, c_2, c_3, c_4, c_5, c_6, c_7, c_8, c_9, c_10, c_11, c_12, c_13, c_14, c_15,
        c_16, c_17, c_18, c_19, c_20, c_21, c_22, c_23, c_24, c_25, c_26, c_27, c_28, c_29, c_30, c_31,
    };
};
}  // namespace tt

namespace ckernel {

enum class VectorMode : std::uint8_t { None = 0, R = 1, C = 2, RC = 4, RC_custom = 6 };
enum class BroadcastType : std::uint8_t { NONE = 0, COL = 1, ROW = 2, SCALAR = 3 };
enum class EltwiseBinaryType : std::uint8_t { ELWMUL = 0, ELWDIV = 1, ELWADD = 2, ELWSUB = 3, ELWLESS = 4 };
enum class EltwiseBinaryReuseDestType : std::uint8_t { NONE = 0, DEST_TO_SRCA = 1, DEST_TO_SRCB = 2 };
enum class PoolType : std::uint8_t { SUM = 0, AVG = 1, MAX = 2, MIN = 3 };
enum class ReduceDim : std::uint8_t { REDUCE_ROW = 0, REDUCE_COL = 1, REDUCE_SCALAR = 2 };
enum class SrcOrder : std::uint8_t { Regular, Reverse };
enum class DstRoundingMode : std::uint8_t { Default = 0, NearestEven = 1 };
enum class InputClamping : std::uint8_t { None = 0, ClampToNegative = 1 };
enum class RoundingMode : std::uint8_t { None = 0, Trunc = 1, Floor = 2 };
enum class ReciprocalDestAcc : std::uint8_t { BF16 = 0, FP32 = 1 };
enum class ReciprocalApproxMode : std::uint8_t { Default = 0, Approx = 1 };
enum class RsqrtMode : std::uint8_t { Default = 0, Approx = 1, Legacy = 2 };
enum class DataLayout : std::uint8_t { TILE = 0, ROW_MAJOR = 1 };
enum class MathFidelity : std::uint8_t { LoFi = 0, HiFi2 = 2, HiFi3 = 3, HiFi4 = 4 };

constexpr auto ELWMUL = EltwiseBinaryType::ELWMUL;
constexpr auto ELWADD = EltwiseBinaryType::ELWADD;
constexpr auto ELWSUB = EltwiseBinaryType::ELWSUB;

struct p_sfpu {
    static constexpr std::uint16_t kCONST_1_FP16B = 0x3F80;
};

}  // namespace ckernel

using namespace ckernel;
