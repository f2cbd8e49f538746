#include "graph_tuner/planner/type_choice.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string_view>

#include "graph_tuner/problem/within_limits.h"
#include "graph_tuner/solvers/k_best.h"
#include "graph_tuner/solvers/solver.h"
#include "layouts/base/check.h"
#include "layouts/base/visible.h"
#include "ops/base/quantization.h"
#include "ops/quantize/quantize.h"

namespace tilesmith {
namespace {

using NodeId = Graph::NodeId;

enum Type { kFloat, kBf16, kBytes, kTypes };

std::string SameName(const std::string& name) { return name; }

bool ConvertsBytes(std::string_view op_type) {
  return op_type == "QuantizeLinear" || op_type == "DequantizeLinear";
}

// A plan's seconds by node, what a tensor's conversions of layout take counted with the node that makes it.
// Conversions from and to bytes have prices of their own.
template <typename NameOf>
std::map<std::string, double> SecondsByNode(const Plan& plan, const NameOf& name_of) {
  std::map<std::string, double> seconds;
  for (const NodePlan& node : plan.nodes)
    if (!ConvertsBytes(node.op_type)) seconds[name_of(node.node)] += node.predicted_seconds;
  for (const TransformPlan& transform : plan.transforms)
    seconds[name_of(transform.tensor)] += transform.predicted_seconds;
  return seconds;
}

// Seconds of a tensor's conversions from f32.
struct Conversions {
  double bf16 = 0, to_bytes = 0, from_bytes = 0;
};

// The mean per element of a plan's conversions; what reading memory takes where there are none.
class SecondsPerElement {
 public:
  explicit SecondsPerElement(const Graph& graph) : graph_(graph) {}
  void Add(const std::string& tensor, double seconds) {
    const std::optional<NodeId> id = graph_.Find(tensor);
    if (!id) return;
    seconds_ += seconds;
    elements_ += ElementCount(graph_.node(*id).shape);
  }
  double mean() const {
    constexpr double kGuessed = 0.2e-9;
    return elements_ > 0 ? seconds_ / static_cast<double>(elements_) : kGuessed;
  }

 private:
  const Graph& graph_;
  double seconds_ = 0;
  int64_t elements_ = 0;
};

// The mean over conversions that are nodes of their own.
double ByNodes(const Graph& graph, const Plan& plan, std::string_view type) {
  SecondsPerElement seconds(graph);
  for (const NodePlan& node : plan.nodes)
    if (node.op_type == type) seconds.Add(node.node, node.predicted_seconds);
  return seconds.mean();
}

// The mean over conversions between f32 and bf16.
double ByTransforms(const Graph& graph, const Plan& plan) {
  SecondsPerElement seconds(graph);
  for (const TransformPlan& transform : plan.transforms)
    if (transform.from.type() != transform.to.type())
      seconds.Add(transform.tensor, transform.predicted_seconds);
  return seconds.mean();
}

class ConversionPrices {
 public:
  explicit ConversionPrices(const TypedNetworks& networks) : networks_(networks) {
    if (networks.costs == nullptr) {
      per_element_ = {networks.bf16_plan != nullptr ? ByTransforms(networks.floats, *networks.bf16_plan) : 0,
                      ByNodes(networks.bytes, networks.byte_plan, "QuantizeLinear"),
                      ByNodes(networks.bytes, networks.byte_plan, "DequantizeLinear")};
      return;
    }
    for (const NodePlan& node : networks.float_plan.nodes) layouts_.emplace(node.node, node.layouts.out);
    for (NodeId id = 0; id < networks.bytes.size(); ++id)
      if (IsByte(networks.bytes.node(id).type)) stored_.type = networks.bytes.node(id).type;
  }

