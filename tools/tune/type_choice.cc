#include "tools/tune/type_choice.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>

#include "graph_tuner/solvers/solver.h"
#include "layouts/base/check.h"

namespace tilesmith {
namespace {

using NodeId = Graph::NodeId;

enum Type { kFloat, kBytes, kTypes };

// A plan's seconds by node, what a tensor's conversions of layout take counted with the node that makes it.
template <typename NameOf>
std::map<std::string, double> SecondsByNode(const Plan& plan, const NameOf& name_of) {
  std::map<std::string, double> seconds;
  for (const NodePlan& node : plan.nodes) seconds[name_of(node.node)] += node.predicted_seconds;
  for (const TransformPlan& transform : plan.transforms)
    seconds[name_of(transform.tensor)] += transform.predicted_seconds;
  return seconds;
}

// The mean of all conversions that are nodes of their own; what reading memory takes where there are none.
double SecondsPerElement(const Graph& graph, const Plan& plan, std::string_view type) {
  constexpr double kGuessed = 0.2e-9;
  double seconds = 0;
  int64_t elements = 0;
  for (const NodePlan& node : plan.nodes) {
    if (node.op_type != type) continue;
    const std::optional<NodeId> id = graph.Find(node.node);
    if (!id) continue;
    seconds += node.predicted_seconds;
    elements += ElementCount(graph.node(*id).shape);
  }
  return elements > 0 ? seconds / static_cast<double>(elements) : kGuessed;
}

class TypeProblem {
 public:
  explicit TypeProblem(const TypedNetworks& networks) : networks_(networks) {
    for (NodeId id = 0; id < networks.bytes.size(); ++id)
      in_bytes_.emplace(NameInFloats(networks.bytes.node(id).name), id);
    const auto [in_floats, in_bytes] = Seconds();
    const Graph& graph = networks.floats;
    for (NodeId id = 0; id < graph.size(); ++id) {
      const Node& node = graph.node(id);
      const auto floats = in_floats.find(node.name), bytes = in_bytes.find(node.name);
      const double float_seconds = floats == in_floats.end() ? 0 : floats->second;
      const double byte_seconds = bytes == in_bytes.end() ? 0 : bytes->second;
      problem_.AddVariable(node.name, {float_seconds, ReadsFloats(node) ? kForbidden : byte_seconds});
    }
    AddTensors();
    for (const QuantizedLayerError& layer : networks.layers.layers) {
      const std::optional<NodeId> node = graph.Find(layer.layer);
      layers_.push_back(node ? node : graph.Find(layer.output));
    }
  }

  TypeChoice Solve(double price) const {
    LayoutProblem priced = problem_;
    for (size_t i = 0; i < layers_.size(); ++i)
      if (layers_[i]) priced.AddUnary(*layers_[i], kBytes, price * networks_.layers.layers[i].square);
    const Solution solution = FindSolver("dp").solve(priced, {});
    const Solution found = solution.solved() ? solution : FindSolver("beam").solve(priced, {});
    TILESMITH_CHECK(found.solved(), "{}", found.refusal);
    TypeChoice choice;
    choice.seconds = Evaluate(problem_, found.assignment);
    for (size_t i = 0; i < layers_.size(); ++i) {
      const QuantizedLayerError& layer = networks_.layers.layers[i];
      const bool is_float = layers_[i] && found.assignment[*layers_[i]] == kFloat;
      if (!is_float) choice.square += layer.square;
      if (!layer.weighted) continue;
      if (is_float)
        choice.keep.push_back(layer.layer);
      else
        ++choice.quantized;
    }
    return choice;
  }

 private:
  // Nodes that only the quantised network has, conversions aside, are what its layers need: they count with
  // the node they read.
  std::pair<std::map<std::string, double>, std::map<std::string, double>> Seconds() const {
    const auto same = [](const std::string& name) { return name; };
    const auto in_floats = [&](const std::string& name) { return NameInFloats(name); };
    std::map<std::string, double> floats = SecondsByNode(networks_.float_plan, same),
                                  bytes = SecondsByNode(networks_.byte_plan, in_floats);
    const Graph& graph = networks_.bytes;
    for (NodeId id = graph.size(); id-- > 0;) {
      const Node& node = graph.node(id);
      const auto own = bytes.find(NameInFloats(node.name));
      if (own == bytes.end() || networks_.floats.Find(own->first) || graph.Inputs(id).empty()) continue;
      const bool converts = node.op->Type() == "QuantizeLinear" || node.op->Type() == "DequantizeLinear";
      const double seconds = own->second;
      bytes.erase(own);
      if (!converts) bytes[NameInFloats(graph.node(graph.Inputs(id).front()).name)] += seconds;
    }
    return {std::move(floats), std::move(bytes)};
  }

