#include "graph_tuner/check/network_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include "graph_tuner/check/compare.h"
#include "graph_tuner/check/rounding_bounds.h"
#include "graph_tuner/check/step_memory.h"
#include "graph_tuner/executor/compiled_network.h"
#include "graph_tuner/executor/end_tensors.h"
#include "graph_tuner/executor/schedule.h"
#include "layouts/base/check.h"
#include "templates/base/conv_error.h"

namespace tilesmith {
namespace {

// One step's output beside the reference's.

struct StepCheck {
  double difference = 0, allowed = 0;  // at the element nearest to its bound, or furthest beyond it
  int64_t spread = 0;                  // elements that are not finite where the exact one is
  std::string wrong;                   // "", or what is wrong
};

// Elements of other types than f32 must be the same. bound: what each element may be off; where that is not
// finite, anything. With may_spread, an element may be NaN or infinite where the exact one is finite.
StepCheck CompareStep(const Tensor& got, const Tensor& exact, const Tensor& bound, bool may_spread) {
  StepCheck check;
  if (exact.type() != DataType::kF32) {
    int64_t first = 0;
    const int64_t different = CountDifferent(got, exact, &first);
    if (different == 0) return check;
    check.wrong = fmt::format("{} is {}, should be {} ({} of {} elements are wrong)",
                              DescribeElement(exact.shape(), first), ElementText(got, first),
                              ElementText(exact, first), different, exact.size());
    return check;
  }
  double worst = -1;
  int64_t wrong = 0, worst_wrong = 0;
  for (int64_t i = 0; i < exact.size(); ++i) {
    const float have = got.floats()[i], want = exact.floats()[i];
    if (SameNonFinite(have, want)) continue;
    const bool numbers = std::isfinite(have) && std::isfinite(want);
    if (!numbers && may_spread && std::isfinite(want)) {
      ++check.spread;
      continue;
    }
    const double allowed = bound.floats()[i], difference = std::abs(double{have} - want);
    if (numbers && !std::isfinite(allowed)) continue;
    if (numbers && difference <= std::min(worst, 1.0) * allowed) continue;
    const double ratio = !numbers         ? INFINITY
                         : allowed > 0    ? difference / allowed
                         : difference > 0 ? INFINITY
                                          : 0;
    wrong += ratio > 1;
    if (!(ratio > worst)) continue;
    worst = ratio;
    check.difference = difference;
    check.allowed = allowed;
    worst_wrong = i;
  }
  if (wrong > 0) {
    check.wrong = fmt::format("{} is {:.9g}, should be {:.9g} +- {:.2g} ({} of {} elements are wrong)",
                              DescribeElement(exact.shape(), worst_wrong), got.floats()[worst_wrong],
                              exact.floats()[worst_wrong], check.allowed, wrong, exact.size());
  }
  return check;
}

using NodeId = Graph::NodeId;

// A node's output by the reference, and by the reference with rounding errors behind every step so far.
struct NodeValue {
  Tensor exact;
  const Tensor* given = nullptr;  // of graph inputs, instead of `exact`
  bool rounded = false;           // the draws differ from the exact one; else they are empty
  std::array<Tensor, kDraws> draws;
  int uses_left = 0;

  const Tensor& value() const { return given ? *given : exact; }
  const Tensor& draw(int k) const { return rounded ? draws[k] : value(); }
};

class Signs {  // splitmix64, a bit at a time
 public:
  float Next() {
    if (left_ == 0) {
      uint64_t z = (state_ += 0x9E3779B97F4A7C15u);
      z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
      bits_ = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
      left_ = 64;
    }
    --left_;
    return (bits_ >> left_ & 1) != 0 ? 1.0F : -1.0F;
  }

 private:
  uint64_t state_ = 1, bits_ = 0;
  int left_ = 0;
};

class Walk {
 public:
  Walk(Executor& executor, const Graph& graph, const Plan& plan, const Target& cpu,
       const std::vector<Tensor>& inputs)
      : executor_(executor),
        graph_(graph),
        schedules_(ResolveSchedules(graph, plan, cpu)),
        plain_inputs_(inputs),
        inputs_(InputsIn(plan.ends.inputs, graph, inputs)),
        outputs_(OutputTensors(plan.ends.outputs, graph)),
        values_(graph.size()),
        step_of_(graph.size(), -1) {}