  Conversions Of(const Node& tensor) const {
    if (tensor.type != DataType::kF32) return {};
    if (networks_.costs == nullptr) {
      const auto elements = static_cast<double>(ElementCount(tensor.shape));
      return {per_element_.bf16 * elements, per_element_.to_bytes * elements,
              per_element_.from_bytes * elements};
    }
    const auto found = layouts_.find(tensor.name);
    const Layout planned = found == layouts_.end() || tensor.shape.size() != 4
                               ? Layout::Nchw()
                               : found->second.WithType(DataType::kF32);
    const auto quantize = std::make_shared<QuantizeLinearOp>(stored_);
    const auto dequantize = std::make_shared<DequantizeLinearOp>(stored_);
    const std::vector<Shape> shapes = {tensor.shape};
    const Layout layout = quantize->RunsIn(planned, shapes) ? planned : Layout::Nchw();
    CostSource& costs = *networks_.costs;
    return {
        networks_.bf16_plan != nullptr
            ? costs.TransformSeconds(tensor.shape, layout, layout.WithType(DataType::kBf16))
            : 0,
        costs.OpSeconds(
            {quantize, shapes, tensor.shape, layout.WithType(stored_.type), {DataType::kF32}, stored_.type}),
        costs.OpSeconds({dequantize, shapes, tensor.shape, layout, {stored_.type}, DataType::kF32})};
  }

 private:
  const TypedNetworks& networks_;
  Conversions per_element_;
  std::map<std::string, Layout> layouts_;                      // that the plan in f32 gives tensors
  Quantization stored_ = {.scales = {1}, .zero_points = {0}};  // whose values change nothing about the time
};

class TypeProblem {
 public:
  explicit TypeProblem(const TypedNetworks& networks) : networks_(networks) {
    for (const auto& [tensor, title] : networks.layers.titles)
      titles_.emplace(VisibleLine(tensor), VisibleLine(title));
    for (const auto& [tensor, node] : networks.layers.byte_nodes) written_by_.emplace(node, tensor);
    for (NodeId id = 0; id < networks.bytes.size(); ++id)
      in_bytes_.emplace(NameInFloats(networks.bytes.node(id).name), id);
    if (networks.bf16_plan != nullptr)
      bf16_squares_ = ErrorBudget{.squares = networks.bf16_squares}.SquaresOf(*networks.bf16_plan);
    AddNodes();
    AddTensors();
    FindLayers();
  }

  // The best one at this price; `bound` is what no choice whose squares add up to at most `most` undercuts.
  TypeChoice Solve(double price, double most) const {
    const LayoutProblem priced = Priced(price);
    const Solution found = SolveAuto(priced, {});
    TILESMITH_CHECK(found.solved(), "{}", found.refusal);
    TypeChoice choice = ChoiceOf(found.assignment);
    // Squares of layers without a node have no price, whatever is chosen.
    choice.bound = found.lower_bound - price * (most - SquareWithoutNodes());
    return choice;
  }

  // The fastest within the limit of the best at this price, none when they all are beyond; `bound` holds as
  // above.
  std::optional<TypeChoice> SolveNear(double price, double most) const {
    constexpr int kLooked = 24;
    const std::vector<Solution> solutions = SolveKBest(
        Priced(price), kLooked, {}, [&](LayoutProblem::VarId id) { return id < networks_.floats.size(); });
    std::optional<TypeChoice> fastest;
    double cost = 0;  // of the last one: all that follow cost at least as much
    for (const Solution& solution : solutions) {
      if (!solution.solved()) return fastest;
      cost = solution.cost;
      TypeChoice choice = ChoiceOf(solution.assignment);
      if (choice.square <= most && (!fastest || choice.seconds < fastest->seconds))
        fastest = std::move(choice);
    }
    if (fastest) {
      const bool all = solutions.size() < kLooked;
      fastest->bound =
          all ? fastest->seconds : std::min(fastest->seconds, cost - price * (most - SquareWithoutNodes()));
    }
    return fastest;
  }

 private:
  LayoutProblem Priced(double price) const {
    LayoutProblem priced = problem_;
    const Graph& graph = networks_.floats;
    for (NodeId id = 0; id < graph.size(); ++id) priced.AddUnary(id, kBf16, price * Bf16Square(id));
    for (size_t i = 0; i < layers_.size(); ++i)
      if (layers_[i]) priced.AddUnary(*layers_[i], kBytes, price * networks_.layers.layers[i].square);
    return priced;
  }

