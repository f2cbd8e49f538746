#include "graph_tuner/planner/explain_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "graph_tuner/planner/network_types.h"
#include "graph_tuner/problem/graph_tune.h"
#include "layouts/base/close_names.h"
#include "layouts/base/error.h"
#include "layouts/base/visible.h"
#include "ops/conv/conv.h"

namespace tilesmith {
namespace {

using NodeId = Graph::NodeId;

constexpr int64_t kMaxPlans = 1000;

// A node that has a layout of its own.
NodeId FindNode(const Graph& graph, const std::string& name) {
  constexpr size_t kMaxNames = 5;
  std::vector<std::string> names;
  for (NodeId id = 0; id < graph.size(); ++id) {
    const std::string_view type = graph.node(id).op->Type();
    if (type == "Input" || type == "Constant") continue;
    if (graph.node(id).name == name) return id;
    names.push_back(graph.node(id).name);
  }
  const std::vector<std::string> close = CloseNames(name, names, kMaxNames);
  const std::string hint = close.empty() ? fmt::format("without a NODE, all {} are listed", names.size())
                                         : fmt::format("close: {}", fmt::join(close, ", "));
  throw Error(ErrorCode::kUsage, fmt::format("{} has no node \"{}\" ({})", graph.name(), name, hint));
}

class Explainer {
 public:
  Explainer(const PlanRequest& request, const PlanQuestion& question, const WorkSinks& sinks)
      : request_(request), question_(question), sinks_(sinks) {}

  ExplainedPlan Run() {
    explained_.graph = std::make_unique<const Graph>(request_.network->Load(request_.quantization));
    std::optional<NodeId> node;
    if (!question_.node.empty()) node = FindNode(*explained_.graph, question_.node);
    if (question_.open_plan) explained_.given = GivenPlan{question_.open_plan(*explained_.graph)};
    const PinnedTeam team(request_.machine);
    Solve();
    if (explained_.given) CompareGiven(!node && !question_.layout);
    if (explained_.given && request_.machine->ReadsHostMemory()) ExplainRegions(node);
    if (node) {
      explained_.options = ExplainNode(Solved(), *node);
      const ConvolutionOp* const conv = ConvAt(*node);
      if (conv && question_.layout) explained_.tries = TriesOf(conv->workload(), *question_.layout);
    } else if (question_.layout) {
      explained_.uniform_seconds = UniformSeconds(*question_.layout);
      ExplainConvs(*question_.layout);
    } else {
      ExplainNodes();
      if (question_.plans > 0)
        explained_.plans = BestPlans(Solved(), static_cast<int>(std::min(question_.plans, kMaxPlans)));
    }
    return std::move(explained_);
  }

 private:
  const SolvedNetwork& Solved() const { return *explained_.solved; }

  void Solve() {
    explained_.costs = request_.open_costs();
    GraphTuneOptions options = request_.tuning;
    Corrections corrections;
    if (explained_.given) {
      options.ends = explained_.given->plan.ends;
      corrections = explained_.given->plan.corrections;
    }
    explained_.problem = std::make_unique<const NetworkProblem>(*explained_.graph, *request_.log,
                                                                *explained_.costs, std::move(options));
    explained_.solved = std::make_unique<const SolvedNetwork>(SolveNetwork(*explained_.problem, corrections));
  }

  void CompareGiven(bool with_terms) {
    GivenPlan& given = *explained_.given;
    std::vector<FixedNode> choices;
    for (const NodePlan& planned : given.plan.nodes) {
      const NodeId node = NodeOf(planned);
      if (const std::optional<NodeChoice> choice = GivenChoice(explained_, node))
        choices.push_back({node, *choice});
    }
    const Plan with_its_choices = BestPlanWith(Solved(), choices);
    given.layouts_seconds = with_its_choices.predicted_seconds;
    given.missing = given.plan.nodes.size() - choices.size();
    if (with_terms)
      given.terms = Differences(*explained_.graph, Solved().best, with_its_choices, std::nullopt);
  }

  void ExplainRegions(std::optional<NodeId> node) {
    GivenPlan& given = *explained_.given;
    const Candidates& candidates = explained_.problem->usable();
    const Target& cpu = request_.machine->target();
    if (node)
      given.region = FactsOfRegion(*explained_.graph, given.plan, candidates, cpu, *node);
    else if (given.plan.regions.empty())
      given.no_regions = WhyNoRegions(*explained_.graph, given.plan, candidates, cpu);
  }

