// The exact matrix product of matmul.py and accumulate.py, which say why every step equals the integer datapath.
// Exponents must be those that matmul.py has checked: nothing here over- or underflows.
#include <vector>

#include "lanes.h"

namespace {

using namespace tw;

constexpr int TILE = 32;
constexpr int GROUP = 8;
constexpr int GROUPS = TILE / GROUP;
constexpr int ROWS = 4;  // rows of the output at once, and a divisor of the rows of a tile
constexpr float GROUP_MAGIC = 1.5f * 8192.0f;  // 1.5 * 2^23 units of the 12-bit product grid
constexpr float PUSH_AWAY_PRODUCT = 1.0f + 1.0f / 8192.0f;

inline float as_float(uint32_t bits) { return load<float>(&bits); }

// What an operand contributes to the phases, and the power of two of its exponent; denormals are zero.
struct Parts {
  std::vector<float> high, low, power;

  Parts(const uint32_t* bits, int64_t count, uint32_t high_mask, uint32_t used_mask, float push)
      : high(count), low(count), power(count) {
    for (int64_t i = 0; i < count; ++i) {
      const uint32_t word = (bits[i] & EXPONENT) ? bits[i] : 0u;
      const float top = as_float(word & high_mask);
      high[i] = top * push;
      low[i] = (as_float(word & used_mask) - top) * push;
      power[i] = as_float(word & EXPONENT);
    }
  }
};

// Sums of the four groups of one K tile in every phase, and each group's grid, for some rows of the output.
template <int COUNT>
struct TileSums {
  Floats sums[ROWS][GROUPS][COUNT];
  Floats grids[ROWS][GROUPS];

