#include "ops/contrib/contrib.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "ops/base/import_util.h"
#include "ops/base/node_writer.h"

namespace tilesmith {
namespace {

// x behind the activation that the node names; parameters as the fused operators have them, in one list or
// by their names.
void Activate(const NodeSpec& spec, NodeWriter& writer, const std::string& x) {
  const std::string kind = spec.String("activation", "");
  std::vector<float> values = spec.Floats("activation_params", {});
  for (const char* name : {"activation_alpha", "activation_beta"}) {
    if (spec.Has(name)) values.push_back(spec.Float(name, 0));
  }
  const auto need = [&](size_t count) {
    if (values.size() != count) {
      Refuse(spec, fmt::format("{} parameters of the activation \"{}\"", values.size(), kind));
    }
  };
  if (kind.empty()) {
    writer.Add("Identity", {x}, {}, writer.Out(0));
  } else if (kind == "Relu" || kind == "Sigmoid" || kind == "Tanh" || kind == "HardSwish") {
    writer.Add(kind, {x}, {}, writer.Out(0));
  } else if (kind == "LeakyRelu") {
    need(1);
    writer.Add(kind, {x}, {{"alpha", values[0]}}, writer.Out(0));
  } else if (kind == "HardSigmoid") {
    need(2);
    writer.Add(kind, {x}, {{"alpha", values[0]}, {"beta", values[1]}}, writer.Out(0));
  } else if (kind == "Clip") {
    need(2);
    writer.Add(kind, {x, writer.Float(values[0]), writer.Float(values[1])}, {}, writer.Out(0));
  } else {
    Refuse(spec, fmt::format("the activation \"{}\" is not supported", kind));
  }
}

Attributes Without(Attributes attributes, std::string_view prefix) {
  std::erase_if(attributes, [prefix](const auto& attribute) { return attribute.first.starts_with(prefix); });
  return attributes;
}

// Inputs: data, weights, bias, and what is added.
BuiltOp BuildFusedConv(const NodeSpec& spec) {
  NeedInputs(spec, 2, 4);
  NodeWriter writer(spec);
  std::vector<std::string> inputs = {writer.In(0), writer.In(1)};
  if (spec.HasInput(2)) inputs.push_back(writer.In(2));
  std::string x = writer.Add("Conv", inputs, Without(spec.attributes, "activation"));
  if (spec.HasInput(3)) x = writer.Add("Add", {x, writer.In(3)});
  Activate(spec, writer, x);
  return writer.Take();
}

BuiltOp BuildFusedGemm(const NodeSpec& spec) {
  NeedInputs(spec, 2, 3);
  NodeWriter writer(spec);
  Activate(spec, writer, writer.Add("Gemm", spec.input_names, Without(spec.attributes, "activation")));
  return writer.Take();
}

// The last two axes exchanged, or, of a batch, the first moved behind all but the last.
std::string Transposed(const NodeSpec& spec, NodeWriter& writer, size_t index, const char* suffix) {
  const int64_t rank = std::ssize(spec.inputs[index].shape);
  const std::string name = index == 0 ? "transA" : "transB", batch = std::string("transBatch") + suffix;
  std::vector<int64_t> perm(rank);
  std::iota(perm.begin(), perm.end(), 0);
  if (spec.Int(batch, 0) != 0 && rank > 2) std::rotate(perm.begin(), perm.begin() + 1, perm.end() - 1);
  if (spec.Int(name, 0) != 0 && rank > 1) std::swap(perm[rank - 2], perm[rank - 1]);
  if (std::ranges::is_sorted(perm)) return writer.In(index);
  return writer.Transpose(writer.In(index), perm);
}

BuiltOp BuildFusedMatMul(const NodeSpec& spec) {
  NeedInputs(spec, 2, 2);
  NodeWriter writer(spec);
  const std::string a = Transposed(spec, writer, 0, "A"), b = Transposed(spec, writer, 1, "B");
  const float alpha = spec.Float("alpha", 1);
  if (alpha == 1) {
    writer.Add("MatMul", {a, b}, {}, writer.Out(0));
  } else {
    writer.Add("Mul", {writer.Add("MatMul", {a, b}), writer.Float(alpha)}, {}, writer.Out(0));
  }
  return writer.Take();
}

// Gelu of x, or of x + bias.
BuiltOp BuildGelu(const NodeSpec& spec, const std::string& approximate) {
  NeedInputs(spec, 1, 2);
  NodeWriter writer(spec);
  const std::string x = spec.HasInput(1) ? writer.Add("Add", {writer.In(0), writer.In(1)}) : writer.In(0);
  writer.Add("Gelu", {x}, {{"approximate", approximate}}, writer.Out(0));
  return writer.Take();
}

// x * sigmoid(alpha x)
BuiltOp BuildQuickGelu(const NodeSpec& spec) {
  NeedInputs(spec, 1, 1);
  NodeWriter writer(spec);
  const std::string scaled = writer.Add("Mul", {writer.In(0), writer.Float(spec.Float("alpha", 1.702f))});
  writer.Add("Mul", {writer.In(0), writer.Add("Sigmoid", {scaled})}, {}, writer.Out(0));
  return writer.Take();
}

// Inputs: x, what skips, scale, shift, bias of x. Outputs: the normalized sum, and as the fourth the sum.
BuiltOp BuildSkipLayerNorm(const NodeSpec& spec) {
  NeedInputs(spec, 3, 5);
  NodeWriter writer(spec);
  std::string x = writer.In(0);
  if (spec.HasInput(4)) x = writer.Add("Add", {x, writer.In(4)});
  const bool wants_sum = spec.output_names.size() > 3 && !writer.Out(3).empty();
  x = writer.Add("Add", {x, writer.In(1)}, {}, wants_sum ? writer.Out(3) : "");
  std::vector<std::string> inputs = {x, writer.In(2)};
  if (spec.HasInput(3)) inputs.push_back(writer.In(3));
  writer.Add("LayerNormalization", inputs, {{"epsilon", spec.Float("epsilon", 1e-12f)}}, writer.Out(0));
  return writer.Take();
}

}  // namespace

std::vector<OpImporter> ContribImporters() {
  return {{"com.microsoft.FusedConv", BuildFusedConv},
          {"com.microsoft.FusedGemm", BuildFusedGemm},
          {"com.microsoft.FusedMatMul", BuildFusedMatMul},
          {"com.microsoft.TransposeMatMul", BuildFusedMatMul},
          {"com.microsoft.Gelu", [](const NodeSpec& spec) { return BuildGelu(spec, "none"); }},
          {"com.microsoft.BiasGelu", [](const NodeSpec& spec) { return BuildGelu(spec, "none"); }},
          {"com.microsoft.FastGelu", [](const NodeSpec& spec) { return BuildGelu(spec, "tanh"); }},
          {"com.microsoft.QuickGelu", BuildQuickGelu},
          {"com.microsoft.SkipLayerNormalization", BuildSkipLayerNorm}};
}

}  // namespace tilesmith