  NetworkCheck Run() {
    const auto inputs = PointersTo<const Tensor*>(inputs_);
    const auto outputs = PointersTo<Tensor*>(outputs_);
    executor_.Run(inputs, outputs);
    std::vector<Tensor> computed;
    computed.reserve(outputs_.size());
    for (const Tensor& output : outputs_) computed.push_back(InLayout(output, Layout::Nchw(output.type())));
    steps_ = executor_.BindSteps(inputs, outputs);
    CountUses();
    for (NodeId id = 0; id < graph_.size(); ++id)
      if (schedules_[id].live) Compute(id);
    RunStepsBefore(steps_.size());
    CompareOutputs(computed);
    return std::move(check_);
  }

 private:
  void CountUses() {
    const std::vector<NodeId> ids = graph_.GraphInputs();
    for (size_t i = 0; i < ids.size(); ++i) values_[ids[i]].given = &plain_inputs_[i];
    for (NodeId id = 0; id < graph_.size(); ++id) {
      if (!schedules_[id].live) continue;
      values_[id].uses_left += graph_.IsOutput(id) ? 1 : 0;
      for (const NodeId source : Sources(id)) ++values_[source].uses_left;
    }
    for (size_t i = 0; i < steps_.size(); ++i) {
      if (steps_[i].computes) step_of_[steps_[i].node] = static_cast<int>(i);
      for (const NodeId node : Reads(steps_[i])) ++values_[node].uses_left;
    }
  }

  std::set<NodeId> Sources(NodeId id) const {
    const std::vector<NodeId> inputs = graph_.Inputs(id);
    return {inputs.begin(), inputs.end()};
  }
  static std::set<NodeId> Reads(const BoundStep& step) {
    std::set<NodeId> nodes;
    for (const StepTensor& input : step.inputs) nodes.insert(input.node);
    return nodes;
  }

  void Release(const std::set<NodeId>& nodes) {
    for (const NodeId node : nodes) {
      NodeValue& value = values_[node];
      if (--value.uses_left > 0) continue;
      value.exact = Tensor();
      for (Tensor& draw : value.draws) draw = Tensor();
    }
  }

  // The node's value and draws, and its step if it has one.
  void Compute(NodeId id) {
    NodeValue& value = values_[id];
    if (value.given != nullptr) return;
    const std::vector<NodeId> sources = graph_.Inputs(id);
    const Op& op = *graph_.node(id).op;
    const auto evaluate = [&](const auto& of) {
      std::vector<const Tensor*> arguments;
      arguments.reserve(sources.size());
      for (const NodeId source : sources) arguments.push_back(&of(values_[source]));
      return op.Reference(arguments);
    };
    value.exact = evaluate([](const NodeValue& v) -> const Tensor& { return v.value(); });
    value.rounded = std::ranges::any_of(sources, [&](NodeId source) { return values_[source].rounded; });
    if (value.rounded) {
      for (int k = 0; k < kDraws; ++k)
        value.draws[k] = evaluate([k](const NodeValue& v) -> const Tensor& { return v.draw(k); });
    }
    if (step_of_[id] >= 0) RunStepsBefore(static_cast<size_t>(step_of_[id]) + 1);
    Release(Sources(id));
  }

  void RunStepsBefore(size_t end) {
    for (; next_step_ < end; ++next_step_) {
      RunStep(next_step_);
      Release(Reads(steps_[next_step_]));
    }
  }

  void RunStep(size_t index) {
    const BoundStep& step = steps_[index];
    for (size_t i = 0; i < step.inputs.size(); ++i) {
      const Tensor exact = Stored(values_[step.inputs[i].node].value(), step.inputs[i]);
      const InputView& memory = step.input_memory[i];
      const SeenMemory seen(executor_.device(), step.inputs[i], memory.data, memory.batch_stride);
      const auto changed = FirstChanged(exact, step.inputs[i], seen.view());
      if (!changed) continue;
      Wrong(step,
            fmt::format("its input \"{}\" was written over before it ran: {}",
                        graph_.node(step.inputs[i].node).name, DescribeElement(exact.shape(), *changed)));
    }
    executor_.RunStep(index);
    NodeValue& value = values_[step.node];
    SeenMemory written(executor_.device(), step.output, step.output_memory.data,
                       step.output_memory.batch_stride);
    const Tensor got = InLayout(ReadPlain(step.output, written.view()), value.value().layout());
    const Tensor bound =
        step.computes ? BoundOf(step, value) : ConversionBound(value.value(), MovedType(step));
    const StepCheck compared = CompareStep(got, value.value(), bound, step.computes && MaySpread(step.node));
    ++check_.steps;
    check_.spread += compared.spread;
    NoteWorst(step, compared);
    if (!compared.wrong.empty()) Wrong(step, compared.wrong);
    if (!PaddingIsZero(step.output, written.view())) Wrong(step, "its padding is not zero");
    WritePlain(Stored(value.value(), step.output), step.output, written.writable());
    written.PutBack();
    if (step.computes && got.type() == DataType::kF32) AddErrors(value, got, bound);
  }

