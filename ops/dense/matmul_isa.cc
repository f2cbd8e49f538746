#include "ops/dense/matmul_loops.h"
#include "ops/kernels/vector_math.h"

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
      const auto value = [&]<int kLanes>(int64_t i) {
        return Activate<kKind, kLanes>(Load<kLanes>(from + i) * p.scale + Load<kLanes>(bias + i),
                                       p.activation.alpha, p.activation.beta);
      };
      if (p.out_column == 1) {
        ForEachVector(p.columns, [&]<int kLanes>(int64_t i) {
          Store<kLanes>(to + i, value.template operator()<kLanes>(i));
        });
      } else {
        for (int64_t i = 0; i < p.columns; ++i) to[i * p.out_column] = value.template operator()<1>(i);
      }
    }
  });
}

float AddScores(const ScoreBlock& block, SoftmaxState& state) {
  constexpr float kNone = -__builtin_inff();
  float* scores = block.scores;
  float top = state.largest;
  if (block.mask != nullptr) {
    const float common = block.mask[0];
    ForEachVector(block.count, [&]<int kLanes>(int64_t i) {
      const Vector<kLanes> mask = block.mask_step == 0 ? Splat<kLanes>(common) : Load<kLanes>(block.mask + i);
      Store<kLanes>(scores + i, Load<kLanes>(scores + i) + mask);
    });
  }
  alignas(64) float lanes[kWidth];
  Wide largest = Splat<kWidth>(top);
  int64_t i = 0;
  for (; i + kWidth <= block.count; i += kWidth) largest = Max<Wide>(largest, Load<kWidth>(scores + i));
  Store<kWidth>(lanes, largest);
  for (int lane = 0; lane < kWidth; ++lane) top = Max(top, lanes[lane]);
  for (; i < block.count; ++i) top = Max(top, scores[i]);

  const float base = top == kNone ? 0.0f : top;
  Wide sums{};
  for (i = 0; i + kWidth <= block.count; i += kWidth) {
    const Wide power = Exp<kWidth>(Load<kWidth>(scores + i) - base);
    sums += power;
    Store<kWidth>(scores + i, power);
  }
  Store<kWidth>(lanes, sums);
  float sum = 0;
  for (int lane = 0; lane < kWidth; ++lane) sum += lanes[lane];
  for (; i < block.count; ++i) {
    scores[i] = Exp<1>(scores[i] - base);
    sum += scores[i];
  }
  const float factor = state.largest == kNone ? 0.0f : Exp<1>(state.largest - top);
  state.sum = state.sum * factor + sum;
  state.largest = top;
  return factor;
}

void ScaleRow(float* values, int64_t count, float factor) {
  ForEachVector(count,
                [&]<int kLanes>(int64_t i) { Store<kLanes>(values + i, Load<kLanes>(values + i) * factor); });
}

}  // namespace tilesmith::TILESMITH_ISA
