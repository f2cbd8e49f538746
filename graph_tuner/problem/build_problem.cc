#include "graph_tuner/problem/build_problem.h"

#include <algorithm>

#include "graph_tuner/costs/layout_forms.h"
#include "graph_tuner/plan/concat_slices.h"
#include "graph_tuner/plan/plan.h"
#include "graph_tuner/plan/stand_alone_costs.h"
#include "layouts/base/check.h"
#include "ops/conv/conv.h"
#include "ops/conv/fusion.h"

namespace tilesmith {
namespace {

using NodeId = Graph::NodeId;
using VarId = LayoutProblem::VarId;

bool IsConstant(const Graph& graph, NodeId id) { return graph.node(id).op->Type() == "Constant"; }
bool IsInput(const Graph& graph, NodeId id) { return graph.node(id).op->Type() == "Input"; }

bool AllImages(const Graph& graph, NodeId id) {
  auto fits = [&](NodeId n) { return graph.node(n).shape.size() == 4; };
  const auto inputs = graph.Inputs(id);
  return fits(id) && std::all_of(inputs.begin(), inputs.end(), fits);
}

// Whether all tensors of a node lie the same in both layouts.
bool SameForNode(const Graph& graph, NodeId id, const Layout& a, const Layout& b) {
  if (!SameForm(graph.node(id).shape, a, b)) return false;
  for (const Shape& shape : graph.InputShapes(id))
    if (!SameForm(shape, a, b)) return false;
  return true;
}

// What a node may read; what it writes is the same, views excepted. Each tensor has its own type in it
// (TensorLayout).
std::vector<Layout> LayoutsOfNode(const Graph& graph, NodeId id, const TolerantLayouts& layouts) {
  if (IsInput(graph, id)) return {EndLayout(graph.node(id), layouts.ends.inputs)};
  std::vector<Layout> result = {Layout::Nchw()};
  const Op& op = *graph.node(id).op;
  if (op.IsView()) return {op.LayoutsOfView().in};
  if (!AllImages(graph, id)) return result;
  for (const Layout& layout : layouts.all) {
    const bool known = std::any_of(result.begin(), result.end(), [&](const Layout& other) {
      return SameForNode(graph, id, layout, other);
    });
    if (!known && NodeRunsIn(graph, id, layout)) result.push_back(layout);
  }
  return result;
}

int IndexOfForm(std::vector<Layout>& forms, const Shape& shape, const Layout& layout) {
  for (size_t i = 0; i < forms.size(); ++i)
    if (SameForm(shape, forms[i], layout)) return int(i);
  forms.push_back(layout);
  return int(forms.size()) - 1;
}

// A pair of nodes that there are fused candidates for.
struct Fusion {
  FusablePair pair;
  const std::vector<Record>& records;
  std::vector<Layout> layouts;  // distinct ones that the records read

  int Index(const Record& record) const {
    std::vector<Layout> known = layouts;
    return IndexOfForm(known, pair.workload.input_shape(), record.layouts.in);
  }
};

class Builder {
 public:
  Builder(const Graph& graph, const Candidates& candidates, const TolerantLayouts& layouts, CostSource& costs,
          const Corrections& corrections, const ConvPrice& price)
      : graph_(graph),
        candidates_(candidates),
        layouts_(layouts),
        costs_(costs),
        corrections_(corrections),
        price_(price),
        slices_(ConcatSlices(graph)) {
    built_.nodes.resize(graph.size());
    FindFusions();
  }

  BuiltProblem Build() {
    for (NodeId id = 0; id < graph_.size(); ++id) {
      if (IsConstant(graph_, id)) continue;
      if (const auto* conv = dynamic_cast<const ConvOp*>(graph_.node(id).op.get()))
        AddConv(id, *conv);
      else
        AddTolerant(id);
    }
    for (NodeId id = 0; id < graph_.size(); ++id)
      if (!IsConstant(graph_, id)) AddTensor(id);
    for (const Fusion& fusion : fusions_) TieFused(fusion);
    return std::move(built_);
  }

 private:
  void FindFusions() {
    for (FusablePair& pair : FusablePairs(graph_)) {
      const auto found = candidates_.find(WorkloadToString(pair.workload));
      if (found == candidates_.end() || found->second.empty()) continue;
      Fusion fusion{pair, found->second, {}};
      for (const Record& record : fusion.records)
        IndexOfForm(fusion.layouts, pair.workload.input_shape(), record.layouts.in);
      fusions_.push_back(std::move(fusion));
    }
  }

