// Inner loops of the portable template, compiled once per instruction set.
//
// Each computes a small tile of outputs into `acc`, starting from the bias, or from what `acc` holds where
// `started`, which is the bias and the residual; products are added in the order of channels, kernel rows and
// kernel columns, those whose taps lie inside the input. The Finish functions then apply the activation and
// store. Plain values and pointers only: see layouts/base/isa_dispatch.h for why. Counts are positive, but
// for taps, which may be 0.
#pragma once

#include <cstdint>

#include "layouts/base/isa_dispatch.h"

namespace tilesmith {

constexpr int kPortableLanes = 16;     // channels (or positions) in one accumulator row
constexpr int kPortableMaxTile = 14;   // positions in one tile over channels
constexpr int kPortableMaxPlanes = 4;  // output channels in one tile over width

// acc[p][v] = bias[v] + sum over channels c and taps (i, j) of
//     input[i * tap_row_stride + j * tap_col_stride + p * position_stride + channel_offsets[c]]
//   * weights[c * weight_channel_stride + i * weight_row_stride + j * 16 + v]
// Depthwise: no channel loop; lane v reads input[... + v], weights are [i][j][16]; lanes is 16, 8 or 1.
struct PortableTile {
  const float* input = nullptr;  // at the first tap in range of position 0
  const int64_t* channel_offsets = nullptr;
  int64_t channels = 1;
  int64_t taps_h = 0, taps_w = 0;
  int64_t tap_row_stride = 0, tap_col_stride = 0, position_stride = 0;
  const float* weights = nullptr;
  int64_t weight_channel_stride = 0, weight_row_stride = 0;
  const float* bias = nullptr;  // `lanes` floats
  float* acc = nullptr;         // [positions][16]
  bool started = false;
  int positions = 1;  // <= kPortableMaxTile
  int lanes = kPortableLanes;
};

// acc[r][p] = bias[r] + sum over c, i, j of
//     rows[c * channel_stride + i * row_stride + tap_offsets[j] + p] * weights[((c * kh + i) * kw + j) *
//     planes + r]
// for `vectors` * 16 positions p.
struct PortablePlaneTile {
  const float* rows = nullptr;
  int64_t channels = 1, kh = 1, kw = 1;
  int64_t channel_stride = 0, row_stride = 0;
  const int64_t* tap_offsets = nullptr;  // kw of them
  const float* weights = nullptr;
  const float* bias = nullptr;  // `planes` floats
  float* acc = nullptr;         // [planes][vectors * 16]
  bool started = false;
  int planes = 1;   // <= kPortableMaxPlanes
  int vectors = 1;  // 1 or 2
};

// The piecewise activations as min(max(x, low), high) and friends; see ops/base/activation.h for the
// formulas.
enum class PortableActivation { kNone, kRelu, kClip, kLeakyRelu, kHardSigmoid, kHardSwish };

// out[channel_offsets[v] + p * position_stride] = act(acc).
struct PortableFinish {
  const float* acc = nullptr;
  int64_t acc_stride = 0;  // from one row of acc to the next
  int64_t positions = 0, channels = 0;
  const int64_t* channel_offsets = nullptr;
  int64_t position_stride = 0;
  float* out = nullptr;
  PortableActivation activation = PortableActivation::kNone;
  float alpha = 0, beta = 0;
};

TILESMITH_DECLARE_ISA(void RunPortableTile(const PortableTile& tile))
TILESMITH_DECLARE_ISA(void RunPortableDepthwiseTile(const PortableTile& tile))
TILESMITH_DECLARE_ISA(void RunPortablePlaneTile(const PortablePlaneTile& tile))
// acc is [positions][channels]; `contiguous` says that channel_offsets are consecutive.
TILESMITH_DECLARE_ISA(void FinishPortableTile(const PortableFinish& finish, bool contiguous))
// acc is [channels][positions].
TILESMITH_DECLARE_ISA(void FinishPortablePlanes(const PortableFinish& finish))

}  // namespace tilesmith
