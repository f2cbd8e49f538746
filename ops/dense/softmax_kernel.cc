#include "ops/dense/softmax_kernel.h"

#include <algorithm>

#include "ops/dense/softmax_loops.h"

namespace tilesmith {
namespace {

class SoftmaxKernel : public Kernel {
 public:
  SoftmaxKernel(const KernelRequest& request, int64_t first_axis, int64_t last_axis, bool logarithm)
      : along_images_(first_axis == 0 && request.output[0] != 1),
        count_(Product(request.output, first_axis, last_axis + 1)),
        inner_(Product(request.output, last_axis + 1, static_cast<int64_t>(request.output.size()))),
        outer_(Product(request.output, 0, first_axis)),
        outer_per_image_(first_axis == 0 ? 1 : Product(request.output, 1, first_axis)),
        strips_(CeilDiv(inner_, kSoftmaxColumns)),
        logarithm_(logarithm),
        row_(TILESMITH_DISPATCH(request.cpu.isa, SoftmaxRow)),
        columns_(TILESMITH_DISPATCH(request.cpu.isa, SoftmaxColumns)) {}

  int64_t Tasks(int) const override { return count_ == 0 ? 0 : outer_ * strips_; }

  void Run(const KernelArgs& args, int, TaskRange range) const override {
    const InputView& from = args.inputs[0];
    constexpr int64_t kFloatBytes = sizeof(float);
    const int64_t in_step = along_images_ ? from.batch_stride / kFloatBytes : inner_;
    const int64_t out_step = along_images_ ? args.output.batch_stride / kFloatBytes : inner_;
    for (int64_t task = range.begin; task < range.end; ++task) {
      const int64_t outer = task / strips_, first = task % strips_ * kSoftmaxColumns;
      const int64_t image = outer / outer_per_image_;
      const int64_t offset = outer % outer_per_image_ * count_ * inner_ + first;
      const float* in = from.image<float>(image) + offset;
      float* out = args.output.image<float>(image) + offset;
      if (in_step == 1 && out_step == 1) {
        row_(in, out, count_, logarithm_);
      } else {
        columns_({in, out, count_, std::min(kSoftmaxColumns, inner_ - first), in_step, out_step}, logarithm_);
      }
    }
  }

 private:
  static int64_t Product(const Shape& shape, int64_t first, int64_t last) {
    return ElementCount(Shape(shape.begin() + first, shape.begin() + last));
  }

  const bool along_images_;
  const int64_t count_, inner_, outer_, outer_per_image_, strips_;
  const bool logarithm_;
  void (*const row_)(const float*, float*, int64_t, bool);
  void (*const columns_)(const SoftmaxTile&, bool);
};

}  // namespace

std::unique_ptr<Kernel> MakeSoftmaxKernel(const KernelRequest& request, int64_t first_axis, int64_t last_axis,
                                          bool logarithm) {
  return std::make_unique<SoftmaxKernel>(request, first_axis, last_axis, logarithm);
}

}  // namespace tilesmith