  void compute(const Parts& left, int64_t left_at, int64_t inner, const Parts& right, int64_t right_at, int64_t columns) {
    for (int group = 0; group < GROUPS; ++group) {
      const int64_t first = right_at + group * GROUP * columns;
      Floats powers[ROWS], totals[ROWS][COUNT];
      for (int row = 0; row < ROWS; ++row) powers[row] = Floats{};
      for (int k = 0; k < GROUP; ++k) {
        const Floats a_power = load<Floats>(&right.power[first + k * columns]);
        for (int row = 0; row < ROWS; ++row)
          powers[row] = larger(powers[row], left.power[left_at + row * inner + group * GROUP + k] * a_power);
      }
      for (int row = 0; row < ROWS; ++row) {
        grids[row][group] = powers[row] * GROUP_MAGIC;
        for (int phase = 0; phase < COUNT; ++phase) totals[row][phase] = grids[row][group] * SCALES[phase];
      }
      for (int k = 0; k < GROUP; ++k) {
        const Floats a[2] = {load<Floats>(&right.high[first + k * columns]), load<Floats>(&right.low[first + k * columns])};
        for (int row = 0; row < ROWS; ++row) {
          const int64_t at = left_at + row * inner + group * GROUP + k;
          for (int phase = 0; phase < COUNT; ++phase)
            totals[row][phase] += (phase & 2 ? left.low[at] : left.high[at]) * a[phase & 1];
        }
      }
      for (int row = 0; row < ROWS; ++row)
        for (int phase = 0; phase < COUNT; ++phase)
          sums[row][group][phase] = totals[row][phase] - grids[row][group] * SCALES[phase];
    }
  }
};

// One 16-deep step in one phase: two group sums and DST on one grid, rounded once.
template <Width WIDTH>
HalfFloats add_step(HalfFloats state, HalfFloats first, HalfFloats second, HalfFloats grid, double scale, LongWords& hits) {
  constexpr double coarse = WIDTH != NARROW ? 1.0 : COARSE;
  constexpr double push = WIDTH != NARROW ? PUSH_UP : (0.5 + PUSH_UP) / COARSE;
  const HalfFloats state_power = (HalfFloats)((HalfWords)state & EXPONENT);
  Doubles magic = __builtin_convertvector(grid, Doubles) * (scale * 65536.0 * coarse);
  const Doubles own = __builtin_convertvector(state_power, Doubles) * (MAGIC_UNITS / GRID * coarse);
  magic = magic > own ? magic : own;
  const Doubles pushed = magic * (push / MAGIC_UNITS);
  Doubles total = __builtin_convertvector(state, Doubles) * PUSH_AWAY + magic;
  total += pushed + __builtin_convertvector(first, Doubles);
  total += pushed + __builtin_convertvector(second, Doubles);
  total -= magic;
  if constexpr (WIDTH != NARROW)
    return __builtin_convertvector(with_erratum<WIDTH>(total, magic, hits) * PUSH_AWAY_SUM, HalfFloats);
  const HalfWords bits = (HalfWords)__builtin_convertvector(total, HalfFloats);
  return (HalfFloats)((bits + 0x8000u) & 0xFFFF0000u);
}

// All phases of one K tile onto DST. Every step waits for the one before, so the two halves and several rows go side by side.
template <Width WIDTH, int COUNT>
void add_tile(HalfFloats (*states)[2], const TileSums<COUNT>& tile, LongWords& hits) {
  const auto part = [](const Floats& whole, int half) {
    return load<HalfFloats>(reinterpret_cast<const float*>(&whole) + half * HALF);
  };
  Floats grids[ROWS][2];
  for (int row = 0; row < ROWS; ++row)
    for (int step = 0; step < 2; ++step) grids[row][step] = larger(tile.grids[row][2 * step], tile.grids[row][2 * step + 1]);
  for (int phase = 0; phase < COUNT; ++phase)
    for (int step = 0; step < 2; ++step)
      for (int row = 0; row < ROWS; ++row)
        for (int half = 0; half < 2; ++half)
          states[row][half] = add_step<WIDTH>(states[row][half], part(tile.sums[row][2 * step][phase], half),
                                              part(tile.sums[row][2 * step + 1][phase], half), part(grids[row][step], half),
                                              SCALES[phase], hits);
}

template <Width WIDTH, int COUNT>
int multiply(const uint32_t* left, const uint32_t* right, uint32_t* out, int64_t rows, int64_t inner, int64_t columns) {
  const Parts b(left, rows * inner, B_HIGH, B_USED, 1.0f);
  const Parts a(right, inner * columns, A_HIGH, A_USED, PUSH_AWAY_PRODUCT);
  LongWords hits{};
  for (int64_t column = 0; column < columns; column += LANES) {
    for (int64_t row = 0; row < rows; row += ROWS) {
      uint32_t* target = out + row * columns + column;
      HalfFloats states[ROWS][2];
      for (int place = 0; place < 2 * ROWS; ++place) {
        const HalfWords bits = load<HalfWords>(target + (place / 2) * columns + (place % 2) * HALF);
        states[place / 2][place % 2] = (HalfFloats)((bits & EXPONENT) != 0 ? bits : bits & 0u);
      }
      TileSums<COUNT> tile;
      for (int64_t k = 0; k < inner; k += TILE) {
        tile.compute(b, row * inner + k, inner, a, k * columns + column, columns);
        add_tile<WIDTH, COUNT>(states, tile, hits);
      }
      for (int place = 0; place < ROWS; ++place) std::memcpy(target + place * columns, states[place], sizeof states[place]);
    }
  }
  return any(hits);
}

using Multiply = int (*)(const uint32_t*, const uint32_t*, uint32_t*, int64_t, int64_t, int64_t);
constexpr Multiply MULTIPLY[3][MOST_PHASES] = {
    {multiply<NARROW, 1>, multiply<NARROW, 2>, multiply<NARROW, 3>, multiply<NARROW, 4>},
    {multiply<WIDE, 1>, multiply<WIDE, 2>, multiply<WIDE, 3>, multiply<WIDE, 4>},
    {multiply<WIDE_ERRATUM, 1>, multiply<WIDE_ERRATUM, 2>, multiply<WIDE_ERRATUM, 3>, multiply<WIDE_ERRATUM, 4>},
};

}  // namespace

// out += left @ right for each matrix of the batch; out holds DST patterns. Whether the erratum struck.
extern "C" int32_t tw_products(const uint32_t* left, const uint32_t* right, uint32_t* out, int64_t batch, int64_t rows,
                               int64_t inner, int64_t columns, int32_t width, int32_t phases) {
  const Multiply chosen = MULTIPLY[width][phases - 1];
  int32_t hit = 0;
  for (int64_t number = 0; number < batch; ++number)
    hit |= chosen(left + number * rows * inner, right + number * inner * columns, out + number * rows * columns, rows, inner, columns);
  return hit;
}
