#include "ops/qdq/qdq_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <unordered_map>

#include "layouts/base/error.h"
#include "layouts/base/visible.h"
#include "ops/onnx/tensor_proto.h"

namespace tilesmith {
namespace {

constexpr std::string_view kWeighted[] = {"Conv", "ConvTranspose", "Gemm", "MatMul"};
constexpr std::string_view kComputing[] = {"Add",       "Mul",       "AveragePool", "GlobalAveragePool",
                                           "LeakyRelu", "Sigmoid",   "HardSigmoid", "HardSwish",
                                           "PRelu",     "ReduceMean"};
// Their outputs hold values of their inputs, or between those.
constexpr std::string_view kMoving[] = {"Concat",  "MaxPool", "GlobalMaxPool", "Resize",       "Reshape",
                                        "Flatten", "Squeeze", "Unsqueeze",     "Slice",        "Transpose",
                                        "Split",   "Expand",  "Tile",          "DepthToSpace", "SpaceToDepth",
                                        "Gather",  "Dropout", "Identity",      "Pad"};

bool IsOneOf(const onnx::NodeProto& node, std::span<const std::string_view> types) {
  return IsDefaultDomain(node) && std::ranges::find(types, node.op_type()) != types.end();
}

bool IsFinite(const Tensor& tensor) {
  return std::all_of(tensor.floats(), tensor.floats() + tensor.size(),
                     [](float v) { return std::isfinite(v); });
}

// Groups of tensors: a forest whose roots stand for them.
class TensorGroups {
 public:
  int Add(const std::string& tensor) {
    const auto [entry, added] = ids_.emplace(tensor, std::ssize(parents_));
    if (added) parents_.push_back(entry->second), names_.push_back(tensor);
    return entry->second;
  }
  bool Contains(const std::string& tensor) const { return ids_.contains(tensor); }
  void Join(const std::string& a, const std::string& b) { parents_[Root(Add(a))] = Root(Add(b)); }
  int Root(int id) {
    while (parents_[id] != id) id = parents_[id] = parents_[parents_[id]];
    return id;
  }
  const std::vector<std::string>& names() const { return names_; }

 private:
  std::unordered_map<std::string, int> ids_;
  std::vector<int> parents_;
  std::vector<std::string> names_;
};

class QdqPlanner {
 public:
  QdqPlanner(const onnx::GraphProto& graph, const std::string& source, const QdqOptions& options,
             const std::set<std::string>& unknown, const std::string& reason)
      : graph_(graph),
        source_(source),
        options_(options),
        unknown_(unknown),
        unknown_reason_(reason),
        index_(graph),
        asked_(options.keep.begin(), options.keep.end()) {
    CheckNames();
    if (options.keep_first) KeepFirst();
    if (options.keep_last) KeepLast();
  }

  QdqPlan Plan() {
    for (int i = graph_.node_size() - 1; i >= 0; --i) Visit(i);
    std::ranges::reverse(plan_.units);
    std::ranges::reverse(plan_.movers);
    std::ranges::reverse(plan_.kept);
    if (plan_.units.empty()) FailWithoutUnits();
    NumberGroups();
    return std::move(plan_);
  }

 private:
  [[noreturn]] void FailWithoutUnits() const {
    std::string why = "it has no Conv, ConvTranspose, Gemm or MatMul with constant weights";
    if (IsQuantized()) {
      why = "it is quantised already";
    } else if (!plan_.kept.empty()) {
      const KeptNode& first = plan_.kept.front();
      why = fmt::format("{} nodes stay float, the first \"{}\" ({}) since {}", plan_.kept.size(), first.name,
                        first.op_type, first.reason);
    }
    throw Error(ErrorCode::kBadModel, fmt::format("{}: nothing can be quantised: {}", source_, why));
  }

  // Its weights are bytes, or all of a convolution or product is in them.
  bool IsQuantized() const {
    return std::ranges::any_of(graph_.node(), [&](const onnx::NodeProto& node) {
      const std::string& type = node.op_type();
      return type.starts_with("QLinear") || type == "ConvInteger" || type == "MatMulInteger" ||
             (std::ranges::find(kWeighted, type) != std::end(kWeighted) && HasByteWeights(node));
    });
  }
  bool HasByteWeights(const onnx::NodeProto& node) const {
    const int producer = index_.Producer(InputOf(node, 1));
    return producer >= 0 && graph_.node(producer).op_type() == "DequantizeLinear";
  }

