#include "ops/elementwise/prelu.h"

#include <fmt/format.h>

#include "layouts/base/error.h"
#include "ops/base/broadcast.h"
#include "ops/base/import_util.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/elementwise_kernel.h"

namespace tilesmith {
namespace {

BuiltOp BuildPRelu(const NodeSpec& spec) {
  NeedInputs(spec, 2, 2);
  const Shape& shape = spec.inputs[0].shape;
  BuiltOp general = BuiltWithInputs(std::make_shared<BinaryOp>(BinaryKind::kPRelu), 2);
  if (shape.size() < 2 || !spec.inputs[1].constant) return general;
  std::vector<float> slopes = ConstantFloats(spec, 1);
  const Shape& slope_shape = spec.inputs[1].constant->shape();
  const int64_t channels = shape[1], count = static_cast<int64_t>(slopes.size());
  const int64_t axis = static_cast<int64_t>(shape.size()) - static_cast<int64_t>(slope_shape.size());
  // Aligned to the right as numpy does. A list is one value per channel in opset 6, and where converters
  // still write it so, which is where it does not fit the last axis.
  const bool on_channels = axis <= 1 && count == channels && slope_shape[1 - axis] == channels;
  const bool plain_list = slope_shape.size() == 1 && count == channels &&
                          (spec.opset < 7 || BroadcastShapes(slope_shape, shape) != shape);
  if (count == 1) {
    slopes.assign(channels, slopes[0]);
  } else if (!on_channels && !plain_list) {
    return general;
  }
  return BuiltWithInputs(std::make_shared<PReluOp>(std::move(slopes)), 1);
}

}  // namespace

Shape PReluOp::InferShape(std::span<const Shape> inputs) const {
  if (inputs.size() != 1 || inputs[0].size() < 2 || inputs[0][1] != static_cast<int64_t>(slopes_.size())) {
    throw Error(ErrorCode::kBadModel, fmt::format("PRelu with {} slopes cannot apply to {}", slopes_.size(),
                                                  inputs.empty() ? "nothing" : ShapeToString(inputs[0])));
  }
  return inputs[0];
}

Tensor PReluOp::Reference(std::span<const Tensor* const> inputs) const {
  const Tensor& input = *inputs[0];
  Tensor output(input.shape());
  const int64_t channels = input.shape()[1];
  const int64_t planes = input.shape()[0] * channels;
  const int64_t plane = planes == 0 ? 0 : input.size() / planes;
  for (int64_t i = 0; i < input.size(); ++i) {
    const float x = input.floats()[i];
    output.floats()[i] = x >= 0 ? x : slopes_[i / plane % channels] * x;
  }
  return output;
}

bool PReluOp::RunsIn(const Layout& layout, std::span<const Shape> inputs) const {
  return layout.is_nchw() || inputs[0].size() <= 4;
}

std::unique_ptr<Kernel> PReluOp::MakeKernel(const KernelRequest& request) const {
  return MakePReluKernel(request, slopes_);
}

std::vector<OpImporter> PReluImporters() { return {{"PRelu", BuildPRelu}}; }

}  // namespace tilesmith
