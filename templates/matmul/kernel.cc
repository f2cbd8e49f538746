#include "ops/dense/matmul.h"
#include "templates/base/forwarded_kernel.h"
#include "templates/matmul/schedule.h"

namespace tilesmith::matmul {
namespace {

Arrangement Seen(bool transposed) { return transposed ? Arrangement{{}, {0, 1, 3, 2}} : Arrangement{}; }

}  // namespace

std::unique_ptr<ConvKernel> BuildKernel(const Schedule& s, const Target& cpu, const ConvWeights&) {
  const ConvWorkload& w = s.workload;
  const KernelRequest request{{w.input_shape(), w.weights_shape()}, w.output_shape(), Layout::Nchw(), cpu};
  MatMulParams params{.a = Seen(w.product->left_transposed), .b = Seen(w.product->right_transposed)};
  params.schedule = s.config;
  return std::make_unique<ForwardedKernel>(MakeMatMulKernel(request, params));
}

}  // namespace tilesmith::matmul
