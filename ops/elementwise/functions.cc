#include "ops/elementwise/functions.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/base/broadcast.h"
#include "ops/base/import_util.h"
#include "ops/elementwise/activations.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/elementwise_kernel.h"
#include "ops/elementwise/logic.h"
#include "ops/movement/view.h"

namespace tilesmith {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

constexpr UnaryFunction kUnary[] = {
    {"Abs", [](double x) { return std::abs(x); }},
    {"Ceil", [](double x) { return std::ceil(x); }},
    {"Erf", [](double x) { return std::erf(x); }},
    {"Exp", [](double x) { return std::exp(x); }, MakeExpKernel},
    {"Floor", [](double x) { return std::floor(x); }},
    {"Log", [](double x) { return std::log(x); }},
    {"Neg", [](double x) { return -x; }},
    {"Reciprocal", [](double x) { return 1 / x; }},
    {"Sqrt", [](double x) { return std::sqrt(x); }},
};
constexpr BinaryFunction kPow{"Pow", [](double a, double b) { return std::pow(a, b); }};
// NaN if either is.
constexpr BinaryFunction kMin{"Min", [](double a, double b) { return a < b || std::isnan(a) ? a : b; }};
constexpr BinaryFunction kMax{"Max", [](double a, double b) { return a > b || std::isnan(a) ? a : b; }};

const UnaryFunction& Unary(std::string_view name) {
  return *std::ranges::find(kUnary, name, &UnaryFunction::name);
}

void NeedFloats(const NodeSpec& spec) {
  for (const NodeInput& input : spec.inputs)
    if (input.type != DataType::kF32) Refuse(spec, "only float inputs are supported");
}

BuiltOp BuildUnary(const NodeSpec& spec) {
  NeedInputs(spec, 1, 1);
  NeedFloats(spec);
  return BuiltWithInputs(std::make_shared<FunctionOp>(Unary(spec.op_type)), 1);
}

// The only element of a constant input; nullopt when it is none.
std::optional<float> ConstantScalar(const NodeSpec& spec, size_t index) {
  const NodeInput& input = spec.inputs[index];
  if (!input.constant || input.constant->size() != 1) return std::nullopt;
  return ConstantFloats(spec, index)[0];
}

BuiltOp BuildPow(const NodeSpec& spec) {
  NeedInputs(spec, 2, 2);
  if (spec.inputs[0].type != DataType::kF32) Refuse(spec, "only float bases are supported");
  const bool broadcasts = spec.inputs[1].shape.size() > spec.inputs[0].shape.size();
  const std::optional<float> exponent = broadcasts ? std::nullopt : ConstantScalar(spec, 1);
  if (exponent == 1.0f) return BuiltWithInputs(std::make_shared<ViewOp>("Identity"), 1);
  if (exponent == 2.0f) return {std::make_shared<BinaryOp>(BinaryKind::kMul), {0, 0}};
  if (exponent == 0.5f) return BuiltWithInputs(std::make_shared<FunctionOp>(Unary("Sqrt")), 1);
  if (spec.inputs[1].type != DataType::kF32) Refuse(spec, "only float exponents are supported");
  return BuiltWithInputs(std::make_shared<BinaryFunctionOp>(kPow), 2);
}

BuiltOp BuildMinMax(const NodeSpec& spec, bool is_max) {
  NeedInputs(spec, 1, 1 << 16);
  if (spec.inputs.size() == 1) return BuiltWithInputs(std::make_shared<ViewOp>("Identity"), 1);
  if (spec.inputs[0].type != DataType::kF32) return BuildIntegerExtremum(spec, is_max);
  for (const int constant : {1, 0}) {
    if (spec.inputs.size() > 2) break;
    const NodeInput &bound = spec.inputs[constant], &x = spec.inputs[1 - constant];
    const std::optional<float> value = ConstantScalar(spec, constant);
    if (!value || x.constant || bound.shape.size() > x.shape.size()) continue;
    const Activation clip =
        is_max && *value == 0
            ? Activation{ActivationKind::kRelu}
            : Activation{ActivationKind::kClip, is_max ? *value : -kInfinity, is_max ? kInfinity : *value};
    return {std::make_shared<ActivationOp>(clip), {1 - constant}};
  }
  return BuiltWithInputs(std::make_shared<BinaryFunctionOp>(is_max ? kMax : kMin), int(spec.inputs.size()));
}

}  // namespace

Tensor FunctionOp::Reference(std::span<const Tensor* const> inputs) const {
  Tensor output(inputs[0]->shape());
  for (int64_t i = 0; i < output.size(); ++i)
    output.floats()[i] = static_cast<float>(function_.apply(inputs[0]->floats()[i]));
  return output;
}

std::unique_ptr<Kernel> FunctionOp::MakeKernel(const KernelRequest& request) const {
  return HasFastKernel() ? function_.kernel(request) : Op::MakeKernel(request);
}

Shape BinaryFunctionOp::InferShape(std::span<const Shape> inputs) const {
  return BroadcastAll(Type(), inputs);
}

Tensor BinaryFunctionOp::Reference(std::span<const Tensor* const> inputs) const {
  std::vector<Shape> shapes;
  for (const Tensor* input : inputs) shapes.push_back(input->shape());
  Tensor output(InferShape(shapes));
  for (size_t slot = 0; slot < inputs.size(); ++slot) {
    const std::vector<int64_t> from = BroadcastIndices(inputs[slot]->shape(), output.shape());
    for (int64_t i = 0; i < output.size(); ++i) {
      const float value = inputs[slot]->floats()[from[i]];
      float& result = output.floats()[i];
      result = slot == 0 ? value : static_cast<float>(function_.apply(result, value));
    }
  }
  return output;
}

std::vector<OpImporter> FunctionImporters() {
  std::vector<OpImporter> importers;
  for (const UnaryFunction& function : kUnary) importers.push_back({function.name, BuildUnary});
  importers.push_back({"Pow", BuildPow});
  importers.push_back({"Min", [](const NodeSpec& spec) { return BuildMinMax(spec, false); }});
  importers.push_back({"Max", [](const NodeSpec& spec) { return BuildMinMax(spec, true); }});
  return importers;
}

}  // namespace tilesmith
