#include "templates/winograd/weights.h"

namespace tilesmith::TILESMITH_ISA {
namespace {

constexpr int kLanes = 8;  // output channels at a time
constexpr int kTaps = 3;
constexpr int kMaxWindow = 9;

typedef double Doubles __attribute__((vector_size(kLanes * sizeof(double))));
typedef float Floats __attribute__((vector_size(kLanes * sizeof(float))));
typedef Floats UnalignedFloats __attribute__((aligned(sizeof(float)), may_alias));

void LoadTaps(const winograd::ChunkWeights& c, int64_t channel, int64_t first,
              Doubles (&taps)[kTaps][kTaps]) {
  const int64_t output_stride = c.input_channels * kTaps * kTaps;
  for (int tap = 0; tap < kTaps * kTaps; ++tap) {
    Doubles lanes = {};
    for (int lane = 0; lane < kLanes; ++lane) {
      if (first + lane >= c.outputs) break;
      lanes[lane] = c.weights[(first + lane) * output_stride + channel * kTaps * kTaps + tap];
    }
    taps[tap / kTaps][tap % kTaps] = lanes;
  }
}

}  // namespace

void TransformWinogradWeights(const winograd::ChunkWeights& c) {
  for (int64_t channel = 0; channel < c.input_channels; ++channel) {
    for (int64_t first = 0; first < c.lanes; first += kLanes) {
      Doubles taps[kTaps][kTaps], rows[kMaxWindow][kTaps];
      LoadTaps(c, channel, first, taps);
      for (int64_t i = 0; i < c.window; ++i) {
        const double* g = c.transform + i * kTaps;
        for (int k = 0; k < kTaps; ++k)
          rows[i][k] = g[0] * taps[0][k] + g[1] * taps[1][k] + g[2] * taps[2][k];
      }
      float* to = c.packed + channel * c.lanes + first;
      for (int i = 0; i < c.window; ++i) {
        for (int64_t j = 0; j < c.window; ++j, to += c.element_stride) {
          const double* g = c.transform + j * kTaps;
          const Doubles u = g[0] * rows[i][0] + g[1] * rows[i][1] + g[2] * rows[i][2];
          *reinterpret_cast<UnalignedFloats*>(to) = __builtin_convertvector(u, Floats);
        }
      }
    }
  }
}

}  // namespace tilesmith::TILESMITH_ISA
