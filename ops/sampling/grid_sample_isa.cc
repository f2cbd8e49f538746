#include "ops/sampling/grid_sample_loops.h"

namespace tilesmith::TILESMITH_ISA {
namespace {

constexpr int64_t kBlock = 64;  // places whose taps are held

// The two taps along one axis, -1 for one that lies outside.
struct AxisTaps {
  int64_t near = -1, far = -1;
  double near_weight = 0, far_weight = 0;
};

// `x` mirrored into [low, high], however far away it is.
inline double Mirrored(double x, double low, double high) {
  const double range = high - low;
  if (range <= 0) return low;
  const double away = __builtin_fabs(x - low), cycles = __builtin_floor(away / range);
  const double rest = away - cycles * range;
  const bool even = cycles - 2 * __builtin_floor(cycles / 2) == 0;
  return even ? low + rest : high - rest;
}

inline AxisTaps TapsOfAxis(double place, int64_t size, const GridSampleRun& run) {
  const auto last = static_cast<double>(size - 1);
  double at = run.align_corners ? (place + 1) / 2 * last : ((place + 1) * static_cast<double>(size) - 1) / 2;
  if (run.padding == SamplePadding::kReflection) {
    at = run.align_corners ? Mirrored(at, 0, last) : Mirrored(at, -0.5, last + 0.5);
  }
  if (run.padding != SamplePadding::kZeros) at = at < 0 ? 0 : at > last ? last : at;
  const double floor = __builtin_floor(at), rest = at - floor;
  AxisTaps taps;
  taps.near_weight = 1 - rest;
  taps.far_weight = rest;
  if (floor >= 0 && floor <= last) taps.near = static_cast<int64_t>(floor);  // not NaN either
  if (floor + 1 >= 0 && floor + 1 <= last) taps.far = static_cast<int64_t>(floor + 1);
  return taps;
}

struct Taps {
  int64_t offset[4];
  double weight[4];
  bool inside;  // all of them
};

inline Taps TapsAt(const float* place, const GridSampleRun& run) {
  const AxisTaps x = TapsOfAxis(place[0], run.width, run), y = TapsOfAxis(place[1], run.height, run);
  const auto offset = [&](int64_t row, int64_t column) {
    return row < 0 || column < 0 ? -1 : row * run.width + column;
  };
  return {{offset(y.near, x.near), offset(y.near, x.far), offset(y.far, x.near), offset(y.far, x.far)},
          {y.near_weight * x.near_weight, y.near_weight * x.far_weight, y.far_weight * x.near_weight,
           y.far_weight * x.far_weight},
          x.near >= 0 && x.far >= 0 && y.near >= 0 && y.far >= 0};
}

inline float Sample(const float* plane, const Taps& taps) {
  double sum = 0;
  if (taps.inside) {
    for (int t = 0; t < 4; ++t) sum += taps.weight[t] * plane[taps.offset[t]];
    return static_cast<float>(sum);
  }
  for (int t = 0; t < 4; ++t) {
    if (taps.offset[t] >= 0) sum += taps.weight[t] * plane[taps.offset[t]];
  }
  return static_cast<float>(sum);
}

}  // namespace

void GridSampleLinear(const GridSampleRun& run) {
  Taps taps[kBlock];
  for (int64_t first = 0; first < run.places; first += kBlock) {
    const int64_t count = run.places - first < kBlock ? run.places - first : kBlock;
    for (int64_t p = 0; p < count; ++p) taps[p] = TapsAt(run.grid + 2 * (first + p), run);
    for (int64_t c = 0; c < run.channels; ++c) {
      const float* plane = run.image + c * run.height * run.width;
      float* out = run.out + c * run.out_plane + first;
      for (int64_t p = 0; p < count; ++p) out[p] = Sample(plane, taps[p]);
    }
  }
}

}  // namespace tilesmith::TILESMITH_ISA
