// Everything a workload computes on, of floats or of bytes, as a kernel takes it: for those who measure.
#pragma once

#include <functional>

#include "ops/conv/conv.h"
#include "ops/quantize/quantized_data.h"
#include "templates/base/conv_template.h"

namespace tilesmith {

// Valid while the data is where it was.
struct WorkloadOperands {
  const Tensor* input = nullptr;     // plain
  const Tensor* residual = nullptr;  // plain, or null where the workload has none
  ConvWeights weights;
  const Tensor* right_side = nullptr;  // of a product, its second input
};

inline WorkloadOperands OperandsOf(const ConvData& data) {
  return {&data.input, data.residual ? &*data.residual : nullptr, WeightsOf(data.tensors()), &data.weights};
}

struct WorkloadData {
  ConvData floats;      // of a workload of floats; else empty
  QuantizedData bytes;  // of one of bytes; else without an op

  WorkloadOperands operands() const {
    if (bytes.op == nullptr) return OperandsOf(floats);
    return {
        &bytes.input, bytes.residual ? &*bytes.residual : nullptr, {.quantized = bytes.op.get()}, nullptr};
  }
};

// Floats are filled by `fill` (MakeConvData), bytes by the seed (MakeQuantizedData).
inline WorkloadData MakeWorkloadData(const ConvWorkload& workload, uint64_t seed,
                                     const std::function<void(Tensor&)>& fill) {
  if (workload.bytes) return {.floats = {}, .bytes = MakeQuantizedData(workload, seed)};
  return {.floats = MakeConvData(workload, fill), .bytes = {}};
}

}  // namespace tilesmith
