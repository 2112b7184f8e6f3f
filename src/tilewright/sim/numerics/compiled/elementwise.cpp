// The matrix unit's element-wise operations, as fpu.py and accumulate.py compute them; those say why.
#include "lanes.h"

namespace {

using namespace tw;

constexpr double SMALLEST = 1.1754943508222875e-38;  // 2^-126
constexpr float SMALLEST_ROUNDING_UP = 1.1754943508222875e-38f * (1.0f - 1.0f / 512.0f);
constexpr double PUSH_AWAY_OPERAND = 1.0 + 1.0 / (1 << 20);
constexpr double OPERAND_MAGIC = 1.5 * 4398046511104.0;  // 1.5 * 2^52 units of the 11-bit grid

// The unit's view of a pattern: denormals are 0 and exponent 255 is an ordinary exponent.
inline Doubles decode(HalfWords bits) {
  const LongWords wide = __builtin_convertvector(bits, LongWords);
  const LongWords value = (((wide & 0x7FFFFFFFu) << 29) + (896ull << 52)) | ((wide & SIGN) << 32);
  return (Doubles)((wide & EXPONENT) != 0 ? value : value & 0u);
}

inline Doubles power_of(HalfWords bits) { return decode(bits & EXPONENT); }

inline Doubles size_of(Doubles value) { return (Doubles)((LongWords)value & 0x7FFFFFFFFFFFFFFFull); }

template <Width WIDTH>
inline HalfWords encode(Doubles total) {
  if constexpr (WIDTH != NARROW) {
    const Doubles pushed = total * PUSH_AWAY_SUM;
    const Doubles kept = size_of(pushed) < SMALLEST ? pushed * 0.0 : pushed;
    return (HalfWords)(__builtin_convertvector(kept, HalfFloats) + 0.0f);
  }
  const HalfWords bits = (HalfWords)__builtin_convertvector(total, HalfFloats);
  const HalfFloats size = (HalfFloats)(bits & 0x7FFFFFFFu);
  return size < SMALLEST_ROUNDING_UP ? bits & 0u : (bits + 0x8000u) & 0xFFFF0000u;
}

// Rule N for one term of the given power of two.
template <Width WIDTH>
inline HalfWords accumulate(Doubles term, Doubles power, HalfWords dst, LongWords& hits) {
  constexpr double coarse = WIDTH != NARROW ? 1.0 : COARSE;
  constexpr double push = WIDTH != NARROW ? PUSH_UP : (0.5 + PUSH_UP) / COARSE;
  const Doubles magic = larger(power, power_of(dst)) * (MAGIC_UNITS / GRID * coarse);
  Doubles total = decode(dst) * PUSH_AWAY + magic;
  total += magic * (push / MAGIC_UNITS) + term;
  total -= magic;
  return encode<WIDTH>(with_erratum<WIDTH>(total, magic, hits));
}

template <Width WIDTH>
inline HalfWords multiply(HalfWords a, HalfWords b, HalfWords dst, int phases, LongWords& hits) {
  const Doubles a_high = decode(a & A_HIGH), b_high = decode(b & B_HIGH);
  const Doubles a_low = decode(a & A_USED) - a_high, b_low = decode(b & B_USED) - b_high;
  const Doubles power = power_of(a) * power_of(b);
  for (int phase = 0; phase < phases; ++phase) {
    const Doubles own = power * (double)SCALES[phase];
    const Doubles product = (phase & 1 ? a_low : a_high) * (phase & 2 ? b_low : b_high);
    dst = accumulate<WIDTH>(own < SMALLEST ? product * 0.0 : product, own < SMALLEST ? own * 0.0 : own, dst, hits);
  }
  return dst;
}

template <Width WIDTH>
inline HalfWords add(HalfWords a, HalfWords b, HalfWords dst, bool onto, LongWords& hits) {
  const Doubles power = larger(power_of(a), power_of(b));
  const Doubles magic = power * OPERAND_MAGIC;
  // The smaller operand is rounded half away to the larger one's 11-bit grid; the larger lies on it.
  Doubles total = decode(a & TF32) * PUSH_AWAY_OPERAND + magic;
  total += decode(b & TF32) * PUSH_AWAY_OPERAND;
  total -= magic;
  return onto ? accumulate<WIDTH>(total, power, dst, hits) : encode<WIDTH>(total);
}

template <Width WIDTH>
int run(const uint32_t* a, const uint32_t* b, uint32_t* dst, int64_t count, int kind, int phases, bool onto) {
  LongWords hits{};
  const uint32_t flip = kind == 1 ? SIGN : 0u;
  for (int64_t at = 0; at < count; at += HALF) {
    const HalfWords left = load<HalfWords>(a + at), right = load<HalfWords>(b + at) ^ flip, old = load<HalfWords>(dst + at);
    const HalfWords result = kind == 2 ? multiply<WIDTH>(left, right, old, phases, hits) : add<WIDTH>(left, right, old, onto, hits);
    std::memcpy(dst + at, &result, sizeof result);
  }
  return any(hits);
}

}  // namespace

// dst = a op b, or onto it. Kinds: 0 add, 1 sub, 2 mul (always onto dst). The count is a multiple of the lanes.
// Whether the erratum struck.
extern "C" int32_t tw_elementwise(const uint32_t* a, const uint32_t* b, uint32_t* dst, int64_t count, int32_t kind,
                                  int32_t phases, int32_t onto, int32_t width) {
  const auto chosen = width == WIDE_ERRATUM ? run<WIDE_ERRATUM> : width == WIDE ? run<WIDE> : run<NARROW>;
  return chosen(a, b, dst, count, kind, phases, onto != 0);
}
