// What convolutions have in common that templates compute: those of floats (conv.h) and those of bytes
// (ops/quantize/quantized_conv.h).
#pragma once

#include "ops/base/op.h"
#include "ops/conv/workload.h"

namespace tilesmith {

class ConvolutionOp : public Op {
 public:
  const ConvWorkload& workload() const { return workload_; }

 protected:
  explicit ConvolutionOp(ConvWorkload workload) : workload_(std::move(workload)) {}

  ConvWorkload workload_;
};

}  // namespace tilesmith
