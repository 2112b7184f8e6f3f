// Stands in for the vendor compiler's own header, so that a plain RISC-V g++ can type-check kernels against ttnn's headers.
// Vector values have the right names and take part in every expression; nothing here computes.
#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>

#define sfpi_inline inline __attribute__((always_inline))

namespace sfpi {

enum class DataLayout { Default, FSrcB, F32, F16a, F16b, I32, SM32, U32, U16, U8, I16, SM16, SM8, LO16, HI16, M32 };
enum class RoundMode { Nearest, NearestStochastic, Stochastic, Zero, Even };
enum class ExponentMode { Unbiased, Biased, NoDebias, Debias };
enum class MantissaMode { NoImplicit, ImplicitOne, Implicit };
enum class ShiftMode { Logical, Arithmetic };
enum class LutSign { Retain, Update };
enum class FractionalHalf { Low, High };
enum class LRegs { LReg0, LReg1, LReg2, LReg3, LReg4, LReg5, LReg6, LReg7, LRegCount };

// What every vector value is made of.
struct Lanes {};
template <class T>
inline constexpr bool is_lanes = std::is_base_of_v<Lanes, std::decay_t<T>>;

template <int Kind>
struct Vector : Lanes {
  using vType = Vector;
  Vector() = default;
  Vector(const Vector&) = default;
  Vector& operator=(const Vector&) = default;
  template <class T, class = std::enable_if_t<is_lanes<T> || std::is_arithmetic_v<std::decay_t<T>> || std::is_class_v<std::decay_t<T>>>>
  Vector(const T&) {}
  Vector(float, float) {}
  template <class T>
  Vector& operator=(const T&) {
    return *this;
  }
  Vector get() const { return {}; }
  Vector operator-() const { return {}; }
  Vector operator~() const { return {}; }
  Vector operator++(int) const { return {}; }
};

using vFloat = Vector<0>;
using vInt = Vector<1>;
using vUInt = Vector<2>;
using vSMag = Vector<3>;
using vMag = Vector<4>;
using vSMag16 = Vector<5>;
using vUInt16 = Vector<6>;
using vUInt8 = Vector<7>;
using vSMag8 = Vector<8>;
using vFloat16b = Vector<9>;
using vFloat16a = Vector<10>;
using vLut16ss = Vector<11>;
using vLut16ii = Vector<12>;
using vLut8si = Vector<13>;
using vInt16 = Vector<14>;

struct vBool : Lanes {
  vBool() = default;
  template <class T>
  vBool(const T&) {}
  vBool operator!() const { return {}; }
};

// A type with no lanes on either side keeps its built-in operators.
template <class A, class B>
using Wider = std::conditional_t<is_lanes<A>, std::decay_t<A>, std::decay_t<B>>;
template <class A, class B>
using IfLanes = std::enable_if_t<is_lanes<A> || is_lanes<B>>;

#define SFPI_ARITHMETIC(op)                     \
  template <class A, class B, class = IfLanes<A, B>> \
  inline typename Wider<A, B>::vType operator op(const A&, const B&) { \
    return {};                                  \
  }
#define SFPI_COMPARISON(op)                     \
  template <class A, class B, class = IfLanes<A, B>> \
  inline vBool operator op(const A&, const B&) { \
    return {};                                  \
  }
#define SFPI_ASSIGNMENT(op)                     \
  template <class A, class B, class = std::enable_if_t<is_lanes<A>>> \
  inline A& operator op(A& a, const B&) {       \
    return a;                                   \
  }
SFPI_ARITHMETIC(+)
SFPI_ARITHMETIC(-)
SFPI_ARITHMETIC(*)
SFPI_ARITHMETIC(&)
SFPI_ARITHMETIC(|)
SFPI_ARITHMETIC(^)
SFPI_ARITHMETIC(<<)
SFPI_ARITHMETIC(>>)
SFPI_COMPARISON(==)
SFPI_COMPARISON(!=)
SFPI_COMPARISON(<)
SFPI_COMPARISON(<=)
SFPI_COMPARISON(>)
SFPI_COMPARISON(>=)
SFPI_COMPARISON(&&)
SFPI_COMPARISON(||)
SFPI_ASSIGNMENT(+=)
SFPI_ASSIGNMENT(-=)
SFPI_ASSIGNMENT(*=)
SFPI_ASSIGNMENT(&=)
SFPI_ASSIGNMENT(|=)
SFPI_ASSIGNMENT(^=)
SFPI_ASSIGNMENT(<<=)
SFPI_ASSIGNMENT(>>=)
#undef SFPI_ARITHMETIC
#undef SFPI_COMPARISON
#undef SFPI_ASSIGNMENT

// Registers: readable and writable as any kind of vector.
template <class Default>
struct Register : Lanes {
  using vType = Default;
  template <DataLayout>
  Register mode(int = 0) const {
    return {};
  }
  Register mode(int) const { return {}; }
  Register mode(DataLayout, int = 0) const { return {}; }
  template <class T>
  const Register& operator=(const T&) const {
    return *this;
  }
  void in_use() const {}
  Default operator-() const { return {}; }
  Default operator~() const { return {}; }
};

struct DstRegisters {
  Register<vFloat> operator[](int) const { return {}; }
  const DstRegisters& operator++(int) const { return *this; }
  const DstRegisters& operator+=(int) const { return *this; }
  const DstRegisters& operator-=(int) const { return *this; }
};
struct LaneRegisters {
  Register<vFloat> operator[](LRegs) const { return {}; }
};
inline constexpr DstRegisters dst_reg{};
inline constexpr LaneRegisters l_reg{};
inline constexpr Register<vFloat> vConstFloatPrgm0{}, vConstFloatPrgm1{}, vConstFloatPrgm2{}, vConst0{}, vConst1{}, vConst0p8373{}, vConstNeg1{};
inline constexpr Register<vInt> vConstIntPrgm0{}, vConstIntPrgm1{}, vConstIntPrgm2{}, vConstTileId{};

struct lreg_pressure {
  lreg_pressure() {}
  ~lreg_pressure() {}
};
struct sFloat16 {
  template <class T>
  constexpr explicit sFloat16(T) {}
  constexpr uint32_t get() const { return 0; }
};
struct sFloat16b : sFloat16 {
  using sFloat16::sFloat16;
};
struct sFloat16a : sFloat16 {
  using sFloat16::sFloat16;
};

#define SFPI_SAME(name)                         \
  template <class A, class... Rest>             \
  inline typename std::decay_t<A>::vType name(const A&, const Rest&...) { \
    return {};                                  \
  }
#define SFPI_RESULT(name, kind)                 \
  template <class... All>                       \
  inline kind name(const All&...) {             \
    return {};                                  \
  }
SFPI_SAME(abs)
SFPI_SAME(min)
SFPI_SAME(max)
SFPI_SAME(clamp)
SFPI_SAME(symmetric_clamp)
SFPI_SAME(shft)
SFPI_SAME(setsgn2)
SFPI_RESULT(setexp, vFloat)
SFPI_RESULT(setman, vFloat)
SFPI_RESULT(copysgn, vFloat)
SFPI_RESULT(copyman, vFloat)
SFPI_RESULT(lut, vFloat)
SFPI_RESULT(lut2, vFloat)
SFPI_RESULT(lut_sign, vFloat)
SFPI_RESULT(lut2_sign, vFloat)
SFPI_RESULT(addexp, vFloat)
SFPI_RESULT(approx_recip, vFloat)
SFPI_RESULT(approx_exp, vFloat)
SFPI_RESULT(exexp, vInt)
SFPI_RESULT(exman, vInt)
SFPI_RESULT(exman8, vInt)
SFPI_RESULT(exman9, vInt)
SFPI_RESULT(lz, vInt)
SFPI_RESULT(fractional_mul, vInt)
SFPI_RESULT(is_inf, vBool)
SFPI_RESULT(is_nan, vBool)
SFPI_RESULT(is_finite, vBool)
SFPI_RESULT(is_pos, vBool)
SFPI_RESULT(is_neg, vBool)
#undef SFPI_SAME
#undef SFPI_RESULT
template <class A, class B>
inline auto setsgn(const A&, const B&) -> std::conditional_t<is_lanes<A>, A, vFloat> {
  return {};
}
template <class A>
inline const A& nearby(const A& a) {
  return a;
}
template <class A, class B>
inline std::pair<typename A::vType, typename A::vType> min_max(const A&, const B&) {
  return {};
}
template <class To, class From>
inline To as(const From&) {
  return {};
}
template <class To, class From>
inline To convert(const From&, RoundMode = RoundMode::Nearest) {
  return {};
}
template <class A, class B>
inline void vec_min_max(A&, B&) {}
template <class A, class B>
inline void vec_swap(A&, B&) {}

inline bool lanes_on(const vBool&) { return true; }

// Modifiers of instructions: their numbers do not matter to types.
constexpr uint32_t SFP_DESTREG_STRIDE = 2, SFPABS_MOD1_INT = 0, SFPABS_MOD1_FLOAT = 1, SFPARECIP_MOD1_RECIP = 0, SFPCAST_MOD1_INT32_TO_FP32_RNE = 0,
                   SFPCAST_MOD1_SM32_TO_FP32_RNE = 0, SFPENCC_IMM12_BOTH = 3, SFPENCC_MOD1_EI_RI = 10, SFPENCC_MOD1_EU_R1 = 0,
                   SFPEXEXP_MOD1_SET_CC_COMP_EXP = 8, SFPEXEXP_MOD1_SET_CC_SGN_EXP = 2, SFPEXMAN_MOD1_PAD9 = 1,
                   SFPIADD_MOD1_ARG_2SCOMP_LREG_DST = 2, SFPIADD_MOD1_ARG_IMM = 1, SFPIADD_MOD1_ARG_LREG_DST = 0, SFPIADD_MOD1_CC_GTE0 = 8, SFPIADD_MOD1_CC_LT0 = 0,
                   SFPIADD_MOD1_CC_NONE = 4, SFPLOADI_MOD0_FLOATA = 1, SFPLOADI_MOD0_FLOATB = 0, SFPLOADI_MOD0_LOWER = 10,
                   SFPLOADI_MOD0_SHORT = 4, SFPLOADI_MOD0_UPPER = 8, SFPLOADI_MOD0_USHORT = 2, SFPLOAD_MOD0_FMT_FP16B = 2, SFPLOAD_MOD0_FMT_SRCB = 0,
                   SFPLUTFP32_MOD0_FP16_6ENTRY_TABLE1 = 2, SFPLZ_MOD1_CC_NE0 = 2, SFPMAD_MOD1_INDIRECT_VA = 4, SFPMAD_MOD1_OFFSET_NONE = 0,
                   SFPMOV_MOD1_NEGATE = 1, SFPMUL24_MOD1_LOWER = 0, SFPMUL24_MOD1_UPPER = 1, SFPSETCC_MOD1_LREG_EQ0 = 6, SFPSETCC_MOD1_LREG_GTE0 = 4, SFPSETCC_MOD1_LREG_LT0 = 0,
                   SFPSETCC_MOD1_LREG_NE0 = 2, SFPSETEXP_MOD1_ARG_EXPONENT = 2, SFPSETSGN_MOD1_ARG_IMM = 1, SFPSHFT2_MOD1_SHFT_IMM = 6,
                   SFPSHFT2_MOD1_SHFT_LREG = 5, SFPSHFT2_MOD1_SUBVEC_SHFLROR1 = 3, SFPSHFT2_MOD1_SUBVEC_SHFLSHR1 = 4, SFPSHFT_MOD1_ARG_IMM = 1,
                   SFPSTOCHRND_MOD1_FP32_TO_FP16B = 1, SFPSTOCHRND_MOD1_FP32_TO_INT16 = 7, SFPSTOCHRND_MOD1_FP32_TO_INT8 = 3,
                   SFPSTOCHRND_MOD1_FP32_TO_UINT16 = 6, SFPSTOCHRND_MOD1_FP32_TO_UINT8 = 2, SFPSTOCHRND_RND_EVEN = 0,
                   SFPSTORE_MOD0_FMT_FP16B = 2, SFPSTORE_MOD0_FMT_LO16 = 6, SFPSTORE_MOD0_FMT_SRCB = 0, SFPSWAP_MOD1_SWAP = 0, SFPSWAP_MOD1_VEC_MIN_MAX = 1;

}  // namespace sfpi

#define v_if(condition) if (::sfpi::lanes_on(condition))
#define v_elseif(condition) else if (::sfpi::lanes_on(condition))
#define v_else else
#define v_endif
#define v_block {
#define v_endblock }
#define v_and(condition) (void)::sfpi::lanes_on(condition)

template <class... All>
inline ::sfpi::vFloat __builtin_rvtt_sfpmad(const All&...) {
  return {};
}
template <class... All>
inline ::sfpi::vInt __builtin_rvtt_sfpiadd_i(const All&...) {
  return {};
}
template <class... All>
inline ::sfpi::vFloat __builtin_rvtt_sfpgt(const All&...) {
  return {};
}
