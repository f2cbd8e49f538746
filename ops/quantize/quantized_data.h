// Everything a workload of bytes computes on, for those who measure and test: what MakeConvData
// (ops/conv/conv.h) is for floats.
#pragma once

#include <memory>
#include <optional>

#include "ops/quantize/quantized_conv.h"

namespace tilesmith {

struct QuantizedData {
  std::shared_ptr<const QuantizedConvOp> op;  // weights, bias, scales and zero points
  Tensor input;                               // plain, of the workload's types
  std::optional<Tensor> residual;

  // The op takes these.
  std::vector<const Tensor*> inputs() const;
};

// Any bytes, a function of the seed alone; scales such that the outputs fill their range, and all zero points
// differ from 0. Throws Error(kBadModel) where sums of even the smallest weights might not fit 32 bits.
// Precondition: workload.bytes.
QuantizedData MakeQuantizedData(const ConvWorkload& workload, uint64_t seed);

}  // namespace tilesmith
