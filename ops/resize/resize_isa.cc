#include "ops/kernels/vector_math.h"
#include "ops/resize/resize_loops.h"

namespace tilesmith::TILESMITH_ISA {
namespace {

inline void RepeatPlain(const ResizeRow& row) {
  const int64_t inputs = row.output_width / row.repeat;
  if (row.repeat == 2) {
    for (int64_t i = 0; i < inputs; ++i) row.output[2 * i] = row.output[2 * i + 1] = row.low[i];
    return;
  }
  for (int64_t i = 0; i < inputs; ++i) {
    for (int64_t r = 0; r < row.repeat; ++r) row.output[i * row.repeat + r] = row.low[i];
  }
}

// Each input pixel is loaded once and stored `repeat` times.
inline void RepeatPixels(const ResizeRow& row) {
  const int64_t inputs = row.output_width / row.repeat;
  for (int64_t i = 0; i < inputs; ++i) {
    const float* in = row.low + i * row.lanes;
    float* out = row.output + i * row.repeat * row.lanes;
    ForEachVector(row.lanes, [&]<int kLanes>(int64_t lane) {
      const Vector<kLanes> value = Load<kLanes>(in + lane);
      for (int64_t r = 0; r < row.repeat; ++r) Store<kLanes>(out + r * row.lanes + lane, value);
    });
  }
}

inline void GatherPixels(const ResizeRow& row) {
  for (int64_t x = 0; x < row.output_width; ++x) {
    const float* in = row.low + row.columns[x].low * row.lanes;
    float* out = row.output + x * row.lanes;
    ForEachVector(row.lanes,
                  [&]<int kLanes>(int64_t lane) { Store<kLanes>(out + lane, Load<kLanes>(in + lane)); });
  }
}

// A weight of 0 leaves `high` out altogether, which may be infinite.
template <typename V>
inline V Between(V low, V high, float weight) {
  return weight == 0 ? low : low * (1 - weight) + high * weight;
}

}  // namespace

void NearestRow(const ResizeRow& row) {
  if (row.repeat == 0) {
    GatherPixels(row);
  } else if (row.lanes == 1) {
    RepeatPlain(row);
  } else {
    RepeatPixels(row);
  }
}

void LinearRow(const ResizeRow& row) {
  for (int64_t x = 0; x < row.output_width; ++x) {
    const ResizeTap& tap = row.columns[x];
    const int64_t left = tap.low * row.lanes, right = tap.high * row.lanes;
    float* out = row.output + x * row.lanes;
    ForEachVector(row.lanes, [&]<int kLanes>(int64_t lane) {
      using V = Vector<kLanes>;
      const float* low = row.low + lane;
      const float* high = row.high + lane;
      const V top = Between<V>(Load<kLanes>(low + left), Load<kLanes>(low + right), tap.weight);
      const V bottom = Between<V>(Load<kLanes>(high + left), Load<kLanes>(high + right), tap.weight);
      Store<kLanes>(out + lane, Between<V>(top, bottom, row.weight));
    });
  }
}

}  // namespace tilesmith::TILESMITH_ISA