  NodeId NodeOf(const NodePlan& schedule) const { return explained_.graph->Find(schedule.node).value(); }

  void Progress(size_t done) const {
    ThrowIfStopped(sinks_.stop);
    sinks_.Stage(fmt::format("nodes {}/{}", done, Solved().best.nodes.size()));
  }

  void ExplainNodes() {
    for (const NodePlan& best : Solved().best.nodes) {
      const NodeId node = NodeOf(best);
      Progress(static_cast<size_t>(&best - Solved().best.nodes.data()));
      if (ChoicesOf(Solved().built(), node).size() < 2) continue;
      std::optional<ExplainedChoice> other;
      if (!explained_.given)
        other = RunnerUp(Solved(), node);
      else if (const std::optional<NodeChoice> given = GivenChoice(explained_, node))
        other = ExplainChoice(Solved(), node, *given);
      explained_.nodes.push_back({best, std::move(other)});
    }
  }

  LayoutTries TriesOf(const ConvWorkload& workload, const Layout& layout) const {
    const GraphTuneOptions& options = explained_.problem->options();
    return FindLayoutTries(workload, layout, *request_.log, {options.cpu, options.threads, options.accuracy});
  }

  const ConvolutionOp* ConvAt(NodeId node) const {
    return dynamic_cast<const ConvolutionOp*>(explained_.graph->node(node).op.get());
  }

  void ExplainConvs(const Layout& layout) {
    const BuiltProblem& built = Solved().built();
    for (const NodePlan& best : Solved().best.nodes) {
      Progress(static_cast<size_t>(&best - Solved().best.nodes.data()));
      const NodeId node = NodeOf(best);
      const ConvolutionOp* const conv = ConvAt(node);
      if (!conv) continue;
      std::vector<NodeChoice> choices = ChoicesOf(built, node);
      std::erase_if(choices, [&](const NodeChoice& choice) {
        return !HasLayout(*explained_.graph, built, {node, choice}, layout);
      });
      std::optional<ExplainedChoice> closest;
      if (!choices.empty()) closest = BestOf(Solved(), node, choices);
      explained_.convolutions.push_back({best, std::move(closest), TriesOf(conv->workload(), layout)});
    }
  }

  double UniformSeconds(const Layout& layout) const {
    const NetworkProblem uniform = explained_.problem->Restricted({.uniform = layout});
    return GraphTune(uniform, Solved().priced.corrections).plan.predicted_seconds;
  }

  const PlanRequest& request_;
  const PlanQuestion& question_;
  const WorkSinks& sinks_;
  ExplainedPlan explained_;
};

// The node that computes the layer's output in bytes, wherever there is one; "" where there is none.
std::string ByteNodeOf(const QdqLayer& layer, const QdqFile& file) {
  const auto found = file.byte_nodes.find(VisibleLine(layer.output));
  return found == file.byte_nodes.end() ? "" : found->second;
}

class TypeExplainer {
 public:
  TypeExplainer(const PlanRequest& request, const std::string& node, const WorkSinks& sinks)
      : request_(request),
        network_(*request.network),
        node_(node),
        sinks_(sinks),
        quantization_(request.quantization ? request.quantization : request.network->Calibrate(sinks)) {}

  std::vector<TypedNode> Run() {
    if (!FindLayer()) return {};
    const bool in_floats = !request_.quantization;
    const std::vector<std::string>& kept = quantization_->options.keep;
    std::vector<std::string> others = in_floats ? weighted_ : kept;
    const bool is_kept = in_floats || std::ranges::find(kept, layer_) != kept.end();
    std::erase(others, layer_);
    const PinnedTeam team(request_.machine);
    const FloatNetwork floats = OpenFloats(network_, request_.machine);
    costs_ = request_.open_costs();
    std::vector<TypedNode> nodes = {InType("int8", others, floats)};
    others.push_back(layer_);
    nodes.push_back(InType("float", others, floats));
    nodes[is_kept ? 1 : 0].is_asked = true;
    return nodes;
  }