  // The fusion of a node with what follows it, and of a conv with what comes before it; null for none.
  const Fusion* FusionBehind(NodeId first) const {
    const auto found = std::ranges::find_if(fusions_, [&](const Fusion& f) { return f.pair.first == first; });
    return found == fusions_.end() ? nullptr : &*found;
  }
  const Fusion* FusionBefore(NodeId conv) const {
    const auto found = std::ranges::find_if(fusions_, [&](const Fusion& f) { return f.pair.conv == conv; });
    return found == fusions_.end() ? nullptr : &*found;
  }

  // One way to compute a conv: options of its two variables, and the record that does it.
  struct Choice {
    int in = 0, out = 0;
    const Record* record = nullptr;
  };

  void AddConv(NodeId id, const ConvOp& conv) {
    const ConvWorkload& workload = conv.workload();
    const auto& records = candidates_.at(WorkloadToString(workload));
    TILESMITH_CHECK(!records.empty(), "no candidate for {}", WorkloadToString(workload));
    const Fusion *before = FusionBefore(id), *behind = FusionBehind(id);
    std::vector<Layout> ins, outs;
    std::vector<Choice> choices;
    for (const Record& record : records)
      choices.push_back({IndexOfForm(ins, workload.input_shape(), record.layouts.in),
                         IndexOfForm(outs, workload.output_shape(), record.layouts.out), &record});
    std::vector<int> read_when_fused;  // this conv's input, for each layout that it is fused behind with
    for (size_t f = 0; behind && f < behind->layouts.size(); ++f)
      read_when_fused.push_back(IndexOfForm(ins, workload.input_shape(), behind->layouts[f]));
    for (size_t i = 0; before && i < before->records.size(); ++i) {
      const Record& record = before->records[i];
      choices.push_back({int(ins.size()) + before->Index(record),
                         IndexOfForm(outs, workload.output_shape(), record.layouts.out), &record});
    }
    NodeVariables& vars = built_.nodes[id];
    vars.in_layouts = WithFused(ins, before);
    vars.out_layouts = WithFused(outs, behind);
    CostMatrix seconds = AddConvVariables(id, choices);
    for (size_t f = 0; f < read_when_fused.size(); ++f)
      seconds.at(read_when_fused[f], int(outs.size() + f)) = 0;
    built_.problem.AddPairwise(*vars.in, *vars.out, seconds);
  }

  static std::vector<std::optional<Layout>> WithFused(const std::vector<Layout>& layouts,
                                                      const Fusion* fusion) {
    std::vector<std::optional<Layout>> options(layouts.begin(), layouts.end());
    options.resize(layouts.size() + (fusion ? fusion->layouts.size() : 0));
    return options;
  }

  // The variables of a conv whose layouts are known, and the seconds of its choices.
  CostMatrix AddConvVariables(NodeId id, const std::vector<Choice>& choices) {
    NodeVariables& vars = built_.nodes[id];
    const size_t ins = vars.in_layouts.size(), outs = vars.out_layouts.size();
    CostMatrix seconds(static_cast<int>(ins), static_cast<int>(outs));
    std::fill(seconds.values.begin(), seconds.values.end(), kForbidden);
    vars.records.assign(ins, std::vector<const Record*>(outs, nullptr));
    const std::string& name = graph_.node(id).name;
    for (const Choice& choice : choices) {
      const double corrected =
          corrections_.ConvSeconds(name, *choice.record) + price_.Of(name, *choice.record);
      if (corrected >= seconds.at(choice.in, choice.out)) continue;
      seconds.at(choice.in, choice.out) = corrected;
      vars.records[size_t(choice.in)][size_t(choice.out)] = choice.record;
    }
    vars.in = built_.problem.AddVariable(name + " in", std::vector<double>(ins, 0.0));
    vars.out = built_.problem.AddVariable(name + " out", std::vector<double>(outs, 0.0));
    return seconds;
  }

