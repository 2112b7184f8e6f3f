// Vector types and the tie-breaking constants of accumulate.py.
#pragma once
#include <cstdint>
#include <cstring>

namespace tw {

// One register of floats; sums are added to DST in two registers of doubles.
#if defined(__AVX512F__)
constexpr int LANES = 16;
#elif defined(__AVX__)
constexpr int LANES = 8;
#else
constexpr int LANES = 4;
#endif
constexpr int HALF = LANES / 2;

typedef float Floats __attribute__((vector_size(4 * LANES)));
typedef float HalfFloats __attribute__((vector_size(4 * HALF)));
typedef uint32_t HalfWords __attribute__((vector_size(4 * HALF)));
typedef double Doubles __attribute__((vector_size(8 * HALF)));
typedef uint64_t LongWords __attribute__((vector_size(8 * HALF)));

constexpr int MOST_PHASES = 4;
constexpr float SCALES[MOST_PHASES] = {1.0f, 1.0f / 32, 1.0f / 128, 1.0f / 4096};  // weight of a fidelity phase

constexpr uint32_t EXPONENT = 0x7F800000u;
constexpr uint32_t SIGN = 0x80000000u;
constexpr uint32_t TF32 = 0xFFFFE000u;
constexpr uint32_t A_HIGH = 0xFFF80000u, A_USED = 0xFFFFC000u;
constexpr uint32_t B_HIGH = 0xFFFE0000u, B_USED = 0xFFFFE000u;

constexpr double MAGIC_UNITS = 1.5 * 4503599627370496.0;  // 1.5 * 2^52 units of the grid of a sum
constexpr double GRID = 8388608.0;                        // the grid lies 2^23 below the largest exponent,
constexpr double COARSE = 8192.0;                         // in 16-bit DST 2^10
constexpr double PUSH_UP = 1.0 / (1 << 20);
constexpr double PUSH_AWAY = 1.0 + 1.0 / (1 << 26);
constexpr double PUSH_AWAY_SUM = 1.0 + 1.0 / 2147483648.0;
constexpr double ERRATUM = 134217728.0;  // -1 unit comes out as -2^27

// How DST holds sums; the last on chips with the erratum of rule N7.
enum Width { NARROW, WIDE, WIDE_ERRATUM };

// Rule N7 on a sum, given the magic number of its grid; lanes that are hit are noted.
template <Width WIDTH>
inline Doubles with_erratum(Doubles total, Doubles magic, LongWords& hits) {
  if constexpr (WIDTH == WIDE_ERRATUM) {
    const auto hit = total == magic * (-1.0 / MAGIC_UNITS);
    hits |= (LongWords)hit;
    return hit ? total * ERRATUM : total;
  }
  return total;
}

inline int any(LongWords hits) {
  uint64_t found = 0;
  for (int lane = 0; lane < HALF; ++lane) found |= hits[lane];
  return found != 0;
}

template <typename Vector, typename Element>
inline Vector load(const Element* source) {
  Vector value;
  std::memcpy(&value, source, sizeof value);
  return value;
}

template <typename Vector>
inline Vector larger(Vector a, Vector b) {
  return a > b ? a : b;
}

}  // namespace tw
