#include "layouts/base/simd.h"
#include "templates/portable/tiles.h"

// Offsets inside a tile are small. NOLINTBEGIN(bugprone-implicit-widening-of-multiplication-result)
namespace tilesmith::TILESMITH_ISA {
namespace {

constexpr int VectorFloatsFor(int lanes) { return lanes < kWidth ? lanes : kWidth; }

// What the sums of position `p` start from.
inline const float* StartOf(const PortableTile& t, int p) {
  return t.started ? t.acc + p * kPortableLanes : t.bias;
}

template <int kPositions>
void ChannelTile(const PortableTile& t) {
  constexpr int kFloats = kWidth;
  constexpr int kVectors = kPortableLanes / kFloats;
  Vector<kFloats> acc[kPositions][kVectors];
#pragma GCC unroll 16
  for (int p = 0; p < kPositions; ++p) {
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) acc[p][v] = Load<kFloats>(StartOf(t, p) + v * kFloats);
  }
  const int64_t step = t.position_stride;
  for (int64_t c = 0; c < t.channels; ++c) {
    for (int64_t i = 0; i < t.taps_h; ++i) {
      const float* x = t.input + t.channel_offsets[c] + i * t.tap_row_stride;
      const float* w = t.weights + c * t.weight_channel_stride + i * t.weight_row_stride;
      for (int64_t j = 0; j < t.taps_w; ++j, x += t.tap_col_stride, w += kPortableLanes) {
        Vector<kFloats> weights[kVectors];
#pragma GCC unroll 16
        for (int v = 0; v < kVectors; ++v) weights[v] = Load<kFloats>(w + v * kFloats);
#pragma GCC unroll 16
        for (int p = 0; p < kPositions; ++p) {
#pragma GCC unroll 16
          for (int v = 0; v < kVectors; ++v)
            acc[p][v] = MultiplyAdd(Splat<kFloats>(x[p * step]), weights[v], acc[p][v]);
        }
      }
    }
  }
#pragma GCC unroll 16
  for (int p = 0; p < kPositions; ++p) {
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) Store<kFloats>(t.acc + p * kPortableLanes + v * kFloats, acc[p][v]);
  }
}

template <int kLanes, int kPositions>
void DepthwiseTile(const PortableTile& t) {
  constexpr int kFloats = VectorFloatsFor(kLanes);
  constexpr int kVectors = kLanes / kFloats;
  Vector<kFloats> acc[kPositions][kVectors];
#pragma GCC unroll 16
  for (int p = 0; p < kPositions; ++p) {
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) acc[p][v] = Load<kFloats>(StartOf(t, p) + v * kFloats);
  }
  for (int64_t i = 0; i < t.taps_h; ++i) {
    for (int64_t j = 0; j < t.taps_w; ++j) {
      const float* x = t.input + i * t.tap_row_stride + j * t.tap_col_stride;
      const float* w = t.weights + i * t.weight_row_stride + j * kPortableLanes;
#pragma GCC unroll 16
      for (int v = 0; v < kVectors; ++v) {
        const Vector<kFloats> weights = Load<kFloats>(w + v * kFloats);
#pragma GCC unroll 16
        for (int p = 0; p < kPositions; ++p) {
          acc[p][v] = MultiplyAdd(Load<kFloats>(x + p * t.position_stride + v * kFloats), weights, acc[p][v]);
        }
      }
    }
  }
#pragma GCC unroll 16
  for (int p = 0; p < kPositions; ++p) {
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) Store<kFloats>(t.acc + p * kPortableLanes + v * kFloats, acc[p][v]);
  }
}

template <int kPlanes, int kBlocks>
void PlaneTile(const PortablePlaneTile& t) {
  constexpr int kFloats = kWidth;
  constexpr int kVectors = kBlocks * kPortableLanes / kFloats;
  Vector<kFloats> acc[kPlanes][kVectors];
#pragma GCC unroll 16
  for (int r = 0; r < kPlanes; ++r) {
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) {
      acc[r][v] = t.started ? Load<kFloats>(t.acc + r * kBlocks * kPortableLanes + v * kFloats)
                            : Vector<kFloats>{} + t.bias[r];
    }
  }
  const float* w = t.weights;
  for (int64_t c = 0; c < t.channels; ++c) {
    for (int64_t i = 0; i < t.kh; ++i) {
      const float* row = t.rows + c * t.channel_stride + i * t.row_stride;
      for (int64_t j = 0; j < t.kw; ++j, w += kPlanes) {
        const float* x = row + t.tap_offsets[j];
#pragma GCC unroll 16
        for (int v = 0; v < kVectors; ++v) {
          const Vector<kFloats> values = Load<kFloats>(x + v * kFloats);
#pragma GCC unroll 16
          for (int r = 0; r < kPlanes; ++r) acc[r][v] = MultiplyAdd(values, Splat<kFloats>(w[r]), acc[r][v]);
        }
      }
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < kPlanes; ++r) {
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) {
      Store<kFloats>(t.acc + r * kBlocks * kPortableLanes + v * kFloats, acc[r][v]);
    }
  }
}

using TileFunction = void (*)(const PortableTile&);
using PlaneFunction = void (*)(const PortablePlaneTile&);

template <int kLanes>
constexpr TileFunction kDepthwiseTiles[] = {
    DepthwiseTile<kLanes, 1>, DepthwiseTile<kLanes, 2>, DepthwiseTile<kLanes, 3>, DepthwiseTile<kLanes, 4>,
    DepthwiseTile<kLanes, 5>, DepthwiseTile<kLanes, 6>, DepthwiseTile<kLanes, 7>, DepthwiseTile<kLanes, 8>};