  void AddTolerant(NodeId id) {
    NodeVariables& vars = built_.nodes[id];
    const std::vector<NodeId> inputs = graph_.Inputs(id);
    std::vector<double> seconds;
    for (const Layout& layout : LayoutsOfNode(graph_, id, layouts_)) {
      const Op& op = *graph_.node(id).op;
      vars.in_layouts.emplace_back(layout);
      vars.out_layouts.emplace_back(
          TensorLayout(graph_.node(id), op.IsView() ? op.LayoutsOfView().out : layout));
      seconds.push_back(corrections_.OpSeconds(graph_.node(id).name,
                                               NodeLayouts(graph_, id, layout, layout).in,
                                               TolerantSeconds(graph_, id, layout, costs_)));
      for (size_t slot = 0; slot < inputs.size(); ++slot) {
        if (IsConstant(graph_, inputs[slot]) && MustFillSlice(graph_, slices_, {id, slot}, layout))
          seconds.back() +=
              CorrectedFill(inputs[slot], TensorLayout(graph_.node(inputs[slot]), Layout::Nchw()), layout);
      }
    }
    if (const Fusion* behind = FusionBehind(id)) {
      vars.in_layouts.insert(vars.in_layouts.end(), behind->layouts.begin(), behind->layouts.end());
      vars.out_layouts.resize(vars.in_layouts.size());
      seconds.resize(vars.in_layouts.size(), 0.0);
    }
    vars.in = vars.out = built_.problem.AddVariable(graph_.node(id).name, std::move(seconds));
  }

  // Both nodes are fused, and read the same layout, or neither is.
  void TieFused(const Fusion& fusion) {
    const NodeVariables &first = built_.nodes[fusion.pair.first], &conv = built_.nodes[fusion.pair.conv];
    CostMatrix tie(int(first.out_layouts.size()), int(conv.in_layouts.size()));
    const int options = int(fusion.layouts.size());
    for (int i = 0; i < tie.rows; ++i) {
      for (int j = 0; j < tie.cols; ++j) {
        const int first_fused = i - (tie.rows - options), conv_fused = j - (tie.cols - options);
        const bool neither = first_fused < 0 && conv_fused < 0;
        if (!neither && first_fused != conv_fused) tie.at(i, j) = kForbidden;
      }
    }
    built_.problem.AddPairwise(*first.out, *conv.in, tie);
  }

  // Everything that happens to a tensor between its producer and its consumers.
  void AddTensor(NodeId id) {
    const Shape& shape = graph_.node(id).shape;
    const NodeVariables& vars = built_.nodes[id];
    std::vector<Layout> forms;
    std::vector<TensorUse> uses;
    for (NodeId consumer : graph_.Consumers(id)) {
      const std::vector<NodeId> inputs = graph_.Inputs(consumer);
      for (size_t slot = 0; slot < inputs.size(); ++slot) {
        if (inputs[slot] != id) continue;
        uses.push_back(UseOf(id, {consumer, slot}, forms));
        AddFills(id, {consumer, slot});
      }
    }
    if (graph_.IsOutput(id)) {
      const VarId sink = built_.problem.AddVariable(graph_.node(id).name + " (graph output)", {0.0});
      const Layout wanted = EndLayout(graph_.node(id), layouts_.ends.outputs);
      uses.push_back({sink, {IndexOfForm(forms, shape, wanted)}});
    }
    CostMatrix convert(int(vars.out_layouts.size()), int(forms.size()));
    for (int i = 0; i < convert.rows; ++i) {
      for (int j = 0; j < convert.cols; ++j) {
        const std::optional<Layout>& from = vars.out_layouts[size_t(i)];
        const Layout& to = forms[size_t(j)];
        if (!from || SameForm(shape, *from, to)) continue;
        convert.at(i, j) = corrections_.ConversionSeconds(graph_.node(id), *from, to,
                                                          costs_.TransformSeconds(shape, *from, to));
      }
    }
    AddConversions(built_.problem, *vars.out, convert, uses);
  }

  // A conv's second input is its residual, in the layout it writes; elsewhere in and out are one.
  VarId ReadingVariable(const InputSlot& input) const {
    const NodeVariables& vars = built_.nodes[input.consumer];
    return input.slot == 0 ? *vars.in : *vars.out;
  }
  const std::vector<std::optional<Layout>>& ReadingLayouts(const InputSlot& input) const {
    const NodeVariables& vars = built_.nodes[input.consumer];
    return input.slot == 0 ? vars.in_layouts : vars.out_layouts;
  }