 private:
  // The title of the layer that is asked for, and those of all. With what was kept when the model was
  // planned, as far as it was calibrated.
  bool FindLayer() {
    auto quantization = std::make_shared<ModelQuantization>(*quantization_);
    quantization->options.keep.clear();
    const ModelFile file = network_.File();
    const QdqModel without(file, file.source, quantization->options);
    const bool complete = std::ranges::all_of(without.tensors(), [&](const QdqTensor& tensor) {
      return quantization->tensors.contains(tensor.name);
    });
    if (!complete) quantization->options.keep = quantization_->options.keep;
    const QdqFile quantized = QuantizedBy(*quantization, file);
    for (const QdqLayer& layer : quantized.layers) {
      if (layer.channels == 0) continue;
      weighted_.push_back(layer.name);
      const std::string tensor = VisibleLine(layer.output);
      if (layer.name != node_ && tensor != node_ && ByteNodeOf(layer, quantized) != node_) continue;
      layer_ = layer.name;
      tensor_ = tensor;
    }
    return !layer_.empty();
  }

  TypedNode InType(const std::string& type, const std::vector<std::string>& keep,
                   const FloatNetwork& floats) {
    ThrowIfStopped(sinks_.stop);
    sinks_.Stage("the layer in " + type);
    auto some = std::make_shared<ModelQuantization>(*quantization_);
    some->options.keep = keep;
    const auto is_kept = [&](const std::string& layer) {
      return std::ranges::find(keep, layer) != keep.end();
    };
    const QuantizationPtr quantization = std::ranges::all_of(weighted_, is_kept) ? nullptr : some;
    const Graph graph = network_.Load(quantization);
    GraphTuneOptions options = request_.tuning;
    options.allow_defaults = true;
    const Plan plan = GraphTune(NetworkProblem(graph, *request_.log, *costs_, std::move(options))).plan;
    TypedNode node = {.type = type, .network_seconds = plan.predicted_seconds};
    node.output_error = floats.errors.Of(graph, plan).error;
    const std::string name = NodeOfLayer(network_, quantization, layer_);
    const auto planned = std::ranges::find_if(
        plan.nodes, [&](const NodePlan& one) { return one.node == name || one.node == tensor_; });
    if (planned != plan.nodes.end()) node.node_seconds = planned->predicted_seconds;
    return node;
  }

  const PlanRequest& request_;
  const NetworkSource& network_;
  const std::string& node_;
  const WorkSinks& sinks_;
  const QuantizationPtr quantization_;
  std::unique_ptr<CostSource> costs_;
  std::string layer_, tensor_;         // the node's title, and what it writes
  std::vector<std::string> weighted_;  // titles of all layers with weights
};

}  // namespace

std::optional<NodeChoice> GivenChoice(const ExplainedPlan& explained, NodeId node) {
  if (!explained.given) return std::nullopt;
  return ChosenBy(*explained.graph, explained.solved->built(), explained.given->plan, node);
}

ExplainedPlan ExplainPlan(const PlanRequest& request, const PlanQuestion& question, const WorkSinks& sinks) {
  return Explainer(request, question, sinks).Run();
}

std::string NodeOfLayer(const NetworkSource& network, const QuantizationPtr& quantization,
                        const std::string& name) {
  if (!quantization) return name;
  const QdqFile file = QuantizedBy(*quantization, network.File());
  const std::vector<QdqLayer>& layers = file.layers;
  auto layer = std::ranges::find_if(
      layers, [&](const QdqLayer& one) { return one.name == name || VisibleLine(one.output) == name; });
  const Graph graph = network.Load(quantization);
  while (layer != layers.end()) {
    const std::string in_bytes = ByteNodeOf(*layer, file);
    if (graph.Find(in_bytes)) return in_bytes;
    // A sum behind it that it takes along.
    layer = std::ranges::find_if(layer + 1, layers.end(), [&](const QdqLayer& one) {
      return std::ranges::find(one.inputs, layer->output) != one.inputs.end();
    });
  }
  return name;
}

std::vector<TypedNode> ExplainTypes(const PlanRequest& request, const std::string& node,
                                    const WorkSinks& sinks) {
  return TypeExplainer(request, node, sinks).Run();
}

}  // namespace tilesmith
