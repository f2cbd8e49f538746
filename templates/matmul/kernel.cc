#include "ops/dense/matmul_kernel.h"
#include "templates/matmul/schedule.h"

namespace tilesmith::matmul {
namespace {

// A kernel of ops/dense as one that templates build: nothing is packed beforehand.
class ProductKernel : public ConvKernel {
 public:
  explicit ProductKernel(std::unique_ptr<Kernel> kernel) : kernel_(std::move(kernel)) {}

  int64_t Tasks(int stage) const override { return kernel_->Tasks(stage); }
  int64_t ScratchBytes(int threads) const override { return kernel_->ScratchBytes(threads); }
  void Run(const KernelArgs& args, int stage, TaskRange range) const override {
    kernel_->Run(args, stage, range);
  }
  std::span<const std::byte> PackedWeights() const override { return {}; }

 private:
  const std::unique_ptr<Kernel> kernel_;
};

Arrangement Seen(bool transposed) { return transposed ? Arrangement{{}, {0, 1, 3, 2}} : Arrangement{}; }

}  // namespace

std::unique_ptr<ConvKernel> BuildKernel(const Schedule& s, const Target& cpu, const ConvWeights&) {
  const ConvWorkload& w = s.workload;
  const KernelRequest request{{w.input_shape(), w.weights_shape()}, w.output_shape(), Layout::Nchw(), cpu};
  MatMulParams params{.a = Seen(w.product->left_transposed), .b = Seen(w.product->right_transposed)};
  params.schedule = s.config;
  return std::make_unique<ProductKernel>(MakeMatMulKernel(request, params));
}

}  // namespace tilesmith::matmul