  // An algorithm that computes neighbouring outputs together takes a NaN from one to the others.
  bool MaySpread(NodeId id) const {
    const NodeSchedule& schedule = schedules_[id];
    return schedule.conv_template != nullptr &&
           schedule.conv_template->ErrorFactor(schedule.workload, schedule.config) != 1;
  }

  // A plain tensor as a step stores it, but for the order.
  static Tensor Stored(const Tensor& plain, const StepTensor& tensor) {
    return InLayout(plain, Layout::Nchw(tensor.layout.type()));
  }

  // The type of a step that computes nothing is that of fewer bits on its two sides.
  static DataType MovedType(const BoundStep& step) {
    const DataType in = step.inputs[0].layout.type();
    return in == DataType::kF32 ? step.output.layout.type() : in;
  }

  Tensor BoundOf(const BoundStep& step, const NodeValue& value) const {
    const NodeSchedule& schedule = schedules_[step.node];
    std::vector<const Tensor*> inputs;
    inputs.reserve(step.inputs.size());
    for (const StepTensor& input : step.inputs) inputs.push_back(&values_[input.node].value());
    const Op& op = *graph_.node(step.node).op;
    const auto* floats = dynamic_cast<const ConvOp*>(&op);
    if (schedule.conv_template == nullptr || floats == nullptr)
      return OpRoundingBound(op, inputs, value.exact, schedule.out.type());
    ConvStep conv{.schedule = schedule, .conv = *floats, .output = &value.exact};
    if (schedule.first) {
      conv.first = graph_.node(*schedule.first).op.get();
      conv.middle = &values_[*schedule.first].value();
    }
    return ConvRoundingBound(conv, inputs);
  }

  void AddErrors(NodeValue& value, const Tensor& got, const Tensor& bound) {
    std::vector<float> errors(got.size());
    bool any = false;
    for (int64_t i = 0; i < got.size(); ++i) {
      const float error = got.floats()[i] - value.exact.floats()[i], most = bound.floats()[i];
      if (!std::isfinite(error) || !std::isfinite(most)) continue;
      errors[i] = std::clamp(error, -most, most);
      any |= errors[i] != 0;
    }
    if (!any) return;
    if (!value.rounded) value.draws.fill(value.exact);
    value.rounded = true;
    for (size_t i = 0; i < errors.size(); ++i) {
      value.draws[0].floats()[i] += errors[i];
      for (int k = 1; k < kDraws; ++k) value.draws[k].floats()[i] += signs_.Next() * errors[i];
    }
  }

  void Wrong(const BoundStep& step, const std::string& what) {
    if (!check_.wrong.empty()) return;
    check_.wrong = fmt::format("step \"{}\" ({}), on the reference's inputs: {}", step.name, step.kind, what);
  }

  void NoteWorst(const BoundStep& step, const StepCheck& compared) {
    const auto ratio = [](double difference, double allowed) {
      return difference == 0 ? 0 : allowed > 0 ? difference / allowed : INFINITY;
    };
    const double now = ratio(compared.difference, compared.allowed);
    if (!(now > ratio(check_.worst_step_difference, check_.worst_step_allowed))) return;
    check_.worst_step = step.name;
    check_.worst_step_difference = compared.difference;
    check_.worst_step_allowed = compared.allowed;
  }