  TensorUse UseOf(NodeId tensor, const InputSlot& input, std::vector<Layout>& forms) const {
    TensorUse use{ReadingVariable(input), {}};
    const Node &node = graph_.node(tensor), &consumer = graph_.node(input.consumer);
    for (const std::optional<Layout>& layout : ReadingLayouts(input)) {
      const bool reads = layout && !MustFillSlice(graph_, slices_, input, *layout);
      use.reads.push_back(
          reads ? IndexOfForm(forms, node.shape, TensorLayout(node, InputOrder(consumer, *layout)))
                : kReadsNothing);
    }
    return use;
  }

  void AddFills(NodeId tensor, const InputSlot& input) {
    const NodeVariables& from = built_.nodes[tensor];
    const std::vector<std::optional<Layout>>& to = ReadingLayouts(input);
    CostMatrix fill(int(from.out_layouts.size()), int(to.size()));
    bool any = false;
    for (int j = 0; j < fill.cols; ++j) {
      if (!to[size_t(j)] || !MustFillSlice(graph_, slices_, input, *to[size_t(j)])) continue;
      any = true;
      for (int i = 0; i < fill.rows; ++i)
        fill.at(i, j) = CorrectedFill(tensor, from.out_layouts[size_t(i)].value(), *to[size_t(j)]);
    }
    if (any) built_.problem.AddPairwise(*from.out, ReadingVariable(input), fill);
  }

  double CorrectedFill(NodeId tensor, const Layout& from, const Layout& into) {
    const Node& node = graph_.node(tensor);
    const Layout to = TensorLayout(node, into);
    return corrections_.ConversionSeconds(node, from, to, FillSeconds(node.shape, from, to, costs_));
  }

  const Graph& graph_;
  const Candidates& candidates_;
  const TolerantLayouts& layouts_;
  CostSource& costs_;
  const Corrections& corrections_;
  const ConvPrice& price_;
  const Slices slices_;
  std::vector<Fusion> fusions_;
  BuiltProblem built_;
};

}  // namespace

double ConvPrice::Of(const std::string& conv, const Record& record) const {
  const double squares = seconds_per_square > 0 ? errors->Of(conv, record) : 0;
  return weights.Of(record) + seconds_per_square * squares;
}

TolerantLayouts LayoutsOf(const Graph& graph, const Candidates& candidates) {
  TolerantLayouts layouts{{Layout::Nchw()}, {}};
  auto add = [&](const Layout& layout) {
    if (std::find(layouts.all.begin(), layouts.all.end(), layout) == layouts.all.end())
      layouts.all.push_back(layout);
  };
  for (const auto& [workload, records] : candidates) {
    for (const Record& record : records) {
      add(record.layouts.in);
      add(record.layouts.out);
    }
  }
  for (NodeId id = 0; id < graph.size(); ++id)
    if (const std::optional<Layout> layout = graph.node(id).op->DefaultLayout()) add(*layout);
  std::sort(layouts.all.begin() + 1, layouts.all.end());
  return layouts;
}

BuiltProblem BuildProblem(const Graph& graph, const Candidates& candidates, const TolerantLayouts& layouts,
                          CostSource& costs, const Corrections& corrections, const ConvPrice& price) {
  return Builder(graph, candidates, layouts, costs, corrections, price).Build();
}

std::vector<NodePlan> ChosenNodes(const Graph& graph, const BuiltProblem& built,
                                  const Assignment& assignment) {
  std::vector<NodePlan> nodes;
  for (NodeId id = 0; id < graph.size(); ++id) {
    if (IsConstant(graph, id) || IsInput(graph, id)) continue;
    const NodeVariables& vars = built.nodes[id];
    const auto in = size_t(assignment[*vars.in]), out = size_t(assignment[*vars.out]);
    NodePlan plan;
    plan.node = graph.node(id).name;
    plan.op_type = graph.node(id).op->Type();
    if (!vars.out_layouts[out]) {
      plan.fused_into = graph.node(graph.Consumers(id).at(0)).name;
    } else if (vars.records.empty()) {
      plan.layouts = NodeLayouts(graph, id, *vars.in_layouts[in], *vars.out_layouts[out]);
    } else {
      const Record* record = vars.records[in][out];
      TILESMITH_CHECK(record, "{} has no candidate for the chosen layouts", plan.node);
      plan.record = *record;
      plan.layouts = record->layouts;
    }
    nodes.push_back(std::move(plan));
  }
  return nodes;
}

}  // namespace tilesmith