  double SquareWithoutNodes() const {
    double square = 0;
    for (size_t i = 0; i < layers_.size(); ++i)
      if (!layers_[i]) square += networks_.layers.layers[i].square;
    return square;
  }

  TypeChoice ChoiceOf(const Assignment& assignment) const {
    const Graph& graph = networks_.floats;
    TypeChoice choice;
    choice.seconds = Evaluate(problem_, assignment);
    for (size_t i = 0; i < layers_.size(); ++i) {
      const QuantizedLayerError& layer = networks_.layers.layers[i];
      const bool stays = layers_[i] && assignment[*layers_[i]] != kBytes;
      if (stays)
        choice.keep.push_back(layer.layer);
      else
        choice.byte_square += layer.square;
      choice.weighted += layer.weighted;
      choice.quantized += layer.weighted && !stays;
    }
    choice.square = choice.byte_square;
    for (NodeId id = 0; id < graph.size(); ++id)
      if (assignment[id] == kBf16) choice.square += Bf16Square(id);
    return choice;
  }

  void AddNodes() {
    const auto [in_floats, in_bytes] = Seconds();
    const std::map<std::string, double> in_bf16 = networks_.bf16_plan != nullptr
                                                      ? SecondsByNode(*networks_.bf16_plan, SameName)
                                                      : std::map<std::string, double>();
    const auto seconds = [](const std::map<std::string, double>& of, const Node& node) {
      const auto found = of.find(node.name);
      return found == of.end() ? 0 : found->second;
    };
    const Graph& graph = networks_.floats;
    for (NodeId id = 0; id < graph.size(); ++id) {
      const Node& node = graph.node(id);
      const bool given = node.op->Type() == "Input" || node.op->Type() == "Constant";
      problem_.AddVariable(node.name,
                           {seconds(in_floats, node),
                            given || networks_.bf16_plan == nullptr ? kForbidden : seconds(in_bf16, node),
                            given || ReadsFloats(node) ? kForbidden : seconds(in_bytes, node)});
    }
  }

  // One that has no node was fused into what computes its input, of two the later one.
  void FindLayers() {
    std::map<std::string, size_t> writers;  // by the tensor: the layer
    for (const QuantizedLayerError& layer : networks_.layers.layers) {
      std::optional<NodeId> node = networks_.floats.Find(VisibleLine(layer.layer));
      if (!node) node = networks_.floats.Find(VisibleLine(layer.output));
      std::optional<size_t> latest;
      for (const std::string& input : layer.inputs) {
        const auto writer = writers.find(input);
        if (writer != writers.end() && (!latest || writer->second > *latest)) latest = writer->second;
      }
      if (!node && latest) node = layers_[*latest];
      writers[layer.output] = layers_.size();
      layers_.push_back(node);
    }
  }

  double Bf16Square(NodeId id) const {
    const auto found = bf16_squares_.find(networks_.floats.node(id).name);
    return found == bf16_squares_.end() ? 0 : found->second;
  }

  // Nodes that only the quantised network has, conversions aside, are what its layers need: they count with
  // the node they read.
  std::pair<std::map<std::string, double>, std::map<std::string, double>> Seconds() const {
    const auto in_floats = [&](const std::string& name) { return NameInFloats(name); };
    std::map<std::string, double> floats = SecondsByNode(networks_.float_plan, SameName),
                                  bytes = SecondsByNode(networks_.byte_plan, in_floats);
    const Graph& graph = networks_.bytes;
    for (NodeId id = graph.size(); id-- > 0;) {
      const Node& node = graph.node(id);
      const auto own = bytes.find(NameInFloats(node.name));
      if (own == bytes.end() || networks_.floats.Find(own->first) || graph.Inputs(id).empty()) continue;
      const double seconds = own->second;
      bytes.erase(own);
      if (!ConvertsBytes(node.op->Type()))
        bytes[NameInFloats(graph.node(graph.Inputs(id).front()).name)] += seconds;
    }
    return {std::move(floats), std::move(bytes)};
  }

