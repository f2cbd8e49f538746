#include "ops/dense/softmax.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "layouts/base/error.h"
#include "ops/base/elementary.h"
#include "ops/base/import_util.h"
#include "ops/base/rounding.h"
#include "ops/base/saved_op.h"
#include "ops/dense/softmax_loops.h"

namespace tilesmith {
namespace {

BuiltOp BuildSoftmax(const NodeSpec& spec) {
  NeedInputs(spec, 1, 1);
  const size_t rank = spec.inputs[0].shape.size();
  if (rank == 0) Refuse(spec, "its input is a scalar");
  const bool flattens = spec.opset < 13;
  const int64_t axis =
      NormalAxis(spec, spec.Int("axis", flattens ? std::min<int64_t>(1, rank - 1) : -1), rank);
  const bool logarithm = spec.op_type == "LogSoftmax";
  return BuiltWithInputs(std::make_shared<SoftmaxOp>(axis, flattens ? rank - 1 : axis, logarithm), 1);
}

}  // namespace

std::string SoftmaxOp::Signature() const {
  return fmt::format("{} axes {}-{}", Type(), first_axis_, last_axis_);
}

Shape SoftmaxOp::InferShape(std::span<const Shape> inputs) const {
  if (last_axis_ >= static_cast<int64_t>(inputs[0].size())) {
    throw Error(ErrorCode::kBadModel, fmt::format("{} of {}", Signature(), ShapeToString(inputs[0])));
  }
  return inputs[0];
}

Tensor SoftmaxOp::Reference(std::span<const Tensor* const> inputs) const {
  const Tensor& input = *inputs[0];
  Tensor output(input.shape());
  int64_t count = 1, inner = 1;
  for (int64_t axis = first_axis_; axis <= last_axis_; ++axis) count *= input.shape()[axis];
  for (size_t axis = last_axis_ + 1; axis < input.shape().size(); ++axis) inner *= input.shape()[axis];
  const int64_t outer = count * inner == 0 ? 0 : input.size() / (count * inner);
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t i = 0; i < inner; ++i) {
      const float* from = input.floats() + o * count * inner + i;
      float* to = output.floats() + o * count * inner + i;
      double largest = from[0], sum = 0;
      for (int64_t j = 0; j < count; ++j) largest = std::max<double>(largest, from[j * inner]);
      for (int64_t j = 0; j < count; ++j) sum += elementary::Exp(from[j * inner] - largest);
      for (int64_t j = 0; j < count; ++j) {
        const double below = from[j * inner] - largest;
        to[j * inner] =
            static_cast<float>(logarithm_ ? below - elementary::Log(sum) : elementary::Exp(below) / sum);
      }
    }
  }
  return output;
}

// Softmax, LogSoftmax.
std::vector<OpImporter> SoftmaxImporters() {
  return {{"Softmax", BuildSoftmax}, {"LogSoftmax", BuildSoftmax}};
}

namespace {

// Softmax, or its logarithm, over axes first_axis..last_axis together. Tasks are rows, or where the last axis
// is not among them, strips of columns. Precondition: where several images are taken together, first_axis ==
// last_axis.
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
      if (!along_images_ && inner_ == 1) {
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

std::unique_ptr<Kernel> SoftmaxOp::MakeKernel(const KernelRequest& request) const {
  const bool mixes_images = first_axis_ == 0 && last_axis_ > 0 && request.output[0] > 1;
  if (mixes_images) return Op::MakeKernel(request);
  return std::make_unique<SoftmaxKernel>(request, first_axis_, last_axis_, logarithm_);
}

// What a factor of the whole output is off: by exp's argument, and by the sum.
Tensor SoftmaxOp::RoundingBound(const OpRun& run) const {
  if (logarithm_) return BoundsOfLargest(run, kFunctionRoundings);
  double count = 1;
  for (int64_t axis = first_axis_; axis <= last_axis_; ++axis)
    count *= static_cast<double>(run.inputs[0]->shape()[axis]);
  return BoundsOf(Absolute(run.output),
                  kFunctionRoundings + SumRoundings(count) + 4 * LargestFinite(*run.inputs[0]));
}

std::vector<SavedOp> SoftmaxOps() { return {Saved<SoftmaxOp>("Softmax")}; }

}  // namespace tilesmith
