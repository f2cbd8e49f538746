#include "graph_tuner/problem/build_problem.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "graph_tuner/costs/layout_forms.h"
#include "graph_tuner/plan/concat_slices.h"
#include "graph_tuner/plan/crossings.h"
#include "layouts/base/check.h"
#include "ops/conv/conv.h"
#include "ops/dense/tasks.h"

namespace tilesmith {
namespace {

// A layout, and whose what is computed with it is.
struct Form {
  Layout layout;
  Ownership owned;
};

inline bool SameForm(const Shape& shape, const Form& a, const Form& b) {
  return a.owned == b.owned && SameForm(shape, a.layout, b.layout);
}

// Which of the forms, layouts or with their owners, that is for a tensor of this shape; their number where it
// is none of them.
template <typename AnyForm>
int FindForm(const std::vector<AnyForm>& forms, const Shape& shape, const AnyForm& form) {
  const auto found =
      std::ranges::find_if(forms, [&](const AnyForm& known) { return SameForm(shape, known, form); });
  return static_cast<int>(found - forms.begin());
}

// The same; one more where it is none yet.
template <typename AnyForm>
int IndexOfForm(std::vector<AnyForm>& forms, const Shape& shape, const AnyForm& form) {
  const int index = FindForm(forms, shape, form);
  if (index == std::ssize(forms)) forms.push_back(form);
  return index;
}

// A pair of nodes that there are fused candidates for.
struct Fusion {
  FusablePair pair;
  std::vector<DealtRecord> records;
  std::vector<Form> forms;    // distinct ones that the records read
  std::vector<bool> as_even;  // of each, whether one of them is of a deal so (Deal::as_even)

  int Index(const DealtRecord& dealt) const {
    return FindForm(forms, pair.workload.input_shape(), {dealt.record->layouts.in, dealt.deal.ownership});
  }
};

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

class Builder {
 public:
  Builder(const DealtCandidates& candidates, const TolerantLayouts& layouts, Crossings& crossings,
          const Corrections& corrections, const ConvPrice& price)
      : graph_(crossings.graph()),
        candidates_(candidates),
        layouts_(layouts),
        costs_(crossings.costs()),
        crossings_(crossings),
        corrections_(corrections),
        price_(price),
        slices_(ConcatSlices(graph_)) {
    built_.nodes.resize(graph_.size());
    FindFusions();
  }

  BuiltProblem Build() {
    for (NodeId id = 0; id < graph_.size(); ++id) {
      if (IsConstant(graph_, id)) continue;
      const std::optional<ConvWorkload> task = TaskOf(graph_, id);
      if (task && candidates_.contains(WorkloadToString(*task)))
        AddTask(id, *task);
      else
        AddTolerant(id);
    }
    for (NodeId id = 0; id < graph_.size(); ++id)
      if (!IsConstant(graph_, id)) AddTensor(id);
    for (const Fusion& fusion : fusions_) TieFused(fusion);
    for (NodeId id = 0; id < graph_.size() && crossings_.priced(); ++id)
      if (!IsConstant(graph_, id)) AddCrossings(id);
    return std::move(built_);
  }

