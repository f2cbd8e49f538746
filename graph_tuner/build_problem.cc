#include "graph_tuner/build_problem.h"

#include <algorithm>

#include "graph_tuner/transform_costs.h"
#include "layouts/base/check.h"
#include "ops/nodes/conv.h"

namespace tilesmith {
namespace {

using NodeId = Graph::NodeId;
using VarId = LayoutProblem::VarId;

bool IsConstant(const Graph& graph, NodeId id) { return graph.node(id).op->Type() == "Constant"; }
bool IsInput(const Graph& graph, NodeId id) { return graph.node(id).op->Type() == "Input"; }

bool AllFloat4d(const Graph& graph, NodeId id) {
  auto fits = [&](NodeId n) {
    return graph.node(n).shape.size() == 4 && graph.node(n).type == DataType::kF32;
  };
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

std::vector<Layout> LayoutsOfNode(const Graph& graph, NodeId id, const TolerantLayouts& layouts) {
  std::vector<Layout> result = {Layout::Nchw()};
  const Op& op = *graph.node(id).op;
  if (op.IsView() || IsInput(graph, id) || !AllFloat4d(graph, id)) return result;
  const std::vector<Shape> inputs = graph.InputShapes(id);
  for (const Layout& layout : layouts.all) {
    const bool known = std::any_of(result.begin(), result.end(), [&](const Layout& other) {
      return SameForNode(graph, id, layout, other);
    });
    if (!known && op.RunsIn(layout, inputs)) result.push_back(layout);
  }
  return result;
}

int IndexOfForm(std::vector<Layout>& forms, const Shape& shape, const Layout& layout) {
  for (size_t i = 0; i < forms.size(); ++i)
    if (SameForm(shape, forms[i], layout)) return int(i);
  forms.push_back(layout);
  return int(forms.size()) - 1;
}

class Builder {
 public:
  Builder(const Graph& graph, const Candidates& candidates, const TolerantLayouts& layouts, CostSource& costs)
      : graph_(graph),
        candidates_(candidates),
        layouts_(layouts),
        costs_(costs),
        slices_(ConcatSlices(graph)) {
    built_.nodes.resize(graph.size());
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
    return std::move(built_);
  }

 private:
  void AddConv(NodeId id, const ConvOp& conv) {
    const ConvWorkload& workload = conv.workload();
    const auto& records = candidates_.at(WorkloadToString(workload));
    TILESMITH_CHECK(!records.empty(), "no candidate for {}", WorkloadToString(workload));
    NodeVariables& vars = built_.nodes[id];
    std::vector<std::pair<int, int>> options;
    for (const Record& record : records)
      options.emplace_back(IndexOfForm(vars.in_layouts, workload.input_shape(), record.layouts.in),
                           IndexOfForm(vars.out_layouts, workload.output_shape(), record.layouts.out));
    const int ins = int(vars.in_layouts.size()), outs = int(vars.out_layouts.size());
    CostMatrix seconds(ins, outs);
    std::fill(seconds.values.begin(), seconds.values.end(), kForbidden);
    vars.records.assign(size_t(ins), std::vector<const Record*>(size_t(outs), nullptr));
    for (size_t i = 0; i < records.size(); ++i) {
      const auto [in, out] = options[i];
      if (records[i].seconds >= seconds.at(in, out)) continue;
      seconds.at(in, out) = records[i].seconds;
      vars.records[size_t(in)][size_t(out)] = &records[i];
    }
    const std::string& name = graph_.node(id).name;
    vars.in = built_.problem.AddVariable(name + " in", std::vector<double>(size_t(ins), 0.0));
    vars.out = built_.problem.AddVariable(name + " out", std::vector<double>(size_t(outs), 0.0));
    built_.problem.AddPairwise(*vars.in, *vars.out, seconds);
  }

  void AddTolerant(NodeId id) {
    NodeVariables& vars = built_.nodes[id];
    vars.in_layouts = vars.out_layouts = LayoutsOfNode(graph_, id, layouts_);
    const std::vector<NodeId> inputs = graph_.Inputs(id);
    std::vector<double> seconds;
    for (const Layout& layout : vars.in_layouts) {
      seconds.push_back(TolerantSeconds(graph_, id, layout, costs_));
      for (size_t slot = 0; slot < inputs.size(); ++slot) {
        if (IsConstant(graph_, inputs[slot]) && MustFillSlice(graph_, slices_, {id, slot}, layout))
          seconds.back() += FillSeconds(graph_.node(inputs[slot]).shape, Layout::Nchw(), layout, costs_);
      }
    }
    vars.in = vars.out = built_.problem.AddVariable(graph_.node(id).name, std::move(seconds));
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
      uses.push_back({sink, {IndexOfForm(forms, shape, Layout::Nchw())}});
    }
    CostMatrix convert(int(vars.out_layouts.size()), int(forms.size()));
    for (int i = 0; i < convert.rows; ++i) {
      for (int j = 0; j < convert.cols; ++j) {
        const Layout &from = vars.out_layouts[size_t(i)], &to = forms[size_t(j)];
        if (!SameForm(shape, from, to)) convert.at(i, j) = costs_.TransformSeconds(shape, from, to);
      }
    }
    AddConversions(built_.problem, *vars.out, convert, uses);
  }

  // A conv's second input is its residual, in the layout it writes; elsewhere in and out are one.
  VarId ReadingVariable(const InputSlot& input) const {
    const NodeVariables& vars = built_.nodes[input.consumer];
    return input.slot == 0 ? *vars.in : *vars.out;
  }
  const std::vector<Layout>& ReadingLayouts(const InputSlot& input) const {
    const NodeVariables& vars = built_.nodes[input.consumer];
    return input.slot == 0 ? vars.in_layouts : vars.out_layouts;
  }

  TensorUse UseOf(NodeId tensor, const InputSlot& input, std::vector<Layout>& forms) const {
    TensorUse use{ReadingVariable(input), {}};
    for (const Layout& layout : ReadingLayouts(input)) {
      const bool fill = MustFillSlice(graph_, slices_, input, layout);
      use.reads.push_back(fill ? kReadsNothing : IndexOfForm(forms, graph_.node(tensor).shape, layout));
    }
    return use;
  }

  void AddFills(NodeId tensor, const InputSlot& input) {
    const NodeVariables& from = built_.nodes[tensor];
    const std::vector<Layout>& to = ReadingLayouts(input);
    CostMatrix fill(int(from.out_layouts.size()), int(to.size()));
    bool any = false;
    for (int j = 0; j < fill.cols; ++j) {
      if (!MustFillSlice(graph_, slices_, input, to[size_t(j)])) continue;
      any = true;
      for (int i = 0; i < fill.rows; ++i)
        fill.at(i, j) =
            FillSeconds(graph_.node(tensor).shape, from.out_layouts[size_t(i)], to[size_t(j)], costs_);
    }
    if (any) built_.problem.AddPairwise(*from.out, ReadingVariable(input), fill);
  }

  const Graph& graph_;
  const Candidates& candidates_;
  const TolerantLayouts& layouts_;
  CostSource& costs_;
  const Slices slices_;
  BuiltProblem built_;
};

}  // namespace

bool SameForm(const Shape& shape, const Layout& a, const Layout& b) {
  return a == b || (shape.size() <= 4 && SameMemory(shape, a, b));
}

TolerantLayouts LayoutsOf(const Candidates& candidates) {
  TolerantLayouts layouts{{Layout::Nchw()}};
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
  std::sort(layouts.all.begin() + 1, layouts.all.end());
  return layouts;
}

double TolerantSeconds(const Graph& graph, NodeId id, const Layout& layout, CostSource& costs) {
  const Node& node = graph.node(id);
  if (IsInput(graph, id) || node.op->IsView() || ConcatIsSliceable(graph, id, layout)) return 0;
  const auto inputs = graph.Inputs(id);
  const bool floats = std::all_of(inputs.begin(), inputs.end(),
                                  [&](NodeId input) { return graph.node(input).type == DataType::kF32; });
  if (!floats || node.type != DataType::kF32) return 0;  // shape arithmetic: a few integers
  return costs.OpSeconds({node.op, graph.InputShapes(id), node.shape, layout});
}

bool MustFillSlice(const Graph& graph, const Slices& slices, const InputSlot& input, const Layout& layout) {
  if (!ConcatIsSliceable(graph, input.consumer, layout)) return false;
  const auto& slice = slices[graph.Inputs(input.consumer)[input.slot]];
  return !slice || slice->concat != input.consumer || slice->slot != int(input.slot);
}

double FillSeconds(const Shape& shape, const Layout& from, const Layout& to, CostSource& costs) {
  return SameForm(shape, from, to) ? costs.CopySeconds(shape, to) : costs.TransformSeconds(shape, from, to);
}

BuiltProblem BuildProblem(const Graph& graph, const Candidates& candidates, const TolerantLayouts& layouts,
                          CostSource& costs) {
  return Builder(graph, candidates, layouts, costs).Build();
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
    plan.layouts = {vars.in_layouts[in], vars.out_layouts[out]};
    if (!vars.records.empty()) {
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