  void CompareOutputs(const std::vector<Tensor>& computed) {
    double nearest = -1;
    for (size_t k = 0; k < computed.size(); ++k) {
      const Node& node = graph_.node(graph_.outputs()[k]);
      const NodeValue& value = values_[graph_.outputs()[k]];
      const TensorDifference difference = CompareTensors(computed[k], value.value());
      check_.not_numbers += difference.not_numbers;
      double rounding = 0;
      for (int draw = 0; draw < kDraws; ++draw)
        rounding = std::max(rounding, CompareTensors(value.draw(draw), value.value()).relative);
      const bool floats = IsFloating(node.type);
      // Numbers of 16 bits that hardly differ may be rounded to neighbours.
      const double floor = floats ? kAllowedDifference + 2 * HalfUlp(node.type) : 0;
      const double allowed = AllowedDifference(rounding, floor);
      const double near = difference.relative > 0 ? difference.relative / allowed : 0;
      if (near > nearest) {
        nearest = near;
        check_.output = node.name;
        check_.difference = difference.relative;
        check_.rounding = rounding;
        check_.allowed = allowed;
      }
      if (!check_.wrong.empty()) continue;
      if (difference.one_sided >= 0 && check_.spread == 0) {
        const int64_t at = difference.one_sided;
        check_.wrong =
            fmt::format("output \"{}\": {} is {}, should be {}", node.name, DescribeElement(node.shape, at),
                        ElementText(computed[k], at), ElementText(value.value(), at));
      } else if (!(difference.relative <= allowed)) {
        check_.wrong = fmt::format(
            "output \"{}\" differs from the reference by {:.1e} of {} (allowed: {:.1e}, as the network "
            "makes {:.1e} of its kernels' rounding), though every step is right by itself",
            node.name, difference.relative, floats ? "the largest" : "its elements", allowed, rounding);
      }
    }
  }

  Executor& executor_;
  const Graph& graph_;
  const std::vector<NodeSchedule> schedules_;
  const std::vector<Tensor>& plain_inputs_;
  std::vector<Tensor> inputs_, outputs_;
  std::vector<NodeValue> values_;  // by node
  std::vector<int> step_of_;       // by node: the step that computes it, or -1
  std::vector<BoundStep> steps_;
  size_t next_step_ = 0;
  Signs signs_;
  NetworkCheck check_;
};

// Which of the plan's nodes ends each region: "region 1 ends with "conv4"", ...
std::string RegionEnds(const Plan& plan) {
  std::map<int, std::string_view> ends;
  for (const NodePlan& node : plan.nodes)
    if (node.region > 0) ends[node.region] = node.node;
  std::string text;
  for (const auto& [region, node] : ends)
    text += fmt::format("{}region {} ends with \"{}\"", text.empty() ? "" : ", ", region, node);
  return text;
}

// "", or in what regions do not give what their layers give one after the other.
std::string DifferenceOfRegions(Executor& regions, Executor& layers, const Graph& graph, const Plan& plan,
                                const std::vector<Tensor>& plain) {
  const std::vector<Tensor> inputs = InputsIn(plan.ends.inputs, graph, plain);
  std::vector<Tensor> got = OutputTensors(plan.ends.outputs, graph), expected = got;
  regions.Run(PointersTo<const Tensor*>(inputs), PointersTo<Tensor*>(got));
  layers.Run(PointersTo<const Tensor*>(inputs), PointersTo<Tensor*>(expected));
  for (size_t k = 0; k < got.size(); ++k) {
    const Layout order = Layout::Nchw(got[k].type());
    const Tensor have = InLayout(got[k], order), want = InLayout(expected[k], order);
    int64_t first = 0;
    const int64_t different = CountDifferent(have, want, &first);
    if (different == 0) continue;
    return fmt::format(
        "output \"{}\": {} is {}, layer by layer {} ({} of {} elements are not the same bits); {}",
        graph.node(graph.outputs()[k]).name, DescribeElement(want.shape(), first), ElementText(have, first),
        ElementText(want, first), different, want.size(), RegionEnds(plan));
  }
  return "";
}

}  // namespace

double AllowedDifference(double rounding, double floor) {
  return std::max(floor, kRoundingFactor * rounding);
}

NetworkCheck CheckNetwork(Executor& executor, const Graph& graph, const Plan& plan, const Target& cpu,
                          const std::vector<Tensor>& inputs) {
  if (plan.regions.empty()) return Walk(executor, graph, plan, cpu, inputs).Run();
  const Plan whole = WithoutRegions(plan);
  Executor layers(graph, whole, executor.network().device, executor.stop());
  NetworkCheck check = Walk(layers, graph, whole, cpu, inputs).Run();
  if (check.wrong.empty()) check.wrong = DifferenceOfRegions(executor, layers, graph, plan, inputs);
  return check;
}

std::string DescribeAllowed(const NetworkCheck& check) {
  if (check.allowed > kAllowedDifference && check.allowed <= kRoundingFactor * check.rounding) {
    return fmt::format("{:.1e}, {:.0f} times the {:.1e} that the network makes of its kernels' rounding",
                       check.allowed, kRoundingFactor, check.rounding);
  }
  return fmt::format("{:.1e}, as in any network (this one makes {:.1e} of its kernels' rounding)",
                     check.allowed, check.rounding);
}

}  // namespace tilesmith
