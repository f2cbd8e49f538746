#include "ops/dense/softmax.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "layouts/base/error.h"
#include "ops/base/import_util.h"
#include "ops/dense/softmax_kernel.h"

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
      for (int64_t j = 0; j < count; ++j) sum += std::exp(from[j * inner] - largest);
      for (int64_t j = 0; j < count; ++j) {
        const double below = from[j * inner] - largest;
        to[j * inner] = static_cast<float>(logarithm_ ? below - std::log(sum) : std::exp(below) / sum);
      }
    }
  }
  return output;
}

std::unique_ptr<Kernel> SoftmaxOp::MakeKernel(const KernelRequest& request) const {
  const bool mixes_images = first_axis_ == 0 && last_axis_ > 0 && request.output[0] > 1;
  if (mixes_images) return Op::MakeKernel(request);
  return MakeSoftmaxKernel(request, first_axis_, last_axis_, logarithm_);
}

std::vector<OpImporter> SoftmaxImporters() {
  return {{"Softmax", BuildSoftmax}, {"LogSoftmax", BuildSoftmax}};
}

}  // namespace tilesmith
