#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>

#include "ops/base/broadcast.h"
#include "ops/base/op.h"
#include "ops/elementwise/activations.h"
#include "ops/elementwise/batch_norm.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/functions.h"
#include "ops/movement/indexing.h"
#include "ops/passes/pass_util.h"
#include "ops/passes/passes.h"
#include "ops/reduce/normalization.h"
#include "ops/reduce/reduce.h"

namespace tilesmith {
namespace {

using NodeId = Graph::NodeId;

constexpr double kRounding = 1e-5;  // exporters write constants with six digits or more
constexpr int kMaxDepth = 8;        // nodes between a formula's beginning and its end

bool IsClose(double a, double b) { return std::abs(a - b) <= kRounding * std::abs(b); }

bool IsFunction(const Graph& graph, NodeId id, FunctionKind kind) {
  const FunctionOp* op = graph.As<FunctionOp>(id);
  return op != nullptr && op->function().kind == kind;
}

const Tensor* ConstantAt(const Graph& graph, NodeId id) {
  const ConstantOp* op = graph.As<ConstantOp>(id);
  return op != nullptr && op->value()->type() == DataType::kF32 ? op->value().get() : nullptr;
}

struct UniformAffine {
  double scale = 1, shift = 0;
};
// What a ScaleShift does to all channels alike.
std::optional<UniformAffine> UniformAt(const Graph& graph, NodeId id) {
  const ScaleShiftOp* op = graph.As<ScaleShiftOp>(id);
  if (op == nullptr || op->activation().kind != ActivationKind::kNone || op->scale().empty())
    return std::nullopt;
  const auto differs = [](const std::vector<float>& values) {
    return std::ranges::any_of(values, [&](float value) { return value != values[0]; });
  };
  if (differs(op->scale()) || differs(op->shift())) return std::nullopt;
  return UniformAffine{op->scale()[0], op->shift()[0]};
}

// Coefficients of a polynomial, that of x^i at i.
using Cubic = std::array<double, 4>;

std::optional<Cubic> Product(const Cubic& a, const Cubic& b) {
  Cubic product{};
  for (size_t i = 0; i < a.size(); ++i) {
    for (size_t j = 0; j < b.size(); ++j) {
      const double term = a[i] * b[j];
      if (term == 0) continue;
      if (i + j >= product.size()) return std::nullopt;
      product[i + j] += term;
    }
  }
  return product;
}

// The node as a polynomial of `root`, where it is one of at most the third degree.
std::optional<Cubic> PolynomialOf(const Graph& graph, NodeId id, NodeId root, int depth = kMaxDepth) {
  if (id == root) return Cubic{0, 1, 0, 0};
  if (depth == 0 || id < root) return std::nullopt;
  if (const auto affine = UniformAt(graph, id)) {
    auto inner = PolynomialOf(graph, graph.Inputs(id)[0], root, depth - 1);
    if (!inner) return std::nullopt;
    for (double& coefficient : *inner) coefficient *= affine->scale;
    (*inner)[0] += affine->shift;
    return inner;
  }
  if (IsBinary(graph, id, BinaryKind::kPow)) {
    const Tensor* exponent = ConstantAt(graph, graph.Inputs(id)[1]);
    const bool cubed = exponent != nullptr && exponent->size() == 1 && exponent->floats()[0] == 3;
    const auto base = cubed ? PolynomialOf(graph, graph.Inputs(id)[0], root, depth - 1) : std::nullopt;
    const auto square = base ? Product(*base, *base) : std::nullopt;
    return square ? Product(*square, *base) : std::nullopt;
  }
  const bool adds = IsBinary(graph, id, BinaryKind::kAdd);
  if (!adds && !IsBinary(graph, id, BinaryKind::kMul)) return std::nullopt;
  const auto a = PolynomialOf(graph, graph.Inputs(id)[0], root, depth - 1);
  const auto b = a ? PolynomialOf(graph, graph.Inputs(id)[1], root, depth - 1) : std::nullopt;
  if (!b) return std::nullopt;
  if (!adds) return Product(*a, *b);
  Cubic sum = *a;
  for (size_t i = 0; i < sum.size(); ++i) sum[i] += (*b)[i];
  return sum;
}

// factor * kind(source)
struct RecognizedCall {
  NodeId source = 0;
  FunctionKind kind = FunctionKind::kGelu;
  double factor = 1;
};

// The function f for which x (1 + gate(x)) / 2 is f(x), or x gate(x) for Mish.
std::optional<FunctionKind> GatedBy(const Graph& graph, NodeId gate, NodeId root) {
  const NodeId argument = graph.Inputs(gate)[0];
  if (IsFunction(graph, gate, FunctionKind::kErf)) {
    const auto line = PolynomialOf(graph, argument, root);
    const bool matches = line && (*line)[0] == 0 && (*line)[2] == 0 && (*line)[3] == 0 &&
                         IsClose((*line)[1], std::numbers::sqrt2 / 2);
    return matches ? std::optional(FunctionKind::kGelu) : std::nullopt;
  }
  const ActivationOp* activation = graph.As<ActivationOp>(gate);
  if (activation == nullptr || activation->activation().kind != ActivationKind::kTanh) return std::nullopt;
  if (IsFunction(graph, argument, FunctionKind::kSoftplus) && graph.Inputs(argument)[0] == root) {
    return FunctionKind::kMish;
  }
  const auto cubic = PolynomialOf(graph, argument, root);
  const double slope = std::sqrt(2 / std::numbers::pi);
  const bool matches = cubic && (*cubic)[0] == 0 && (*cubic)[2] == 0 && IsClose((*cubic)[1], slope) &&
                       IsClose((*cubic)[3], slope * 0.044715);
  return matches ? std::optional(FunctionKind::kGeluTanh) : std::nullopt;
}

// `side` as a multiple of an earlier node, `gated` as an affine function of a gate of that node.
std::optional<RecognizedCall> CallOf(const Graph& graph, NodeId side, NodeId gated) {
  UniformAffine outer;
  NodeId gate = gated;
  for (int depth = 0; depth < kMaxDepth; ++depth) {
    const auto affine = UniformAt(graph, gate);
    if (!affine) break;
    outer = {outer.scale * affine->scale, outer.shift + outer.scale * affine->shift};
    gate = graph.Inputs(gate)[0];
  }
  if (graph.Inputs(gate).size() != 1) return std::nullopt;
  double factor = 1;
  for (int depth = 0; depth < kMaxDepth; ++depth) {
    if (const auto kind = GatedBy(graph, gate, side)) {
      if (*kind == FunctionKind::kMish && outer.shift == 0)
        return RecognizedCall{side, *kind, factor * outer.scale};
      if (*kind != FunctionKind::kMish && IsClose(outer.shift, outer.scale)) {
        return RecognizedCall{side, *kind, 2 * factor * outer.scale};
      }
    }
    const auto affine = UniformAt(graph, side);
    if (!affine || affine->shift != 0) break;
    factor *= affine->scale;
    side = graph.Inputs(side)[0];
  }
  return std::nullopt;
}

std::optional<RecognizedCall> CallAt(const Graph& graph, NodeId id) {
  if (!IsBinary(graph, id, BinaryKind::kMul)) return std::nullopt;
  const std::vector<NodeId> inputs = graph.Inputs(id);
  for (const size_t side : {size_t{0}, size_t{1}}) {
    const auto call = CallOf(graph, inputs[side], inputs[1 - side]);
    if (call && graph.node(id).shape.size() >= 2) return call;
  }
  return std::nullopt;
}

// What a node is reduced from over the last axes, which stay as 1.
struct ReducedOverLast {
  NodeId of = 0;
  std::vector<int64_t> axes;
};
std::optional<ReducedOverLast> ReducedAt(const Graph& graph, NodeId id, ReduceKind kind) {
  const ReduceOp* op = graph.As<ReduceOp>(id);
  if (op == nullptr || op->kind() != kind || !op->keep_dims() || op->axes().empty()) return std::nullopt;
  const NodeId of = graph.Inputs(id)[0];
  const auto rank = static_cast<int64_t>(graph.node(of).shape.size());
  for (size_t i = 0; i < op->axes().size(); ++i) {
    if (op->axes()[i] != rank - static_cast<int64_t>(op->axes().size() - i)) return std::nullopt;
  }
  return ReducedOverLast{of, op->axes()};
}

// A normalization over the last axes, written out.
struct WrittenNormalization {
  const char* type = nullptr;  // ONNX's name
  NodeId source = 0;
  Normalization normalization;
};

// (x - mean) / sqrt(mean((x - mean)^2) + epsilon)
std::optional<WrittenNormalization> NormalizationAt(const Graph& graph, NodeId id) {
  if (!IsBinary(graph, id, BinaryKind::kDiv)) return std::nullopt;
  const NodeId centered = graph.Inputs(id)[0], root = graph.Inputs(id)[1];
  if (!IsBinary(graph, centered, BinaryKind::kSub)) return std::nullopt;
  const NodeId x = graph.Inputs(centered)[0];
  const auto mean = ReducedAt(graph, graph.Inputs(centered)[1], ReduceKind::kMean);
  if (!mean || mean->of != x || !IsFunction(graph, root, FunctionKind::kSqrt)) return std::nullopt;
  const NodeId sum = graph.Inputs(root)[0];
  const auto affine = UniformAt(graph, sum);
  if (!affine || affine->scale != 1 || affine->shift < 0) return std::nullopt;
  const auto variance = ReducedAt(graph, graph.Inputs(sum)[0], ReduceKind::kMean);
  if (!variance || variance->axes != mean->axes || !IsBinary(graph, variance->of, BinaryKind::kMul)) {
    return std::nullopt;
  }
  // Two differences, where the exporter did not share them.
  for (const NodeId factor : graph.Inputs(variance->of)) {
    const bool same = factor == centered || (IsBinary(graph, factor, BinaryKind::kSub) &&
                                             graph.Inputs(factor) == graph.Inputs(centered));
    if (!same) return std::nullopt;
  }
  Normalization normalization;
  normalization.epsilon = static_cast<float>(affine->shift);
  normalization.axes = mean->axes;
  return WrittenNormalization{"LayerNormalization", x, std::move(normalization)};
}

// x / max(norm, epsilon), the quotient's second operand expanded to x's shape or left to broadcasting.
std::optional<WrittenNormalization> DivisionByNormAt(const Graph& graph, NodeId id) {
  if (!IsBinary(graph, id, BinaryKind::kDiv)) return std::nullopt;
  const NodeId x = graph.Inputs(id)[0];
  NodeId norm = graph.Inputs(id)[1];
  if (graph.node(x).shape != graph.node(id).shape) return std::nullopt;
  if (graph.As<ExpandOp>(norm) != nullptr) norm = graph.Inputs(norm)[0];
  const ActivationOp* clip = graph.As<ActivationOp>(norm);
  if (clip == nullptr || clip->activation().kind != ActivationKind::kClip) return std::nullopt;
  const auto [least, most] = std::pair(clip->activation().alpha, clip->activation().beta);
  if (!(least > 0) || most < std::numeric_limits<float>::max()) return std::nullopt;
  for (const auto& [kind, spread] :
       {std::pair(ReduceKind::kL2, Spread::kL2), std::pair(ReduceKind::kL1, Spread::kL1)}) {
    const auto reduced = ReducedAt(graph, graph.Inputs(norm)[0], kind);
    if (!reduced || reduced->of != x) continue;
    Normalization normalization;
    normalization.spread = spread;
    normalization.epsilon = least;
    normalization.axes = reduced->axes;
    return WrittenNormalization{"LpNormalization", x, std::move(normalization)};
  }
  return std::nullopt;
}

// The constant operand of a product or sum, as one value for each element of the last dimensions `together`;
// empty where it is not constant, or not of them alone.
std::vector<float> ConstantOver(const Graph& graph, NodeId id, const Shape& together) {
  const Tensor* constant = ConstantAt(graph, id);
  if (constant == nullptr) return {};
  Shape shape = constant->shape();
  while (shape.size() > together.size() && shape[0] == 1) shape.erase(shape.begin());
  if (BroadcastShapes(shape, together) != together) return {};
  std::vector<float> values;
  for (const int64_t i : BroadcastIndices(shape, together)) values.push_back(constant->floats()[i]);
  return values;
}

// Normalization, then perhaps a product with a constant, and then perhaps a sum with one.
std::optional<WrittenNormalization> NormalizationBehind(const Graph& graph, NodeId id) {
  std::vector<float> shift, scale;
  const auto peel = [&](BinaryKind kind, std::vector<float>& values) {
    if (!IsBinary(graph, id, kind) || graph.node(id).shape.empty()) return false;
    const std::vector<NodeId> inputs = graph.Inputs(id);
    for (const size_t slot : {size_t{1}, size_t{0}}) {
      const NodeId inner = inputs[1 - slot];
      const Shape& shape = graph.node(id).shape;
      if (ConstantAt(graph, inputs[slot]) == nullptr || graph.node(inner).shape != shape) continue;
      // Over as many of the last axes as it needs; NormalizationAt says whether that fits.
      Shape together = shape;
      together.erase(together.begin(), together.end() - 1);
      values = ConstantOver(graph, inputs[slot], together);
      if (values.empty()) return false;
      id = inner;
      return true;
    }
    return false;
  };
  const bool shifted = peel(BinaryKind::kAdd, shift), scaled = peel(BinaryKind::kMul, scale);
  auto found = NormalizationAt(graph, id);
  if (!found || (!shifted && !scaled)) return found;
  if (found->normalization.axes.size() != 1) return std::nullopt;
  const size_t count = graph.node(id).shape.back();
  if (!scaled) scale.assign(count, 1.0f);
  if (!shifted) shift.assign(count, 0.0f);
  found->normalization.scale = std::move(scale);
  found->normalization.shift = std::move(shift);
  found->normalization.by_element = true;
  return found;
}

}  // namespace

Graph RecognizeFunctions(const Graph& graph) {
  std::vector<NodeId> mapped(graph.size());  // nodes that others read, in the result
  return RewriteGraph(
      graph, [&](NodeId id, const std::vector<NodeId>& inputs, Graph& result) -> std::optional<NodeId> {
        const std::vector<NodeId> sources = graph.Inputs(id);
        for (size_t slot = 0; slot < sources.size(); ++slot) mapped[sources[slot]] = inputs[slot];
        const std::string& name = graph.node(id).name;
        std::optional<WrittenNormalization> written = NormalizationBehind(graph, id);
        if (!written) written = DivisionByNormAt(graph, id);
        if (written) {
          auto op = std::make_shared<NormalizationOp>(written->type, std::move(written->normalization));
          return result.Add(name, std::move(op), {mapped[written->source]});
        }
        const auto call = CallAt(graph, id);
        if (!call) return std::nullopt;
        auto function = std::make_shared<FunctionOp>(Function{call->kind});
        const auto factor = static_cast<float>(call->factor);
        if (std::abs(factor - 1) <= kRounding)
          return result.Add(name, std::move(function), {mapped[call->source]});
        const size_t channels = graph.node(id).shape[1];
        const NodeId value = result.Add(name + ".function", std::move(function), {mapped[call->source]});
        return result.Add(name,
                          std::make_shared<ScaleShiftOp>(std::vector<float>(channels, factor),
                                                         std::vector<float>(channels, 0.0f)),
                          {value});
      });
}

namespace {

// The product of `source` with this node is factor * kind(source).
struct Gate {
  NodeId source = 0;
  ActivationKind kind = ActivationKind::kNone;
  double factor = 1;
};

bool IsUniform(const ScaleShiftOp* op, float scale, float shift) {
  return op != nullptr && op->activation().kind == ActivationKind::kNone && Common(op->scale()) == scale &&
         Common(op->shift()) == shift;
}

// Exporters round 1/6 to some seven digits.
bool IsHardSwishGate(const Activation& gate) {
  return gate.kind == ActivationKind::kHardSigmoid && std::abs(gate.alpha - 1.0f / 6) <= 0x1p-23f &&
         gate.beta == 0.5f;
}

// For clip(x + 3, 0, 6), which is six times the gate of HardSwish, what x is.
std::optional<NodeId> SourceOfClip(const Graph& graph, NodeId id) {
  const ActivationOp* clip = graph.As<ActivationOp>(id);
  if (clip == nullptr || clip->activation() != Activation{ActivationKind::kClip, 0, 6}) return std::nullopt;
  const NodeId sum = graph.Inputs(id)[0];
  if (!IsUniform(graph.As<ScaleShiftOp>(sum), 1, 3)) return std::nullopt;
  return graph.Inputs(sum)[0];
}

std::optional<Gate> GateOf(const Graph& graph, NodeId id) {
  double factor = 1;
  if (const ScaleShiftOp* scale = graph.As<ScaleShiftOp>(id)) {
    factor = Common(scale->scale()).value_or(0);
    if (!IsUniform(scale, static_cast<float>(factor), 0)) return std::nullopt;
    id = graph.Inputs(id)[0];
  }
  if (const auto source = SourceOfClip(graph, id)) {
    return Gate{*source, ActivationKind::kHardSwish, 6 * factor};
  }
  const ActivationOp* op = graph.As<ActivationOp>(id);
  if (op == nullptr) return std::nullopt;
  if (op->activation().kind == ActivationKind::kSigmoid) {
    return Gate{graph.Inputs(id)[0], ActivationKind::kSilu, factor};
  }
  if (IsHardSwishGate(op->activation())) {
    return Gate{graph.Inputs(id)[0], ActivationKind::kHardSwish, factor};
  }
  return std::nullopt;
}

// A product of a tensor and its own gate, the tensor being input `slot`.
struct GatedProduct {
  Gate gate;
  size_t slot = 0;
};

std::optional<GatedProduct> GatedProductOf(const Graph& graph, NodeId id) {
  const BinaryOp* product = graph.As<BinaryOp>(id);
  if (product == nullptr || product->kind() != BinaryKind::kMul) return std::nullopt;
  if (graph.node(id).shape.size() < 2) return std::nullopt;
  const std::vector<NodeId> inputs = graph.Inputs(id);
  for (const size_t slot : {size_t{0}, size_t{1}}) {
    const std::optional<Gate> gate = GateOf(graph, inputs[1 - slot]);
    if (gate && gate->source == inputs[slot]) return GatedProduct{*gate, slot};
  }
  return std::nullopt;
}

}  // namespace

Graph RecognizeGates(const Graph& graph) {
  return RewriteGraph(
      graph, [&](NodeId id, const std::vector<NodeId>& inputs, Graph& result) -> std::optional<NodeId> {
        const std::optional<GatedProduct> product = GatedProductOf(graph, id);
        if (!product) return std::nullopt;
        const Node& node = graph.node(id);
        const auto factor = static_cast<float>(product->gate.factor);
        auto activation = std::make_shared<ActivationOp>(Activation{product->gate.kind});
        const NodeId x = inputs[product->slot];
        if (factor == 1) return result.Add(node.name, std::move(activation), {x});
        const size_t channels = node.shape[1];
        auto scale = std::make_shared<ScaleShiftOp>(std::vector<float>(channels, factor),
                                                    std::vector<float>(channels, 0.0f));
        return result.Add(node.name, std::move(scale),
                          {result.Add(node.name + ".gated", std::move(activation), {x})});
      });
}

namespace {

// x + x * gate
struct GatedSum {
  NodeId product = 0;
  size_t x = 0, gate = 0;  // inputs of the product
};

std::optional<GatedSum> GatedSumOf(const Graph& graph, NodeId id) {
  if (!IsBinary(graph, id, BinaryKind::kAdd)) return std::nullopt;
  const std::vector<NodeId> terms = graph.Inputs(id);
  for (const size_t slot : {size_t{0}, size_t{1}}) {
    const NodeId x = terms[slot], product = terms[1 - slot];
    if (!IsBinary(graph, product, BinaryKind::kMul) || !UsedOnce(graph, product)) continue;
    const Shape& shape = graph.node(x).shape;
    if (shape.size() != 4) continue;
    const std::vector<NodeId> factors = graph.Inputs(product);
    for (const size_t gate : {size_t{0}, size_t{1}}) {
      const bool per_channel = graph.node(factors[gate]).shape == Shape{shape[0], shape[1], 1, 1};
      if (factors[1 - gate] == x && per_channel) return GatedSum{product, 1 - gate, gate};
    }
  }
  return std::nullopt;
}

}  // namespace

Graph MergeGatedSums(const Graph& graph) {
  std::vector<std::vector<NodeId>> mapped(graph.size());  // the inputs, in the result
  return RewriteGraph(
      graph, [&](NodeId id, const std::vector<NodeId>& inputs, Graph& result) -> std::optional<NodeId> {
        mapped[id] = inputs;
        const std::optional<GatedSum> sum = GatedSumOf(graph, id);
        if (!sum) return std::nullopt;
        const std::vector<NodeId>& factors = mapped[sum->product];
        const std::vector<float> ones(graph.node(id).shape[1], 1.0f);
        const NodeId gate = result.Add(graph.node(sum->product).name + ".plus_one",
                                       std::make_shared<ScaleShiftOp>(ones, ones), {factors[sum->gate]});
        return result.Add(graph.node(id).name, std::make_shared<BinaryOp>(BinaryKind::kMul),
                          {factors[sum->x], gate});
      });
}

}  // namespace tilesmith