  void CheckNames() const {
    std::set<std::string> names;
    for (const onnx::NodeProto& node : graph_.node()) names.insert(NodeTitle(node));
    for (const std::string& name : options_.keep) {
      if (names.contains(name)) continue;
      throw Error(ErrorCode::kUsage, fmt::format("{}: no node \"{}\" to keep", source_, name));
    }
    std::vector<std::string_view> known;
    for (const auto& types : {std::span<const std::string_view>(kWeighted), {kComputing}, {kMoving}})
      known.insert(known.end(), types.begin(), types.end());
    for (const std::string& type : options_.op_types) {
      if (std::ranges::find(known, type) != known.end()) continue;
      throw Error(ErrorCode::kUsage, fmt::format("operator {} is not one that is quantised (those are: {})",
                                                 type, fmt::join(known, ", ")));
    }
  }

  // Convolutions and products that no other one is in front of: what they read comes from inputs alone.
  void KeepFirst() {
    std::set<std::string> behind;  // tensors
    for (const onnx::NodeProto& node : graph_.node()) {
      const bool weighted = HasWeights(node);
      const bool is_behind =
          std::ranges::any_of(node.input(), [&](const std::string& input) { return behind.contains(input); });
      if (weighted && !is_behind) asked_.insert(NodeTitle(node));
      if (weighted || is_behind) behind.insert(node.output().begin(), node.output().end());
    }
  }
  void KeepLast() {
    std::set<std::string> before;
    for (int i = graph_.node_size() - 1; i >= 0; --i) {
      const onnx::NodeProto& node = graph_.node(i);
      const bool weighted = HasWeights(node);
      const bool is_before = std::ranges::any_of(
          node.output(), [&](const std::string& output) { return before.contains(output); });
      if (weighted && !is_before) asked_.insert(NodeTitle(node));
      if (weighted || is_before) before.insert(node.input().begin(), node.input().end());
    }
  }
  bool HasWeights(const onnx::NodeProto& node) const {
    return IsOneOf(node, kWeighted) && index_.Constant(InputOf(node, 1)) != nullptr;
  }

  void Visit(int i) {
    const onnx::NodeProto& node = graph_.node(i);
    if (node.output_size() == 0 || node.output(0).empty()) return;
    if (node.op_type() == "Concat" && node.output_size() != 1) return;
    const bool weighted = IsOneOf(node, kWeighted);
    if (!weighted && !IsOneOf(node, kComputing) && !IsOneOf(node, kMoving)) return;
    QdqUnit unit = UnitOf(i);
    if (!weighted && !IsWanted(node, unit)) return;
    const std::string reason = weighted ? Refusal(node, unit) : CommonRefusal(node, unit);
    if (!reason.empty()) {
      plan_.kept.push_back({NodeTitle(node), node.op_type(), reason});
    } else if (weighted) {
      TakeWeighted(node, std::move(unit));
    } else if (IsOneOf(node, kComputing)) {
      for (const std::string& input : ActivationsOf(node, node.input_size())) tensors_.Add(input);
      plan_.units.push_back(std::move(unit));
    } else {
      TakeMoving(node, i);
    }
  }

  // A quantised node reads it, perhaps as a copy.
  bool IsWanted(const onnx::NodeProto& node, const QdqUnit& unit) const {
    if (IsOneOf(node, kComputing)) return tensors_.Contains(unit.output);
    return std::ranges::any_of(node.output(),
                               [&](const std::string& output) { return tensors_.Contains(output); });
  }

  void TakeWeighted(const onnx::NodeProto& node, QdqUnit unit) {
    unit.weighted = true;
    if (node.op_type() == "Conv") {
      unit.axis = 0;
    } else if (node.op_type() == "Gemm") {
      unit.axis = IntAttribute(node, "transB", 0) != 0 ? 0 : 1;
    } else if (node.op_type() == "ConvTranspose" || index_.Constant(node.input(1))->dims_size() == 2) {
      unit.axis = 1;
    }
    if (node.op_type().starts_with("Conv")) tensors_.Add(unit.output);
    tensors_.Add(node.input(0));
    plan_.units.push_back(std::move(unit));
  }

