#include <algorithm>
#include <cstring>

#include "layouts/transform_moves.h"
#include "templates/winograd/weights.h"

namespace tilesmith::TILESMITH_ISA {

// This instruction set's (layouts/transform_moves.h).
template <typename Element>
void Interleave(const PlaneMove<Element>& move);

namespace {

constexpr int kLanes = 8, kChannels = 16;  // output and input channels at a time
constexpr int kTaps = 3;
constexpr int kMaxWindow = 9;

typedef double Doubles __attribute__((vector_size(kLanes * sizeof(double))));
typedef float Floats __attribute__((vector_size(kLanes * sizeof(float))));
typedef Floats UnalignedFloats __attribute__((aligned(sizeof(float)), may_alias));

// Transforms one input channel, given its taps, each for all lanes, of which the first `lanes` are stored.
void Transform(const winograd::ChunkWeights& c, const float (&given)[kTaps * kTaps][kLanes], int64_t lanes,
               float* to) {
  Doubles taps[kTaps][kTaps], rows[kMaxWindow][kTaps];
  for (int tap = 0; tap < kTaps * kTaps; ++tap)
    taps[tap / kTaps][tap % kTaps] =
        __builtin_convertvector(*reinterpret_cast<const UnalignedFloats*>(given[tap]), Doubles);
  for (int64_t i = 0; i < c.window; ++i) {
    const double* g = c.transform + i * kTaps;
    for (int k = 0; k < kTaps; ++k) rows[i][k] = g[0] * taps[0][k] + g[1] * taps[1][k] + g[2] * taps[2][k];
  }
  for (int i = 0; i < c.window; ++i) {
    for (int64_t j = 0; j < c.window; ++j, to += c.element_stride) {
      const double* g = c.transform + j * kTaps;
      const Doubles u = g[0] * rows[i][0] + g[1] * rows[i][1] + g[2] * rows[i][2];
      const Floats rounded = __builtin_convertvector(u, Floats);
      if (lanes == kLanes) {
        *reinterpret_cast<UnalignedFloats*>(to) = rounded;
      } else {
        std::memcpy(to, &rounded, static_cast<size_t>(lanes) * sizeof(float));
      }
    }
  }
}

}  // namespace

void TransformWinogradWeights(const winograd::ChunkWeights& c) {
  float taps[kChannels][kTaps * kTaps][kLanes];
  const int64_t output_stride = c.input_channels * kTaps * kTaps;
  for (int64_t channel = 0; channel < c.input_channels; channel += kChannels) {
    const int64_t left = c.input_channels - channel, channels = left < kChannels ? left : kChannels;
    for (int64_t first = 0; first < c.lanes; first += kLanes) {
      const int64_t outputs = c.outputs - first;
      const int64_t lanes = std::min<int64_t>(c.lanes - first, kLanes);  // vectors may be of 4
      const float* from =
          outputs > 0 ? c.weights + first * output_stride + channel * kTaps * kTaps : c.weights;
      Interleave(PlaneMove<float>{from, taps[0][0], output_stride, kLanes, channels * kTaps * kTaps,
                                  outputs < kLanes ? outputs : kLanes, kLanes});
      for (int64_t i = 0; i < channels; ++i)
        Transform(c, taps[i], lanes, c.packed + (channel + i) * c.lanes + first);
    }
  }
}

}  // namespace tilesmith::TILESMITH_ISA
