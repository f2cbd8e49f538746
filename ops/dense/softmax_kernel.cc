#include "ops/dense/softmax_kernel.h"

#include "ops/dense/softmax_loops.h"

namespace tilesmith {
namespace {

class SoftmaxKernel : public Kernel {
 public:
  SoftmaxKernel(const KernelRequest& request, int64_t first_axis)
      : count_(ElementCount(Shape(request.output.begin() + first_axis, request.output.end()))),
        rows_per_image_(ElementCount(Shape(request.output.begin() + 1, request.output.begin() + first_axis))),
        rows_(count_ == 0 ? 0 : request.output[0] * rows_per_image_),
        loop_(TILESMITH_DISPATCH(request.cpu.isa, SoftmaxRow)) {}

  int64_t Tasks(int) const override { return rows_; }

  void Run(const KernelArgs& args, int, TaskRange range) const override {
    for (int64_t row = range.begin; row < range.end; ++row) {
      const int64_t image = row / rows_per_image_, offset = row % rows_per_image_ * count_;
      loop_(args.inputs[0].image<float>(image) + offset, args.output.image<float>(image) + offset, count_);
    }
  }

 private:
  const int64_t count_, rows_per_image_, rows_;
  void (*const loop_)(const float*, float*, int64_t);
};

}  // namespace

std::unique_ptr<Kernel> MakeSoftmaxKernel(const KernelRequest& request, int64_t first_axis) {
  return std::make_unique<SoftmaxKernel>(request, first_axis);
}

}  // namespace tilesmith
