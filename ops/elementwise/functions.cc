#include "ops/elementwise/functions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "ops/base/elementary.h"
#include "ops/base/import_util.h"
#include "ops/base/node_writer.h"
#include "ops/base/rounding.h"
#include "ops/base/saved_op.h"
#include "ops/elementwise/elementwise_kernel.h"

namespace tilesmith {
namespace {

// x gate(x), where the gate is 0 before x is minus infinity.
template <typename Gate>
double Gated(double x, const Gate& gate) {
  return x == -std::numeric_limits<double>::infinity() ? 0 : x * gate(x);
}

// An attribute and its default; "" for none.
struct Parameter {
  std::string_view name;
  float fallback = 0;
};

struct NamedFunction {
  FunctionKind kind;
  std::string_view name;  // ONNX's
  double (*apply)(double x, double alpha, double beta);
  bool has_vectors = true;
  Parameter alpha = {}, beta = {};
};

// Selu's, of Klambauer et al., "Self-normalizing neural networks" (2017), rounded as ONNX has them.
constexpr Parameter kSeluAlpha{"alpha", 1.67326319217681884765625f},
    kSeluGamma{"gamma", 1.05070102214813232421875f};

constexpr NamedFunction kFunctions[] = {
    {FunctionKind::kAbs, "Abs", [](double x, double, double) { return std::abs(x); }},
    {FunctionKind::kAcos, "Acos", [](double x, double, double) { return elementary::Acos(x); }, false},
    {FunctionKind::kAcosh, "Acosh", [](double x, double, double) { return elementary::Acosh(x); }, false},
    {FunctionKind::kAsin, "Asin", [](double x, double, double) { return elementary::Asin(x); }, false},
    {FunctionKind::kAsinh, "Asinh", [](double x, double, double) { return elementary::Asinh(x); }, false},
    {FunctionKind::kAtan, "Atan", [](double x, double, double) { return elementary::Atan(x); }},
    {FunctionKind::kAtanh, "Atanh", [](double x, double, double) { return elementary::Atanh(x); }, false},
    {FunctionKind::kCeil, "Ceil", [](double x, double, double) { return std::ceil(x); }},
    {FunctionKind::kCelu,
     "Celu",
     [](double x, double alpha, double) { return x > 0 ? x : alpha * elementary::Expm1(x / alpha); },
     true,
     {"alpha", 1}},
    {FunctionKind::kCos, "Cos", [](double x, double, double) { return elementary::Cos(x); }},
    {FunctionKind::kCosh, "Cosh", [](double x, double, double) { return elementary::Cosh(x); }, false},
    {FunctionKind::kElu,
     "Elu",
     [](double x, double alpha, double) { return x >= 0 ? x : alpha * elementary::Expm1(x); },
     true,
     {"alpha", 1}},
    {FunctionKind::kErf, "Erf", [](double x, double, double) { return elementary::Erf(x); }},
    {FunctionKind::kExp, "Exp", [](double x, double, double) { return elementary::Exp(x); }},
    {FunctionKind::kFloor, "Floor", [](double x, double, double) { return std::floor(x); }},
    {FunctionKind::kGelu, "Gelu",
     [](double x, double, double) {
       return Gated(x, [](double v) { return elementary::Erfc(-v / std::numbers::sqrt2) / 2; });
     }},
    {FunctionKind::kGeluTanh, "GeluTanh",
     [](double x, double, double) {
       return Gated(x, [](double v) {
         const double u = std::sqrt(2 / std::numbers::pi) * (v + 0.044715 * v * v * v);
         return 1 / (1 + elementary::Exp(-2 * u));
       });
     }},
    {FunctionKind::kLog, "Log", [](double x, double, double) { return elementary::Log(x); }},
    {FunctionKind::kMish, "Mish",
     [](double x, double, double) {
       return Gated(
           x, [](double v) { return v > 50 ? 1 : elementary::Tanh(elementary::Log1p(elementary::Exp(v))); });
     }},
    {FunctionKind::kNeg, "Neg", [](double x, double, double) { return -x; }},
    {FunctionKind::kReciprocal, "Reciprocal", [](double x, double, double) { return 1 / x; }},
    {FunctionKind::kRound, "Round", [](double x, double, double) { return std::nearbyint(x); }},
    {FunctionKind::kSelu, "Selu",
     [](double x, double alpha, double gamma) { return gamma * (x > 0 ? x : alpha * elementary::Expm1(x)); },
     true, kSeluAlpha, kSeluGamma},
    {FunctionKind::kShrink,
     "Shrink",
     [](double x, double bias, double lambda) {
       if (x < -lambda) return x + bias;
       return x > lambda ? x - bias : std::isnan(x) ? x : 0;
     },
     true,
     {"bias", 0},
     {"lambd", 0.5f}},
    {FunctionKind::kSign, "Sign", [](double x, double, double) { return x > 0   ? 1
                                                                        : x < 0 ? -1
                                                                                : x; }},
    {FunctionKind::kSin, "Sin", [](double x, double, double) { return elementary::Sin(x); }},
    {FunctionKind::kSinh, "Sinh", [](double x, double, double) { return elementary::Sinh(x); }, false},
    {FunctionKind::kSoftplus, "Softplus",
     [](double x, double, double) {
       return std::max(x, 0.0) + elementary::Log1p(elementary::Exp(-std::abs(x)));
     }},
    {FunctionKind::kSoftsign, "Softsign", [](double x, double, double) { return x / (1 + std::abs(x)); }},
    {FunctionKind::kSqrt, "Sqrt", [](double x, double, double) { return std::sqrt(x); }},
    {FunctionKind::kTan, "Tan", [](double x, double, double) { return elementary::Tan(x); }, false},
    {FunctionKind::kThresholdedRelu,
     "ThresholdedRelu",
     [](double x, double alpha, double) { return x <= alpha ? 0 : x; },
     true,
     {"alpha", 1}},
};

const NamedFunction& Named(FunctionKind kind) {
  return *std::ranges::find(kFunctions, kind, &NamedFunction::kind);
}

// The functions that map integers to integers.
BuiltOp BuildOfIntegers(const NodeSpec& spec) {
  NodeWriter writer(spec);
  const std::string& x = writer.In(0);
  if (!IsInteger(spec.inputs[0].type)) Refuse(spec, "only numbers are supported");
  const std::string zero = writer.Constant(Tensor({}, Layout::Nchw(spec.inputs[0].type)));
  if (spec.op_type == "Neg") {
    writer.Add("Sub", {zero, x}, {}, writer.Out(0));
  } else if (spec.op_type == "Abs") {
    writer.Add("Max", {x, writer.Add("Sub", {zero, x})}, {}, writer.Out(0));
  } else if (spec.op_type == "Sign") {
    const auto is = [&](const char* relation) {
      return writer.Add("CastLike", {writer.Add(relation, {x, zero}), x});
    };
    writer.Add("Sub", {is("Greater"), is("Less")}, {}, writer.Out(0));
  } else {
    Refuse(spec, "integers are not supported");
  }
  return writer.Take();
}

BuiltOp BuildFunction(const NodeSpec& spec) {
  NeedInputs(spec, 1, 1);
  if (spec.inputs[0].type != DataType::kF32) return BuildOfIntegers(spec);
  const NamedFunction& named = *std::ranges::find(kFunctions, spec.op_type, &NamedFunction::name);
  Function function{named.kind};
  if (!named.alpha.name.empty()) function.alpha = spec.Float(named.alpha.name, named.alpha.fallback);
  if (!named.beta.name.empty()) function.beta = spec.Float(named.beta.name, named.beta.fallback);
  if (named.kind == FunctionKind::kGelu) {
    const std::string approximate = spec.String("approximate", "none");
    if (approximate == "tanh") {
      function.kind = FunctionKind::kGeluTanh;
    } else if (approximate != "none") {
      Refuse(spec, fmt::format("approximate is \"{}\", known are \"none\" and \"tanh\"", approximate));
    }
  }
  return BuiltWithInputs(std::make_shared<FunctionOp>(function), 1);
}

}  // namespace

double Apply(const Function& function, double x) {
  return Named(function.kind).apply(x, function.alpha, function.beta);
}

bool HasVectorFunction(FunctionKind kind) { return Named(kind).has_vectors; }

std::string_view FunctionOp::Type() const { return Named(function_.kind).name; }

std::string FunctionOp::Signature() const {
  const NamedFunction& named = Named(function_.kind);
  std::string text(named.name);
  if (!named.alpha.name.empty()) text += fmt::format(" {}", function_.alpha);
  if (!named.beta.name.empty()) text += fmt::format(" {}", function_.beta);
  return text;
}

Tensor FunctionOp::Reference(std::span<const Tensor* const> inputs) const {
  Tensor output(inputs[0]->shape());
  for (int64_t i = 0; i < output.size(); ++i)
    output.floats()[i] = static_cast<float>(Apply(function_, inputs[0]->floats()[i]));
  return output;
}

std::unique_ptr<Kernel> FunctionOp::MakeKernel(const KernelRequest& request) const {
  return MakeFunctionKernel(request, function_);
}

// One importer for each function.
std::vector<OpImporter> FunctionImporters() {
  std::vector<OpImporter> importers;
  for (const NamedFunction& function : kFunctions) {
    if (function.kind != FunctionKind::kGeluTanh) importers.push_back({function.name, BuildFunction});
  }
  return importers;
}

// Functions whose argument is reduced first promise a few ulp of that, too.
Tensor FunctionOp::RoundingBound(const OpRun& run) const {
  Tensor magnitudes = Absolute(run.output);
  const Tensor arguments = Absolute(*run.inputs[0]);
  for (int64_t i = 0; i < magnitudes.size(); ++i)
    magnitudes.floats()[i] += std::min(arguments.floats()[i], 1.0f);
  return BoundsOf(magnitudes, kFunctionRoundings);
}

std::vector<SavedOp> FunctionOps() { return {Saved<FunctionOp>("Function")}; }

}  // namespace tilesmith
