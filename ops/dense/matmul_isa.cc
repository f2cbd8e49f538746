#include "layouts/base/simd.h"
#include "ops/dense/matmul_loops.h"
#include "ops/kernels/vectors.h"

HWY_BEFORE_NAMESPACE();
// Offsets inside a tile are small. NOLINTBEGIN(bugprone-implicit-widening-of-multiplication-result)
namespace tilesmith::TILESMITH_ISA {
namespace {

using Wide = Vector<kWidth>;

// The sums that stay in registers: two vectors of columns by as many rows as leave room for the vectors of
// the right side and one element of the left.
constexpr int kTileVectors = 2;
constexpr int kTileColumns = kTileVectors * kWidth;
constexpr int kTileRows = kWidth == 16 ? 12 : kWidth == 8 ? 6 : 4;

template <int kRows>
inline void Tile(const PanelProduct& p, int64_t row, int64_t column) {
  float* sums = p.sums + row * kPanelColumns + column;
  Wide total[kRows][kTileVectors];
#pragma GCC unroll 12
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kTileVectors; ++v) total[r][v] = Load<kWidth>(sums + r * kPanelColumns + v * kWidth);
  }
  const float* a = p.a + row * p.a_row;
  const float* b = p.b + column;
  for (int64_t k = 0; k < p.terms; ++k) {
    Wide right[kTileVectors];
    for (int v = 0; v < kTileVectors; ++v) right[v] = Load<kWidth>(b + v * kWidth);
#pragma GCC unroll 12
    for (int r = 0; r < kRows; ++r) {
      const Wide left = Splat<kWidth>(a[r * p.a_row]);
      for (int v = 0; v < kTileVectors; ++v) total[r][v] += left * right[v];
    }
    a += p.a_term;
    b += p.b_term;
  }
#pragma GCC unroll 12
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kTileVectors; ++v) Store<kWidth>(sums + r * kPanelColumns + v * kWidth, total[r][v]);
  }
}

// The tile of the last `rows` < kRows.
template <int kRows>
inline void LastTile(const PanelProduct& p, int64_t row, int64_t column, int64_t rows) {
  if constexpr (kRows > 1) {
    if (rows < kRows - 1) return LastTile<kRows - 1>(p, row, column, rows);
    Tile<kRows - 1>(p, row, column);
  }
}

}  // namespace

void AddPanelProduct(const PanelProduct& p) {
  for (int64_t column = 0; column < kPanelColumns; column += kTileColumns) {
    int64_t row = 0;
    for (; row + kTileRows <= p.rows; row += kTileRows) Tile<kTileRows>(p, row, column);
    if (row < p.rows) LastTile<kTileRows>(p, row, column, p.rows - row);
  }
}

void StorePanel(const PanelResult& p) {
  static constexpr float kNoBias[kPanelColumns] = {};
  const float* bias = p.bias != nullptr ? p.bias : kNoBias;
  WithActivation(p.activation.kind, [&]<ActivationKind kKind>() {
    for (int64_t row = 0; row < p.rows; ++row) {
      const float* from = p.sums + row * kPanelColumns;
      float* to = p.out + row * p.out_row;
      const auto value = [&](auto d, int64_t i) {
        const auto x = hn::MulAdd(hn::LoadU(d, from + i), hn::Set(d, p.scale), hn::LoadU(d, bias + i));
        return Activate<kKind>(d, x, p.activation.alpha, p.activation.beta);
      };
      if (p.out_column == 1) {
        ForEachVector(p.columns, [&](auto d, int64_t i) { hn::StoreU(value(d, i), d, to + i); });
      } else {
        const hn::CappedTag<float, 1> d;
        for (int64_t i = 0; i < p.columns; ++i) to[i * p.out_column] = hn::GetLane(value(d, i));
      }
    }
  });
}

float AddScores(const ScoreBlock& block, SoftmaxState& state) {
  constexpr float kNone = -__builtin_inff();
  const FloatTag d;
  const hn::CappedTag<float, 1> one;
  float* scores = block.scores;
  float top = state.largest;
  if (block.mask != nullptr) {
    ForEachVector(block.count, [&](auto tag, int64_t i) {
      const auto mask = block.mask_step == 0 ? hn::Set(tag, block.mask[0]) : hn::LoadU(tag, block.mask + i);
      hn::StoreU(hn::Add(hn::LoadU(tag, scores + i), mask), tag, scores + i);
    });
  }
  HWY_ALIGN float lanes[kFloatLanes];
  FloatVector largest = hn::Set(d, top);
  int64_t i = 0;
  for (; i + kFloatLanes <= block.count; i += kFloatLanes)
    largest = Larger(largest, hn::LoadU(d, scores + i));
  hn::Store(largest, d, lanes);
  for (const float lane : lanes) top = top < lane ? lane : top;
  for (; i < block.count; ++i) top = top < scores[i] ? scores[i] : top;

  const float base = top == kNone ? 0.0f : top;
  FloatVector sums = hn::Zero(d);
  for (i = 0; i + kFloatLanes <= block.count; i += kFloatLanes) {
    const FloatVector power = FastExp(d, hn::Sub(hn::LoadU(d, scores + i), hn::Set(d, base)));
    sums = hn::Add(sums, power);
    hn::StoreU(power, d, scores + i);
  }
  hn::Store(sums, d, lanes);
  const auto power_of = [&](float x) { return hn::GetLane(FastExp(one, hn::Set(one, x))); };
  float sum = 0;
  for (const float lane : lanes) sum += lane;
  for (; i < block.count; ++i) {
    scores[i] = power_of(scores[i] - base);
    sum += scores[i];
  }
  const float factor = state.largest == kNone ? 0.0f : power_of(state.largest - top);
  state.sum = state.sum * factor + sum;
  state.largest = top;
  return factor;
}

void ScaleRow(float* values, int64_t count, float factor) {
  ForEachVector(count, [&](auto d, int64_t i) {
    hn::StoreU(hn::Mul(hn::LoadU(d, values + i), hn::Set(d, factor)), d, values + i);
  });
}

}  // namespace tilesmith::TILESMITH_ISA
HWY_AFTER_NAMESPACE();
// NOLINTEND(bugprone-implicit-widening-of-multiplication-result)