  void TakeMoving(const onnx::NodeProto& node, int i) {
    plan_.movers.push_back(i);
    const std::vector<std::string> inputs = ActivationsOf(node, DataInputs(node));
    for (const std::string& output : node.output()) {
      if (!tensors_.Contains(output)) continue;
      for (const std::string& input : inputs) tensors_.Join(input, output);
    }
  }

  static int DataInputs(const onnx::NodeProto& node) {
    return node.op_type() == "Concat" ? node.input_size() : 1;
  }

  // The first `count` inputs without constants.
  std::vector<std::string> ActivationsOf(const onnx::NodeProto& node, int count) const {
    std::vector<std::string> activations;
    for (int slot = 0; slot < std::min(count, node.input_size()); ++slot) {
      const std::string& input = node.input(slot);
      if (!input.empty() && index_.Constant(input) == nullptr) activations.push_back(input);
    }
    return activations;
  }

  QdqUnit UnitOf(int i) const {
    const onnx::NodeProto& node = graph_.node(i);
    QdqUnit unit{.node = i, .output = node.output(0)};
    const int reader = index_.OnlyReader(unit.output);
    if (IsOneOf(node, kMoving) || reader <= i) return unit;
    const onnx::NodeProto& behind = graph_.node(reader);
    const bool is_clip = behind.op_type() == "Clip";
    if (!IsDefaultDomain(behind) || (behind.op_type() != "Relu" && !is_clip)) return unit;
    for (int slot = 1; slot < behind.input_size(); ++slot) {
      if (!behind.input(slot).empty() && index_.Constant(behind.input(slot)) == nullptr) return unit;
    }
    if (behind.output_size() != 1 || behind.input(0) != unit.output) return unit;
    unit.activation = reader;
    unit.output = behind.output(0);
    return unit;
  }

  // Why a node of any kind stays float; "" where it need not.
  std::string CommonRefusal(const onnx::NodeProto& node, const QdqUnit& unit) const {
    if (asked_.contains(NodeTitle(node))) return "it is to be kept";
    if (!options_.op_types.empty() &&
        std::ranges::find(options_.op_types, node.op_type()) == options_.op_types.end())
      return "its operator is not to be quantised";
    for (const std::string& input : node.input()) {
      if (unknown_.contains(input)) return unknown_reason_;
    }
    if (unknown_.contains(unit.output)) return unknown_reason_;
    if (node.op_type() == "Resize" && IsCubic(node)) return "cubic interpolation overshoots";
    if (node.op_type() == "Pad" && !PadsWithinRange(node)) return "it pads with another number than 0";
    if (node.op_type() == "Add" || node.op_type() == "Mul" || node.op_type() == "Concat") {
      for (const std::string& input : node.input()) {
        if (index_.Constant(input) != nullptr && !IsUsable(input)) return "its constant is no finite float32";
      }
    }
    return "";
  }

  static bool IsCubic(const onnx::NodeProto& node) {
    const onnx::AttributeProto* mode = FindAttribute(node, "mode");
    return mode != nullptr && mode->s() == "cubic";
  }

  bool PadsWithinRange(const onnx::NodeProto& node) const {
    const onnx::AttributeProto* mode = FindAttribute(node, "mode");
    const std::string value = InputOf(node, 2);
    if ((mode != nullptr && mode->s() != "constant") || value.empty()) return true;
    const std::optional<Tensor> tensor = Floats(value);
    return tensor && tensor->size() == 1 && tensor->floats()[0] == 0;
  }

  std::optional<Tensor> Floats(const std::string& name) const {
    const onnx::TensorProto* proto = FloatConstant(index_, name);
    if (proto == nullptr) return std::nullopt;
    return TensorFromProto(*proto, fmt::format("{}: \"{}\"", source_, name));
  }
  bool IsUsable(const std::string& name) const {
    const std::optional<Tensor> values = Floats(name);
    return values && values->size() > 0 && IsFinite(*values);
  }