 private:
  void FindFusions() {
    for (FusablePair& pair : FusablePairs(graph_)) {
      const auto found = candidates_.find(WorkloadToString(pair.workload));
      if (found == candidates_.end() || found->second.empty()) continue;
      Fusion fusion{pair, found->second, {}, {}};
      for (const DealtRecord& dealt : fusion.records) {
        const int form = IndexOfForm(fusion.forms, pair.workload.input_shape(),
                                     {dealt.record->layouts.in, dealt.deal.ownership});
        fusion.as_even.resize(fusion.forms.size());
        if (dealt.deal.as_even) fusion.as_even[static_cast<size_t>(form)] = true;
      }
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

  // One way to compute a conv: options of its two variables, and what does it.
  struct Choice {
    int in = 0, out = 0;
    DealtRecord dealt;
  };

  // A conv, or a product, whose two variables have one option each.
  void AddTask(NodeId id, const ConvWorkload& workload) {
    const auto& records = candidates_.at(WorkloadToString(workload));
    TILESMITH_CHECK(!records.empty(), "no candidate for {}", WorkloadToString(workload));
    const Fusion *before = FusionBefore(id), *behind = FusionBehind(id);
    std::vector<Form> ins, outs;
    std::vector<Choice> choices;
    const auto index_of_out = [&](const DealtRecord& dealt) {
      return IndexOfForm(outs, workload.output_shape(), {dealt.record->layouts.out, dealt.deal.ownership});
    };
    for (const DealtRecord& dealt : records) {
      const Form read = {dealt.record->layouts.in, dealt.deal.ownership};
      choices.push_back({IndexOfForm(ins, workload.input_shape(), read), index_of_out(dealt), dealt});
    }
    std::vector<int> read_when_fused;  // this conv's input, for each form that it is fused behind with
    for (size_t f = 0; behind && f < behind->forms.size(); ++f)
      read_when_fused.push_back(IndexOfForm(ins, workload.input_shape(), behind->forms[f]));
    for (size_t i = 0; before && i < before->records.size(); ++i) {
      const DealtRecord& dealt = before->records[i];
      choices.push_back({static_cast<int>(ins.size()) + before->Index(dealt), index_of_out(dealt), dealt});
    }
    NodeVariables& vars = built_.nodes[id];
    SetOptions(ins, before, vars.in_layouts, vars.in_owners);
    SetOptions(outs, behind, vars.out_layouts, vars.out_owners);
    CostMatrix seconds = AddConvVariables(id, choices);
    for (size_t f = 0; f < read_when_fused.size(); ++f) {
      seconds.at(read_when_fused[f], static_cast<int>(outs.size() + f)) = 0;
      vars.as_even[static_cast<size_t>(read_when_fused[f])][outs.size() + f] = behind->as_even[f];
    }
    built_.problem.AddPairwise(*vars.in, *vars.out, seconds);
  }

  // Those of a variable of a conv: its forms, and the fused ones, which have no layout.
  static void SetOptions(const std::vector<Form>& forms, const Fusion* fusion,
                         std::vector<std::optional<Layout>>& layouts, std::vector<Ownership>& owners) {
    for (const Form& form : forms) {
      layouts.emplace_back(form.layout);
      owners.push_back(form.owned);
    }
    for (size_t f = 0; fusion && f < fusion->forms.size(); ++f) {
      layouts.emplace_back();
      owners.push_back(fusion->forms[f].owned);
    }
  }

  // The variables of a conv whose layouts are known, and the seconds of its choices.
  CostMatrix AddConvVariables(NodeId id, const std::vector<Choice>& choices) {
    NodeVariables& vars = built_.nodes[id];
    const size_t ins = vars.in_layouts.size(), outs = vars.out_layouts.size();
    CostMatrix seconds(static_cast<int>(ins), static_cast<int>(outs));
    std::fill(seconds.values.begin(), seconds.values.end(), kForbidden);
    vars.records.assign(ins, std::vector<const Record*>(outs, nullptr));
    vars.as_even.assign(ins, std::vector<bool>(outs));
    const std::string& name = graph_.node(id).name;
    for (const Choice& choice : choices) {
      const Record& record = *choice.dealt.record;
      const Deal& deal = choice.dealt.deal;
      double corrected =
          corrections_.ConvSeconds(name, record, {.split = deal.ownership.split, .balance = deal.balance}) +
          price_.Of(name, record);
      if (crossings_.priced())
        corrected +=
            corrections_.CrossingScale(name) *
            (choice.dealt.weight_seconds + crossings_.WriteSeconds(id, record.layouts.out, deal.ownership));
      if (corrected >= seconds.at(choice.in, choice.out)) continue;
      seconds.at(choice.in, choice.out) = corrected;
      vars.records[static_cast<size_t>(choice.in)][static_cast<size_t>(choice.out)] = &record;
      vars.as_even[static_cast<size_t>(choice.in)][static_cast<size_t>(choice.out)] = deal.as_even;
    }
    vars.in = built_.problem.AddVariable(name + " in", std::vector<double>(ins, 0.0));
    vars.out = built_.problem.AddVariable(name + " out", std::vector<double>(outs, 0.0));
    return seconds;
  }

  void AddTolerant(NodeId id) {
    NodeVariables& vars = built_.nodes[id];
    std::vector<double> seconds;
    std::vector<bool> as_even;
    for (const Layout& layout : LayoutsOfNode(graph_, id, layouts_)) {
      for (const Deal& deal : crossings_.DealsOf(id, layout)) {
        const Op& op = *graph_.node(id).op;
        vars.in_layouts.emplace_back(layout);
        vars.out_layouts.emplace_back(
            TensorLayout(graph_.node(id), op.IsView() ? op.LayoutsOfView().out : layout));
        vars.in_owners.push_back(deal.ownership);
        as_even.push_back(deal.as_even);
        seconds.push_back(TolerantOption(id, layout, deal));
      }
    }
    if (const Fusion* behind = FusionBehind(id)) {
      for (const Form& form : behind->forms) {
        vars.in_layouts.emplace_back(form.layout);
        vars.in_owners.push_back(form.owned);
      }
      as_even.insert(as_even.end(), behind->as_even.begin(), behind->as_even.end());
      vars.out_layouts.resize(vars.in_layouts.size());
      seconds.resize(vars.in_layouts.size(), 0.0);
    }
    vars.out_owners = vars.in_owners;
    vars.as_even.assign(as_even.size(), std::vector<bool>(as_even.size()));
    for (size_t option = 0; option < as_even.size(); ++option) vars.as_even[option][option] = as_even[option];
    vars.in = vars.out = built_.problem.AddVariable(graph_.node(id).name, std::move(seconds));
  }

  // The seconds of a node that is no conv, what it reads from others aside.
  double TolerantOption(NodeId id, const Layout& layout, const Deal& deal) {
    const std::string& name = graph_.node(id).name;
    double seconds =
        corrections_.OpSeconds(name, NodeLayouts(graph_, id, layout, layout).in,
                               crossings_.OwnSeconds(id, layout, deal), {.split = deal.ownership.split});
    if (!graph_.node(id).op->IsView())
      seconds += corrections_.CrossingScale(name) * crossings_.WriteSeconds(id, layout, deal.ownership);
    const std::vector<NodeId> inputs = graph_.Inputs(id);
    for (size_t slot = 0; slot < inputs.size(); ++slot) {
      if (IsConstant(graph_, inputs[slot]) && MustFillSlice(graph_, slices_, {id, slot}, layout))
        seconds +=
            CorrectedFill(inputs[slot], TensorLayout(graph_.node(inputs[slot]), Layout::Nchw()), layout);
    }
    return seconds;
  }

  // Both nodes are fused, and read the same layout, or neither is.
  void TieFused(const Fusion& fusion) {
    const NodeVariables &first = built_.nodes[fusion.pair.first], &conv = built_.nodes[fusion.pair.conv];
    CostMatrix tie(static_cast<int>(first.out_layouts.size()), static_cast<int>(conv.in_layouts.size()));
    const int options = static_cast<int>(fusion.forms.size());
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
    CostMatrix convert(static_cast<int>(vars.out_layouts.size()), static_cast<int>(forms.size()));
    CostMatrix crossing = convert;
    for (int i = 0; i < convert.rows; ++i) {
      const auto from = vars.out_layouts.begin() + i;
      const auto alike = std::find(vars.out_layouts.begin(), from, *from);  // another owner's
      for (int j = 0; j < convert.cols; ++j) {
        const Layout& to = forms[static_cast<size_t>(j)];
        if (*from && !SameForm(shape, **from, to)) crossing.at(i, j) = ConversionCrossing(id, i, to);
        if (alike != from) {
          convert.at(i, j) = convert.at(static_cast<int>(alike - vars.out_layouts.begin()), j);
        } else if (*from && !SameForm(shape, **from, to)) {
          convert.at(i, j) = corrections_.ConversionSeconds(graph_.node(id), **from, to,
                                                            costs_.TransformSeconds(shape, **from, to));
        }
      }
    }
    for (size_t i = 0; i < convert.values.size(); ++i) convert.values[i] += crossing.values[i];
    AddConversions(built_.problem, *vars.out, convert, uses);
  }

  // What the tensor's option costs by the prices of crossing.
  double ConversionCrossing(NodeId id, int option, const Layout& to) {
    const NodeVariables& vars = built_.nodes[id];
    const auto i = static_cast<size_t>(option);
    if (!crossings_.priced() || IsConstant(graph_, id)) return 0;
    return corrections_.ConversionScale(graph_.node(id).name) *
           crossings_.ConversionSeconds(id, *vars.out_layouts[i], TensorLayout(graph_.node(id), to),
                                        vars.out_owners[i]);
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
    CostMatrix fill(static_cast<int>(from.out_layouts.size()), static_cast<int>(to.size()));
    bool any = false;
    for (int j = 0; j < fill.cols; ++j) {
      if (!to[static_cast<size_t>(j)] || !MustFillSlice(graph_, slices_, input, *to[static_cast<size_t>(j)]))
        continue;
      any = true;
      for (int i = 0; i < fill.rows; ++i) {
        const Layout& written = from.out_layouts[static_cast<size_t>(i)].value();
        fill.at(i, j) = CorrectedFill(tensor, written, *to[static_cast<size_t>(j)]) +
                        ConversionCrossing(tensor, i, *to[static_cast<size_t>(j)]);
      }
    }
    if (any) built_.problem.AddPairwise(*from.out, ReadingVariable(input), fill);
  }

  // What the consumers of a tensor wait for since other threads wrote it.
  void AddCrossings(NodeId id) {
    for (const NodeId consumer : graph_.Consumers(id)) {
      const std::vector<NodeId> inputs = graph_.Inputs(consumer);
      for (size_t slot = 0; slot < inputs.size(); ++slot)
        if (inputs[slot] == id) AddCrossing(id, {consumer, slot});
    }
  }

  void AddCrossing(NodeId id, const InputSlot& input) {
    const NodeVariables& from = built_.nodes[id];
    const NodeVariables& reader = built_.nodes[input.consumer];
    const std::vector<std::optional<Layout>>& layouts = ReadingLayouts(input);
    CostMatrix seconds(static_cast<int>(from.out_layouts.size()), static_cast<int>(layouts.size()));
    for (int j = 0; j < seconds.cols; ++j) {
      if (!layouts[static_cast<size_t>(j)]) continue;
      TensorRead read{.tensor = id, .reader = input.consumer};
      read.owner = (input.slot == 0 ? reader.in_owners : reader.out_owners)[static_cast<size_t>(j)].owner;
      read.moved = MustFillSlice(graph_, slices_, input, *layouts[static_cast<size_t>(j)]);
      const double scale = ReadingScale(input, j, read);
      read.to = TensorLayout(graph_.node(id),
                             InputOrder(graph_.node(input.consumer), *layouts[static_cast<size_t>(j)]));
      std::array<std::optional<double>, kOwners> by_owner;
      for (int i = 0; i < seconds.rows && scale > 0; ++i) {
        if (!from.out_layouts[static_cast<size_t>(i)]) continue;
        read.from = *from.out_layouts[static_cast<size_t>(i)];
        read.written = from.out_owners[static_cast<size_t>(i)];
        const Owner owner = crossings_.OwnerRead(read);
        std::optional<double>& known = by_owner[static_cast<size_t>(owner)];
        if (!known) known = scale * crossings_.ReadSeconds(read, owner);
        seconds.at(i, j) = *known;
      }
    }
    built_.problem.AddPairwise(*from.out, ReadingVariable(input), seconds);
  }

  // How an option's reads are charged, relative to their price, and what conv they are for. A conv that is
  // computed in front of another one reads as it does by itself.
  double ReadingScale(const InputSlot& input, int option, TensorRead& read) {
    const NodeVariables& vars = built_.nodes[input.consumer];
    const Node& node = graph_.node(input.consumer);
    const double corrected = corrections_.CrossingScale(node.name);
    const auto* conv = graph_.As<ConvolutionOp>(input.consumer);
    if (conv && input.slot == 0 && !vars.records.empty()) read.conv = &conv->workload();
    if (vars.records.empty() && !vars.out_layouts[static_cast<size_t>(option)])
      read.conv = &FusionBehind(input.consumer)->pair.workload;
    return corrected;
  }

  double CorrectedFill(NodeId tensor, const Layout& from, const Layout& into) {
    const Node& node = graph_.node(tensor);
    const Layout to = TensorLayout(node, into);
    return corrections_.ConversionSeconds(node, from, to, FillSeconds(node.shape, from, to, costs_));
  }

  const Graph& graph_;
  const DealtCandidates& candidates_;
  const TolerantLayouts& layouts_;
  CostSource& costs_;
  Crossings& crossings_;
  const Corrections& corrections_;
  const ConvPrice& price_;
  const Slices slices_;
  std::vector<Fusion> fusions_;
  BuiltProblem built_;
};

}  // namespace

DealtCandidates DealAll(const Candidates& candidates, Crossings& crossings) {
  DealtCandidates dealt;
  for (const auto& [workload, records] : candidates) {
    std::vector<DealtRecord>& of_workload = dealt[workload];
    for (const Record& record : records)
      for (const Deal& deal : crossings.DealsOf(record))
        of_workload.push_back({&record, deal, crossings.WeightSeconds(record, deal.ownership.split)});
  }
  return dealt;
}

BuiltProblem BuildProblem(const DealtCandidates& candidates, const TolerantLayouts& layouts,
                          Crossings& crossings, const Corrections& corrections, const ConvPrice& price) {
  return Builder(candidates, layouts, crossings, corrections, price).Build();
}

}  // namespace tilesmith
