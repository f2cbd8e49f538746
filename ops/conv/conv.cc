#include "ops/conv/conv.h"

#include <fmt/format.h>

#include "layouts/base/check.h"
#include "ops/base/import_util.h"
#include "ops/base/input.h"
#include "ops/conv/conv_depth.h"

namespace tilesmith {
namespace {

std::shared_ptr<const Tensor> FloatConstant(const NodeSpec& spec, size_t index, std::string_view role) {
  if (!spec.inputs[index].constant) {
    Refuse(spec, fmt::format("its {} must be constant, they depend on the network's inputs", role));
  }
  if (spec.inputs[index].constant->type() != DataType::kF32) {
    Refuse(spec, fmt::format("its {} must be floats", role));
  }
  return spec.inputs[index].constant;
}

// No workload has a size of 0: where input or weights have one, every output is the bias or 0.
BuiltOp BuildSumsOfNothing(const NodeSpec& spec, const ConvWorkload& w, const Tensor* bias) {
  const Shape shape = {w.mb, w.oc, w.oh, w.ow};
  NeedFoldable(spec, shape);
  auto sums = std::make_shared<Tensor>(shape);
  const int64_t pixels = w.oh * w.ow;
  for (int64_t i = 0; bias != nullptr && i < sums->size(); ++i) {
    sums->floats()[i] = bias->floats()[i / pixels % w.oc];
  }
  return {std::make_shared<ConstantOp>(std::move(sums)), {}};
}

BuiltOp BuildConv(const NodeSpec& spec) {
  NeedInputs(spec, 2, 3);
  if (spec.inputs[0].shape.size() != 4) return BuildConvOfOtherRank(spec);
  const Shape& input = ShapeOfRank(spec, 0, 4);
  const std::shared_ptr<const Tensor> weights = FloatConstant(spec, 1, "weights");
  const Shape& kernel = ShapeOfRank(spec, 1, 4);
  const Window window =
      ImportWindow(spec, spec.Ints("kernel_shape", {kernel[2], kernel[3]}), input[2], input[3]);
  if (window.kh != kernel[2] || window.kw != kernel[3]) {
    Refuse(spec, fmt::format("kernel_shape {}x{} contradicts the weights {}", window.kh, window.kw,
                             ShapeToString(kernel)));
  }
  ConvWorkload w;
  w.mb = input[0], w.ic = input[1], w.ih = input[2], w.iw = input[3];
  w.g = spec.Int("group", 1), w.oc = kernel[0];
  w.kh = window.kh, w.kw = window.kw, w.sh = window.sh, w.sw = window.sw;
  w.ph = window.top, w.pw = window.left, w.dh = window.dh - 1, w.dw = window.dw - 1;
  if (w.g < 1 || w.ic % w.g != 0 || w.ic / w.g != kernel[1]) {
    Refuse(spec, fmt::format("{} input channels in {} groups do not fit the weights {}", w.ic, w.g,
                             ShapeToString(kernel)));
  }
  const auto output = [&spec](int64_t padded, int64_t extent, int64_t stride) {
    if (padded < extent) Refuse(spec, fmt::format("the kernel extends over {} of {} inputs", extent, padded));
    return (padded - extent) / stride + 1;
  };
  w.oh = output(w.ih + window.top + window.bottom, (w.kh - 1) * window.dh + 1, w.sh);
  w.ow = output(w.iw + window.left + window.right, (w.kw - 1) * window.dw + 1, w.sw);
  std::shared_ptr<const Tensor> bias;
  StoredWeights stored = {spec.inputs[1].stored, nullptr};
  if (spec.HasInput(2)) {
    stored.bias = spec.inputs[2].stored;
    bias = FloatConstant(spec, 2, "bias values");
    if (bias->size() != w.oc) {
      Refuse(spec, fmt::format("the bias has {} values for {} channels", bias->size(), w.oc));
    }
    w.post.bias = true;
  }
  if (weights->size() == 0 || ElementCount(input) == 0) return BuildSumsOfNothing(spec, w, bias.get());
  try {
    return BuiltWithInputs(std::make_shared<ConvOp>(w, weights, bias, std::move(stored)), 1);
  } catch (const Error& error) {
    Refuse(spec, error.what());
  }
}

}  // namespace

ConvOp::ConvOp(const ConvWorkload& workload, std::shared_ptr<const Tensor> weights,
               std::shared_ptr<const Tensor> bias, StoredWeights stored)
    : ConvolutionOp(workload),
      weights_(std::move(weights)),
      bias_(std::move(bias)),
      stored_(std::move(stored)) {
  ValidateWorkload(workload_);
  TILESMITH_CHECK(!workload_.fused() && !workload_.bytes, "{}", WorkloadToString(workload_));
  TILESMITH_CHECK(weights_ && weights_->size() == ElementCount(workload_.weights_shape()));
  TILESMITH_CHECK((bias_ != nullptr) == workload_.post.bias && (!bias_ || bias_->size() == workload_.oc));
}

Shape ConvOp::InferShape(std::span<const Shape> inputs) const {
  const size_t count = workload_.post.sum ? 2 : 1;
  if (inputs.size() != count || inputs[0] != workload_.input_shape() ||
      (count == 2 && inputs[1] != workload_.output_shape())) {
    throw Error(ErrorCode::kBadModel,
                fmt::format("{} takes an input {}{}, it got {} input(s), the first {}", Signature(),
                            ShapeToString(workload_.input_shape()),
                            count == 2 ? " and a residual " + ShapeToString(workload_.output_shape()) : "",
                            inputs.size(), inputs.empty() ? "" : ShapeToString(inputs[0])));
  }
  return workload_.output_shape();
}

Tensor ConvOp::Reference(std::span<const Tensor* const> inputs) const {
  return ReferenceConv(workload_, *inputs[0], *weights_, bias_.get(),
                       workload_.post.sum ? inputs[1] : nullptr);
}

double ConvOp::Flops(std::span<const Shape>) const { return workload_.flops(); }

std::vector<OpImporter> ConvImporters() { return {{"Conv", BuildConv}}; }

}  // namespace tilesmith