  // The float network's name of a node that the quantised one has.
  std::string NameInFloats(const std::string& name) const {
    const auto written = written_by_.find(name);
    if (written == written_by_.end()) return name;
    const std::string& tensor = written->second;
    const auto has = [&](const std::string& of) {
      const auto title = titles_.find(of);
      return title != titles_.end() && networks_.floats.Find(title->second);
    };
    if (has(tensor)) return titles_.at(tensor);
    // A sum that the convolution in front of it takes along, there as here: the one that has no node without
    // it.
    for (const QuantizedLayerError& layer : networks_.layers.layers) {
      if (layer.weighted || VisibleLine(layer.output) != tensor) continue;
      for (const QuantizedLayerError& front : networks_.layers.layers) {
        const std::string output = VisibleLine(front.output);
        if (front.weighted && has(output) && !IsInBytes(output) &&
            std::ranges::find(layer.inputs, front.output) != layer.inputs.end())
          return VisibleLine(front.layer);
      }
    }
    return tensor;
  }

  bool IsInBytes(const std::string& tensor) const {
    const auto writer = networks_.layers.byte_nodes.find(tensor);
    return writer != networks_.layers.byte_nodes.end() && networks_.bytes.Find(writer->second);
  }

  // Says whether the quantised network computes the node in floats, too.
  bool ReadsFloats(const Node& node) const {
    const Graph& graph = networks_.bytes;
    const auto found = in_bytes_.find(node.name);
    return found != in_bytes_.end() && std::ranges::all_of(graph.Inputs(found->second), [&](NodeId input) {
             return graph.node(input).type == DataType::kF32;
           });
  }

  void AddTensors() {
    const Graph& graph = networks_.floats;
    const ConversionPrices prices(networks_);
    for (NodeId id = 0; id < graph.size(); ++id) {
      if (graph.node(id).op->Type() == "Constant") continue;
      const auto [bf16, to_bytes, from_bytes] = prices.Of(graph.node(id));
      CostMatrix convert(kTypes, kTypes);
      convert.at(kFloat, kBf16) = convert.at(kBf16, kFloat) = bf16;
      // Bytes are made of f32 and become f32.
      convert.at(kFloat, kBytes) = to_bytes;
      convert.at(kBf16, kBytes) = bf16 + to_bytes;
      convert.at(kBytes, kFloat) = from_bytes;
      convert.at(kBytes, kBf16) = from_bytes + bf16;
      std::vector<TensorUse> uses;
      for (const NodeId consumer : graph.Consumers(id)) uses.push_back({consumer, {kFloat, kBf16, kBytes}});
      if (!uses.empty()) AddConversions(problem_, id, convert, uses);
      if (std::ranges::find(graph.outputs(), id) == graph.outputs().end()) continue;
      for (const Type type : {kBf16, kBytes}) problem_.AddUnary(id, type, convert.at(type, kFloat));
    }
  }

  const TypedNetworks& networks_;
  std::map<std::string, std::string> titles_;      // as QuantizedLayers has them, as graphs call nodes
  std::map<std::string, std::string> written_by_;  // tensors, by the nodes that quantise them
  std::map<std::string, NodeId> in_bytes_;  // nodes of the quantised network by their names in the float one
  ErrorSquares bf16_squares_;               // of the plan in bf16
  LayoutProblem problem_;                   // a variable for each node of the float network, with its id
  std::vector<std::optional<NodeId>> layers_;
};

}  // namespace

TypeChoice ChooseTypes(const TypedNetworks& networks, double most) {
  const TypeProblem problem(networks);
  double bound = -std::numeric_limits<double>::infinity();
  const auto solve = [&](double price) {
    TypeChoice choice = problem.Solve(price, price > 0 ? most : 0);  // which may be infinite
    bound = std::max(bound, choice.bound);
    return choice;
  };
  auto [best, price, fits] =
      AtLowestPrice(kErrorPrices, solve, [&](const TypeChoice& choice) { return choice.square <= most; });
  if (price == 0) return std::move(best);
  if (std::optional<TypeChoice> near = problem.SolveNear(price, most)) {
    bound = std::max(bound, near->bound);
    if (near->seconds < best.seconds) best = std::move(*near);
  }
  best.bound = std::min(bound, best.seconds);
  return std::move(best);
}

}  // namespace tilesmith
