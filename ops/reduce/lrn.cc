#include "ops/reduce/lrn.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "layouts/base/error.h"
#include "ops/base/import_util.h"

namespace tilesmith {
namespace {

BuiltOp BuildLrn(const NodeSpec& spec) {
  NeedInputs(spec, 1, 1);
  if (spec.inputs[0].type != DataType::kF32) Refuse(spec, "only float inputs are supported");
  const LrnParameters parameters{spec.Int("size", 0), spec.Float("alpha", 1e-4f), spec.Float("beta", 0.75f),
                                 spec.Float("bias", 1)};
  if (parameters.size < 1) Refuse(spec, fmt::format("size must be at least 1, is {}", parameters.size));
  return BuiltWithInputs(std::make_shared<LrnOp>(parameters), 1);
}

}  // namespace

std::string LrnOp::Signature() const {
  return fmt::format("LRN {} {} {} {}", parameters_.size, parameters_.alpha, parameters_.beta,
                     parameters_.bias);
}

Shape LrnOp::InferShape(std::span<const Shape> inputs) const {
  if (inputs[0].size() < 2)
    throw Error(ErrorCode::kBadModel,
                fmt::format("LRN of {}, which has no channels", ShapeToString(inputs[0])));
  return inputs[0];
}

Tensor LrnOp::Reference(std::span<const Tensor* const> inputs) const {
  const Tensor& input = *inputs[0];
  Tensor output(input.shape());
  const int64_t images = input.shape()[0], channels = input.shape()[1];
  const int64_t plane = images * channels == 0 ? 0 : input.size() / (images * channels);
  const int64_t before = (parameters_.size - 1) / 2, after = parameters_.size - 1 - before;
  for (int64_t n = 0; n < images; ++n) {
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t i = 0; i < plane; ++i) {
        const auto at = [&](int64_t channel) { return (n * channels + channel) * plane + i; };
        double squares = 0;
        for (int64_t k = std::max<int64_t>(0, c - before); k <= std::min(channels - 1, c + after); ++k)
          squares += static_cast<double>(input.floats()[at(k)]) * input.floats()[at(k)];
        const double scale =
            std::pow(parameters_.bias + parameters_.alpha / static_cast<double>(parameters_.size) * squares,
                     parameters_.beta);
        output.floats()[at(c)] = static_cast<float>(input.floats()[at(c)] / scale);
      }
    }
  }
  return output;
}

double LrnOp::Flops(std::span<const Shape> inputs) const {
  const int64_t channels = inputs[0].size() < 2 ? 1 : inputs[0][1];
  return 2.0 * ElementCount(inputs[0]) * static_cast<double>(std::min(parameters_.size, channels));
}

std::vector<OpImporter> LrnImporters() { return {{"LRN", BuildLrn}}; }

}  // namespace tilesmith
