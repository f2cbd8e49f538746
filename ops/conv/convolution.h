// What convolutions have in common that templates compute: those of floats (conv.h) and those of bytes
// (ops/quantize/quantized_conv.h).
#pragma once

#include "ops/base/op.h"
#include "ops/conv/workload.h"

namespace tilesmith {

// Kernels that copy their input in front of the products copy what at least so many outputs of a row see.
constexpr int64_t kLeastSeenOutputs = 24;

// Bytes of that, at most, where a pixel has so many numbers of 16 bits; in floating point, where it cannot
// overflow.
inline double LeastSeenBytes(const ConvWorkload& w, int64_t pixel_numbers) {
  const double rows = static_cast<double>(w.kh - 1) * static_cast<double>(w.dh + 1) + 1;
  const double columns = static_cast<double>(w.kw - 1) * static_cast<double>(w.dw + 1) + 1 +
                         static_cast<double>(w.kw == 1 ? 1 : w.sw) * kLeastSeenOutputs;
  return rows * columns * static_cast<double>(pixel_numbers) * sizeof(int16_t);
}

class ConvolutionOp : public Op {
 public:
  const ConvWorkload& workload() const { return workload_; }

 protected:
  explicit ConvolutionOp(ConvWorkload workload) : workload_(std::move(workload)) {}

  ConvWorkload workload_;
};

}  // namespace tilesmith