  // The float network's name of a node that the quantised one has.
  std::string NameInFloats(const std::string& name) const {
    if (!name.ends_with(kByteNodeSuffix)) return name;
    std::string tensor = name.substr(0, name.size() - kByteNodeSuffix.size());
    const std::map<std::string, std::string>& titles = networks_.layers.titles;
    const auto has = [&](const std::string& of) {
      const auto title = titles.find(of);
      return title != titles.end() && networks_.floats.Find(title->second);
    };
    if (has(tensor)) return titles.at(tensor);
    // A sum that the convolution in front of it takes along, there as here.
    for (const QuantizedLayerError& layer : networks_.layers.layers) {
      if (layer.weighted || layer.output != tensor) continue;
      for (const QuantizedLayerError& front : networks_.layers.layers) {
        if (front.weighted && has(front.output) &&
            std::ranges::find(layer.inputs, front.output) != layer.inputs.end())
          return front.layer;
      }
    }
    return tensor;
  }

  // What the quantised network computes in floats, too.
  bool ReadsFloats(const Node& node) const {
    if (node.op->Type() == "Input" || node.op->Type() == "Constant") return true;
    const Graph& graph = networks_.bytes;
    const auto found = in_bytes_.find(node.name);
    return found != in_bytes_.end() && std::ranges::all_of(graph.Inputs(found->second), [&](NodeId input) {
             return graph.node(input).type == DataType::kF32;
           });
  }

  void AddTensors() {
    const Graph& graph = networks_.floats;
    const double to_bytes = SecondsPerElement(networks_.bytes, networks_.byte_plan, "QuantizeLinear"),
                 to_floats = SecondsPerElement(networks_.bytes, networks_.byte_plan, "DequantizeLinear");
    for (NodeId id = 0; id < graph.size(); ++id) {
      if (graph.node(id).op->Type() == "Constant") continue;
      const auto elements = static_cast<double>(ElementCount(graph.node(id).shape));
      CostMatrix convert(kTypes, kTypes);
      convert.at(kFloat, kBytes) = to_bytes * elements;
      convert.at(kBytes, kFloat) = to_floats * elements;
      std::vector<TensorUse> uses;
      for (const NodeId consumer : graph.Consumers(id)) uses.push_back({consumer, {kFloat, kBytes}});
      if (!uses.empty()) AddConversions(problem_, id, convert, uses);
      if (std::ranges::find(graph.outputs(), id) != graph.outputs().end())
        problem_.AddUnary(id, kBytes, convert.at(kBytes, kFloat));
    }
  }

  const TypedNetworks& networks_;
  std::map<std::string, NodeId> in_bytes_;  // nodes of the quantised network by their names in the float one
  LayoutProblem problem_;                   // a variable for each node of the float network, with its id
  std::vector<std::optional<NodeId>> layers_;
};

}  // namespace

TypeChoice ChooseTypes(const TypedNetworks& networks, double most) {
  constexpr double kLowest = 1e-6, kHighest = 1e15, kStep = 8, kPrecision = 1.01;  // seconds per square
  const TypeProblem problem(networks);
  TypeChoice best = problem.Solve(0);
  if (best.square <= most) return best;
  double too_low = kLowest, enough = kLowest;
  while ((best = problem.Solve(enough)).square > most && enough < kHighest) {
    too_low = enough;
    enough *= kStep;
  }
  while (enough > too_low * kPrecision) {
    const double middle = std::sqrt(too_low * enough);
    TypeChoice choice = problem.Solve(middle);
    const bool fits = choice.square <= most;
    (fits ? enough : too_low) = middle;
    if (fits) best = std::move(choice);
  }
  return best;
}

}  // namespace tilesmith
