#include "layouts/base/simd.h"
#include "ops/dense/dense_loops.h"
#include "ops/kernels/vectors.h"

HWY_BEFORE_NAMESPACE();
namespace tilesmith::TILESMITH_ISA {
namespace {

constexpr int kVectors = kPanelColumns / kWidth;  // 2, 4 or 8 registers for one row of sums
// Rows whose sums stay in registers together, and, where one row alone would leave the multipliers waiting
// for the sum before, how many partial sums it keeps.
constexpr int kTileRows = kWidth == 16 ? 8 : kWidth == 8 ? 2 : 1;
constexpr int kPartialSums = kWidth == 4 ? 1 : 2;
// Inputs per pass over a panel: 64 KB of weights, which then serve all rows from the cache.
constexpr int64_t kPassInputs = 512;

using Wide = Vector<kWidth>;

// sums[r][c] += sum over k in [first, last) of rows[r][k] * panel[k][c]
template <int kRows>
inline void Tile(const GemmPanelArgs& args, int64_t row, int64_t first, int64_t last, float* sums) {
  Wide total[kRows][kVectors];
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) total[r][v] = Load<kWidth>(sums + r * kPanelColumns + v * kWidth);
  }
  for (int64_t k = first; k < last; ++k) {
    const float* weights = args.panel + k * kPanelColumns;
    for (int r = 0; r < kRows; ++r) {
      const Wide in = Splat<kWidth>(args.rows[row + r][k]);
      for (int v = 0; v < kVectors; ++v) total[r][v] += in * Load<kWidth>(weights + v * kWidth);
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) Store<kWidth>(sums + r * kPanelColumns + v * kWidth, total[r][v]);
  }
}

inline void OneRow(const GemmPanelArgs& args, int64_t row, int64_t first, int64_t last, float* sums) {
  const float* in = args.rows[row];
  Wide total[kPartialSums][kVectors];
  for (int p = 0; p < kPartialSums; ++p) {
    for (int v = 0; v < kVectors; ++v) total[p][v] = Wide{};
  }
  int64_t k = first;
  for (; k + kPartialSums <= last; k += kPartialSums) {
    for (int p = 0; p < kPartialSums; ++p) {
      const float* weights = args.panel + (k + p) * kPanelColumns;
      const Wide value = Splat<kWidth>(in[k + p]);
      for (int v = 0; v < kVectors; ++v) total[p][v] += value * Load<kWidth>(weights + v * kWidth);
    }
  }
  for (; k < last; ++k) {
    const Wide value = Splat<kWidth>(in[k]);
    for (int v = 0; v < kVectors; ++v) {
      total[0][v] += value * Load<kWidth>(args.panel + k * kPanelColumns + v * kWidth);
    }
  }
  for (int v = 0; v < kVectors; ++v) {
    Wide sum = Load<kWidth>(sums + v * kWidth);
    for (int p = 0; p < kPartialSums; ++p) sum += total[p][v];
    Store<kWidth>(sums + v * kWidth, sum);
  }
}

}  // namespace

void GemmPanel(const GemmPanelArgs& args, Activation activation) {
  alignas(64) float sums[kPanelRows * kPanelColumns];
  for (int64_t i = 0; i < args.row_count * kPanelColumns; ++i) sums[i] = args.bias[i % kPanelColumns];
  for (int64_t first = 0; first < args.k; first += kPassInputs) {
    const int64_t last = first + kPassInputs < args.k ? first + kPassInputs : args.k;
    int64_t row = 0;
    if constexpr (kTileRows > 1) {
      for (; row + kTileRows <= args.row_count; row += kTileRows) {
        Tile<kTileRows>(args, row, first, last, sums + row * kPanelColumns);
      }
    }
    for (; row < args.row_count; ++row) OneRow(args, row, first, last, sums + row * kPanelColumns);
  }
  WithActivation(activation.kind, [&]<ActivationKind kKind>() {
    for (int64_t row = 0; row < args.row_count; ++row) {
      const float* from = sums + row * kPanelColumns;
      float* to = args.outputs[row];
      ForEachVector(args.columns, [&](auto d, int64_t i) {
        hn::StoreU(Activate<kKind>(d, hn::LoadU(d, from + i), activation.alpha, activation.beta), d, to + i);
      });
    }
  });
}

}  // namespace tilesmith::TILESMITH_ISA
HWY_AFTER_NAMESPACE();
