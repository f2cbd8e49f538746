#include "layouts/base/simd.h"
#include "ops/dense/matmul_loops.h"
#include "ops/kernels/vectors.h"

HWY_BEFORE_NAMESPACE();
// Offsets inside a tile are small. NOLINTBEGIN(bugprone-implicit-widening-of-multiplication-result)
namespace tilesmith::TILESMITH_ISA {
namespace {

using Wide = Vector<kWidth>;

// What stays in registers: kRows rows of kVectors vectors.
template <int kVectors, int kRows>
[[gnu::always_inline]] inline void Tile(const PanelProduct& p, int64_t row, int64_t column, const float* b,
                                        int64_t b_term) {
  float* sums = p.sums + row * p.sums_row + column;
  Wide total[kRows][kVectors] = {};
  if (!p.fresh) {
#pragma GCC unroll 14
    for (int r = 0; r < kRows; ++r) {
      for (int v = 0; v < kVectors; ++v) total[r][v] = Load<kWidth>(sums + r * p.sums_row + v * kWidth);
    }
  }
  const float* a = p.a + row * p.a_row;
  for (int64_t k = 0; k < p.terms; ++k) {
    Wide right[kVectors];
    for (int v = 0; v < kVectors; ++v) right[v] = Load<kWidth>(b + v * kWidth);
#pragma GCC unroll 14
    for (int r = 0; r < kRows; ++r) {
      const Wide left = Splat<kWidth>(a[r * p.a_row]);
      for (int v = 0; v < kVectors; ++v) total[r][v] = MultiplyAdd(left, right[v], total[r][v]);
    }
    a += p.a_term;
    b += b_term;
  }
#pragma GCC unroll 14
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) Store<kWidth>(sums + r * p.sums_row + v * kWidth, total[r][v]);
  }
}

// All whole tiles from `row` on.
template <int kVectors, int kRows>
void TileRows(const PanelProduct& p, int64_t row, int64_t column) {
  const float* b = p.b + column * (p.tiled ? p.terms : 1);
  const int64_t b_term = p.tiled ? kVectors * kWidth : p.b_term;
  for (; row + kRows <= p.rows; row += kRows) Tile<kVectors, kRows>(p, row, column, b, b_term);
}

using TileFunction = void (*)(const PanelProduct&, int64_t, int64_t);

template <int kVectors, int kRows>
constexpr void SetTiles(TileFunction* of_rows) {
  of_rows[kRows] = TileRows<kVectors, kRows>;
  if constexpr (kRows > 1) SetTiles<kVectors, kRows - 1>(of_rows);
}

// [v][r]: the tile of v vectors and r rows.
struct Tiles {
  TileFunction of[kMaxTileVectors + 1][MostTileRows(kWidth, 1) + 1] = {};
  constexpr Tiles() {
    SetTiles<1, MostTileRows(kWidth, 1)>(of[1]);
    SetTiles<2, MostTileRows(kWidth, 2)>(of[2]);
    SetTiles<3, MostTileRows(kWidth, 3)>(of[3]);
    SetTiles<4, MostTileRows(kWidth, 4)>(of[4]);
  }
};
constexpr Tiles kTiles;

}  // namespace

void AddPanelProduct(const PanelProduct& p) {
  const int64_t tile_rows = p.tile_rows > 0 ? p.tile_rows : DefaultTileRows(kWidth);
  for (int64_t column = 0; column < p.columns; column += p.tile_vectors * kWidth) {
    const int64_t left = (p.columns - column + kWidth - 1) / kWidth;
    const TileFunction* const tile = kTiles.of[left < p.tile_vectors ? left : p.tile_vectors];
    tile[tile_rows](p, 0, column);
    const int64_t rest = p.rows % tile_rows;
    if (rest > 0) tile[rest](p, p.rows - rest, column);
  }
}

void StorePanel(const PanelResult& p) {
  static constexpr float kNoBias[kMaxPanelColumns] = {};
  const float* bias = p.bias != nullptr ? p.bias : kNoBias;
  WithActivation(p.activation.kind, [&]<ActivationKind kKind>() {
    for (int64_t row = 0; row < p.rows; ++row) {
      const float* from = p.sums + row * p.sums_row;
      float* to = p.out + row * p.out_row;
      const auto value = [&](auto d, int64_t i) {
        const auto x = FusedMulAdd(hn::LoadU(d, from + i), hn::Set(d, p.scale), hn::LoadU(d, bias + i));
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
  const auto larger = [](auto a, auto b) { return Larger(a, b); };
  Sixteen largest = SetSixteen(top);
  JoinAll(largest, scores, block.count, kNone, larger);
  top = JoinedLanes(largest, larger);

  const float base = top == kNone ? 0.0f : top;
  const FloatVector bases = hn::Set(d, base);
  Sixteen sums = SetSixteen(0);
  int64_t i = 0;
  for (; i + 16 <= block.count; i += 16) {
    for (int p = 0; p < kSixteenParts; ++p) {
      float* const at = scores + i + p * kFloatLanes;
      const FloatVector power = FastExp(d, hn::Sub(hn::LoadU(d, at), bases));
      sums.part[p] = hn::Add(sums.part[p], power);
      hn::StoreU(power, d, at);
    }
  }
  // Lanes behind the end add e^-87 to a sum of at least 1.
  for (int p = 0; i < block.count; ++p, i += kFloatLanes) {
    const int64_t left = block.count - i < kFloatLanes ? block.count - i : kFloatLanes;
    const FloatVector power = FastExp(d, hn::Sub(LoadFirst(d, scores + i, left, kNone), bases));
    sums.part[p] = hn::Add(sums.part[p], power);
    StoreFirst(d, power, scores + i, left);
  }
  const float sum = SumOfSixteen(sums);
  const float factor =
      state.largest == kNone ? 0.0f : hn::GetLane(FastExp(one, hn::Set(one, state.largest - top)));
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