  std::string Refusal(const onnx::NodeProto& node, const QdqUnit& unit) const {
    if (node.input_size() < 2 || index_.Constant(node.input(0)) != nullptr) return "it multiplies a constant";
    if (HasByteWeights(node)) return "it is quantised already";
    if (index_.Constant(node.input(1)) == nullptr) return "its weights are no constants";
    if (FloatConstant(index_, node.input(1)) == nullptr) return "its weights are not float32";
    std::string reason = CommonRefusal(node, unit);
    if (!reason.empty()) return reason;
    if (!IsUsable(node.input(1))) return "its weights are not finite";
    const onnx::TensorProto& weights = *index_.Constant(node.input(1));
    const bool is_gemm = node.op_type() == "Gemm", is_conv = node.op_type().starts_with("Conv");
    if ((is_conv && weights.dims_size() < 3) || (is_gemm && weights.dims_size() != 2))
      return "its weights have another rank";
    if (is_gemm && !(FloatAttribute(node, "alpha", 1) > 0)) return "its alpha is not above 0";
    return BiasRefusal(node, weights);
  }

  std::string BiasRefusal(const onnx::NodeProto& node, const onnx::TensorProto& weights) const {
    const std::string name = InputOf(node, 2);
    if (name.empty() || node.op_type() == "MatMul") return "";
    const std::optional<Tensor> bias = Floats(name);
    if (!bias || !IsFinite(*bias)) return "its bias is no constant of finite float32";
    Checked channels = 1;
    if (node.op_type() == "Gemm") {
      channels = weights.dims(IntAttribute(node, "transB", 0) != 0 ? 0 : 1);
    } else if (node.op_type() == "Conv") {
      channels = weights.dims(0);
    } else {
      channels = Checked(weights.dims(1)) * IntAttribute(node, "group", 1);
    }
    const bool is_row = bias->shape().size() == 1 || (bias->shape().size() == 2 && bias->shape()[0] == 1);
    return is_row && bias->size() == channels.value() ? "" : "its bias is not one value per channel";
  }

  void NumberGroups() {
    std::unordered_map<int, int> numbers;
    for (size_t id = 0; id < tensors_.names().size(); ++id) {
      const auto number = static_cast<int>(numbers.size());
      plan_.tensors.push_back(
          {tensors_.names()[id], numbers.emplace(tensors_.Root(static_cast<int>(id)), number).first->second});
    }
    plan_.groups.resize(numbers.size());
    for (const int mover : plan_.movers) {
      const onnx::NodeProto& node = graph_.node(mover);
      if (node.op_type() != "Concat") continue;
      ValueEnds& ends = plan_.groups[numbers.at(tensors_.Root(tensors_.Add(node.output(0))))];
      for (const std::string& input : node.input()) {
        if (const std::optional<Tensor> values = Floats(input))
          ends.Add(std::span(values->floats(), static_cast<size_t>(values->size())));
      }
    }
  }

  const onnx::GraphProto& graph_;
  const std::string& source_;
  const QdqOptions& options_;
  const std::set<std::string>& unknown_;
  const std::string& unknown_reason_;
  const ProtoIndex index_;
  std::set<std::string> asked_;
  TensorGroups tensors_;
  QdqPlan plan_;
};

}  // namespace

std::string NodeTitle(const onnx::NodeProto& node) {
  return VisibleLine(node.name().empty() && node.output_size() > 0 ? node.output(0) : node.name());
}

const onnx::TensorProto* FloatConstant(const ProtoIndex& index, const std::string& tensor) {
  const onnx::TensorProto* proto = index.Constant(tensor);
  return proto != nullptr && proto->data_type() == onnx::TensorProto::FLOAT ? proto : nullptr;
}

QdqPlan MakeQdqPlan(const onnx::GraphProto& graph, const std::string& source, const QdqOptions& options,
                    const std::set<std::string>& unknown, const std::string& reason) {
  return QdqPlanner(graph, source, options, unknown, reason).Plan();
}

}  // namespace tilesmith