constexpr int kDepthwisePositions = 8;

inline float Activate(float x, PortableActivation kind, float alpha, float beta) {
  switch (kind) {
    case PortableActivation::kRelu:
      return x < 0 ? 0 : x;  // NaN stays, as below
    case PortableActivation::kClip:
      x = x < alpha ? alpha : x;
      return x > beta ? beta : x;
    case PortableActivation::kLeakyRelu:
      return x >= 0 ? x : alpha * x;
    case PortableActivation::kHardSigmoid:
    case PortableActivation::kHardSwish: {
      float gate = MultiplyAdd(alpha, x, beta);
      gate = gate < 0 ? 0 : gate;
      gate = gate > 1 ? 1 : gate;
      return kind == PortableActivation::kHardSigmoid ? gate : x * gate;
    }
    case PortableActivation::kNone:
      break;
  }
  return x;
}

// Elements i of acc and out, each with its own stride.
template <PortableActivation kKind>
void FinishRun(const PortableFinish& f, const float* acc, int64_t acc_stride, int64_t offset, int64_t stride,
               int64_t count) {
  float* out = f.out + offset;
  if (acc_stride == 1 && stride == 1) {
#pragma GCC ivdep
    for (int64_t i = 0; i < count; ++i) out[i] = Activate(acc[i], kKind, f.alpha, f.beta);
    return;
  }
  for (int64_t i = 0; i < count; ++i) out[i * stride] = Activate(acc[i * acc_stride], kKind, f.alpha, f.beta);
}

template <PortableActivation kKind>
void FinishTile(const PortableFinish& f, bool contiguous) {
  if (contiguous) {
    for (int64_t p = 0; p < f.positions; ++p) {
      FinishRun<kKind>(f, f.acc + p * f.acc_stride, 1, f.channel_offsets[0] + p * f.position_stride, 1,
                       f.channels);
    }
    return;
  }
  for (int64_t v = 0; v < f.channels; ++v) {
    FinishRun<kKind>(f, f.acc + v, f.acc_stride, f.channel_offsets[v], f.position_stride, f.positions);
  }
}

template <PortableActivation kKind>
void FinishPlanes(const PortableFinish& f) {
  for (int64_t v = 0; v < f.channels; ++v) {
    FinishRun<kKind>(f, f.acc + v * f.acc_stride, 1, f.channel_offsets[v], f.position_stride, f.positions);
  }
}

}  // namespace

void RunPortableTile(const PortableTile& tile) {
  static constexpr TileFunction kTiles[] = {
      ChannelTile<1>,  ChannelTile<2>,  ChannelTile<3>,  ChannelTile<4>, ChannelTile<5>,
      ChannelTile<6>,  ChannelTile<7>,  ChannelTile<8>,  ChannelTile<9>, ChannelTile<10>,
      ChannelTile<11>, ChannelTile<12>, ChannelTile<13>, ChannelTile<14>};
  kTiles[tile.positions - 1](tile);
}

void RunPortableDepthwiseTile(const PortableTile& tile) {
  PortableTile part = tile;
  for (int first = 0; first < tile.positions; first += kDepthwisePositions) {
    part.positions =
        tile.positions - first < kDepthwisePositions ? tile.positions - first : kDepthwisePositions;
    part.input = tile.input + first * tile.position_stride;
    part.acc = tile.acc + first * kPortableLanes;
    const TileFunction* tiles = tile.lanes == 16  ? kDepthwiseTiles<16>
                                : tile.lanes == 8 ? kDepthwiseTiles<8>
                                                  : kDepthwiseTiles<1>;
    tiles[part.positions - 1](part);
  }
}

void RunPortablePlaneTile(const PortablePlaneTile& tile) {
  static constexpr PlaneFunction kTiles[2][4] = {
      {PlaneTile<1, 1>, PlaneTile<2, 1>, PlaneTile<3, 1>, PlaneTile<4, 1>},
      {PlaneTile<1, 2>, PlaneTile<2, 2>, PlaneTile<3, 2>, PlaneTile<4, 2>}};
  kTiles[tile.vectors - 1][tile.planes - 1](tile);
}

void FinishPortableTile(const PortableFinish& finish, bool contiguous) {
  using Function = void (*)(const PortableFinish&, bool);
  static constexpr Function kFinish[] = {
      FinishTile<PortableActivation::kNone>,        FinishTile<PortableActivation::kRelu>,
      FinishTile<PortableActivation::kClip>,        FinishTile<PortableActivation::kLeakyRelu>,
      FinishTile<PortableActivation::kHardSigmoid>, FinishTile<PortableActivation::kHardSwish>};
  kFinish[static_cast<int>(finish.activation)](finish, contiguous);
}

void FinishPortablePlanes(const PortableFinish& finish) {
  using Function = void (*)(const PortableFinish&);
  static constexpr Function kFinish[] = {
      FinishPlanes<PortableActivation::kNone>,        FinishPlanes<PortableActivation::kRelu>,
      FinishPlanes<PortableActivation::kClip>,        FinishPlanes<PortableActivation::kLeakyRelu>,
      FinishPlanes<PortableActivation::kHardSigmoid>, FinishPlanes<PortableActivation::kHardSwish>};
  kFinish[static_cast<int>(finish.activation)](finish);
}

}  // namespace tilesmith::TILESMITH_ISA
// NOLINTEND(bugprone-implicit-widening-of-multiplication-result)
