#include "graph_tuner/executor/heuristic_plan.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <span>

#include "graph_tuner/executor/compiled_network.h"
#include "graph_tuner/executor/ownership.h"
#include "graph_tuner/executor/program.h"
#include "graph_tuner/executor/schedule.h"
#include "graph_tuner/plan/crossings.h"
#include "graph_tuner/plan/plan.h"
#include "layouts/base/error.h"
#include "layouts/base/thread_team.h"
#include "ops/base/op.h"
#include "ops/conv/conv.h"
#include "ops/dense/tasks.h"
#include "templates/base/loop_features.h"
#include "templates/base/row_tiles.h"

namespace tilesmith {
namespace {

using NodeId = Graph::NodeId;

// The op's own, or that of the first input that is computed, when the op runs in it.
Layout LayoutOfOp(const Graph& graph, NodeId id, const std::vector<Layout>& layouts) {
  if (const auto layout = graph.node(id).op->DefaultLayout()) {
    if (NodeRunsIn(graph, id, *layout)) return *layout;
  }
  for (const NodeId input : graph.Inputs(id)) {
    if (graph.As<ConstantOp>(input) != nullptr) continue;
    const Layout layout = layouts[input].WithType(DataType::kF32);
    return NodeRunsIn(graph, id, layout) ? layout : Layout::Nchw();
  }
  return Layout::Nchw();
}

// Whether a conv reads the rows of a dense layer (LowerDense) where they are, that is, in NHWC.
bool ReadsRows(const Graph& graph, NodeId id, const ConvWorkload& w, const std::vector<Layout>& layouts) {
  const NodeId input = graph.Inputs(id)[0];
  const bool arrives =
      layouts[input].is_nhwc() ||
      (graph.node(input).op->IsView() && SameMemory(w.input_shape(), layouts[input], Layout::Nhwc()));
  return w.ih == 1 && CanFlatten(w) && arrives;
}

// What a style of plan is made of. Records are kept by workload, since networks repeat theirs.
struct Defaults {
  const Target& cpu;
  int threads = 1;
  DefaultStyle style = DefaultStyle::kBlocks;
  RecordOfTask given = {};  // instead, where there is one
  std::map<std::string, Record> records = {};

  const Record& Of(const ConvWorkload& workload) {
    const auto [found, is_new] = records.try_emplace(WorkloadToString(workload));
    if (is_new) found->second = DefaultRecord(workload, cpu, threads, style);
    return found->second;
  }
};

Record RecordOf(const Graph& graph, NodeId id, const std::vector<Layout>& layouts, Defaults& defaults) {
  const ConvWorkload& w = graph.As<ConvOp>(id)->workload();
  const Target& cpu = defaults.cpu;
  if (defaults.given) return defaults.given(w).value();
  Record record = defaults.Of(w);
  if (!ReadsRows(graph, id, w, layouts)) return record;
  const ConvTemplate& conv_template = FindConvTemplate(record.template_name);
  const ConfigSpace space = conv_template.Space(w, cpu);
  const LayoutPair rows = {Layout::Nhwc(), Layout::Nhwc()};
  const std::optional<Config> config = conv_template.WithLayouts(w, space, record.config, rows);
  if (config && space.WhyInvalid(*config).empty()) record.config = *config, record.layouts = rows;
  return record;
}

// Gives its record to a node that could do without one (NeedsRecord).
void GiveRecord(const Graph& graph, NodeId id, const RecordOfTask& given, NodePlan& node) {
  const std::optional<ConvWorkload> task = TaskOf(graph, id);
  if (!task) return;
  node.record = given(*task);
  if (node.record && task->bytes) node.layouts = node.record->layouts;
}

// Even shares are rows where tasks lie in their order; a split sees to it where they do not.
Split SplitOf(const Record& record, const Target& cpu, int threads) {
  const TaskGrid grid = FindConvTemplate(record.template_name).Grid(record.workload, record.config, cpu);
  const bool in_order = grid.channels_inner || grid.channels == 1;
  return !in_order && grid.Can(Split::kRows) && grid.rows >= threads ? Split::kRows : Split::kEven;
}

std::vector<TransformPlan> NeededTransforms(const Graph& graph, const Program& program) {
  std::vector<TransformPlan> transforms;
  for (const Step& step : program.steps) {
    if (step.kind != StepKind::kTransform) continue;
    const Layout& from = program.values[step.reads[0]].layout;
    const Layout& to = program.values[step.write].layout;
    const std::string& tensor = graph.node(step.node).name;
    const bool known = std::any_of(transforms.begin(), transforms.end(), [&](const TransformPlan& other) {
      return other.tensor == tensor && other.from == from && other.to == to;
    });
    if (!known) transforms.push_back({tensor, from, to, 0});
  }
  return transforms;
}

// The cycles of the busiest core, where templates estimate them; moves and crossings as on near cores, where
// a style has the least to gain from keeping rows. Pooling, depthwise convs and those of bytes take the same
// in both styles.
double CyclesOf(const Graph& graph, std::span<const NodeSchedule> schedules, const Program& program,
                const Target& team) {
  constexpr double kCrossedBytesPerCycle = 1.8, kStepCycles = 600;
  double cycles = kStepCycles * static_cast<double>(program.steps.size());
  std::vector<StepGrids> grids;
  for (const Step& step : program.steps) {
    const NodeSchedule& schedule = schedules[step.node];
    const Value& written = program.values[step.write];
    StepGrids& grid = grids.emplace_back();
    if (step.kind == StepKind::kNode && schedule.conv_template != nullptr && !schedule.workload.bytes) {
      grid.conv = &schedule.workload;
      grid.reads = grid.writes = schedule.conv_template->Grid(schedule.workload, schedule.config, team);
      cycles += schedule.conv_template->Cycles(schedule.workload, schedule.config, team).value_or(0);
    } else {
      grid.reads = grid.writes = GridInMemory(written.shape, written.layout);
      const bool moves = step.kind != StepKind::kNode || graph.node(step.node).op->Type() == "Concat";
      const int64_t moved = moves ? 2 * PaddedBytes(written.shape, written.layout) : 0;
      cycles += static_cast<double>(moved) /
                (2 * moved <= team.l3_bytes ? kL3BytesPerCycle * team.cores : kMemoryBytesPerCycle);
    }
  }
  double crossed = 0;
  for (const double bytes : CrossedBytes(program, grids, team.cores)) crossed += bytes;
  return cycles + crossed / kCrossedBytesPerCycle / team.cores;
}

struct StyledPlan {
  Plan plan;
  double cycles = 0;
};

StyledPlan PlanInStyle(const Graph& graph, Defaults defaults) {
  const Target& cpu = defaults.cpu;
  const int threads = defaults.threads;
  Plan plan;
  plan.network = graph.name();
  plan.graph_hash = GraphHash(graph);
  plan.target = cpu;
  plan.threads = threads;
  plan.solver = "heuristic";
  plan.certificate = "none";
  std::vector<Layout> layouts(graph.size());
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph.node(id);
    if (graph.IsSource(id)) continue;
    NodePlan node_plan;
    node_plan.node = node.name;
    node_plan.op_type = node.op->Type();
    if (graph.As<ConvOp>(id) != nullptr) {
      node_plan.record = RecordOf(graph, id, layouts, defaults);
      node_plan.layouts = node_plan.record->layouts;
      if (defaults.style == DefaultStyle::kRows) node_plan.split = SplitOf(*node_plan.record, cpu, threads);
    } else if (node.op->IsView()) {
      const ViewLayouts view = node.op->LayoutsOfView();
      node_plan.layouts = NodeLayouts(graph, id, view.in, view.out);
    } else {
      const Layout layout = LayoutOfOp(graph, id, layouts);
      node_plan.layouts = NodeLayouts(graph, id, layout, layout);
      if (defaults.given) GiveRecord(graph, id, defaults.given, node_plan);
    }
    layouts[id] = node_plan.layouts.out;
    plan.nodes.push_back(std::move(node_plan));
  }
  const std::vector<NodeSchedule> schedules =
      ResolveSchedules(graph, plan, cpu, defaults.given ? PlanFrom::kAnywhere : PlanFrom::kDefaults);
  const Program program = BuildProgram(graph, schedules);
  plan.transforms = NeededTransforms(graph, program);
  Target team = cpu;
  team.cores = threads;
  const double cycles = threads > 1 && !defaults.given ? CyclesOf(graph, schedules, program, team) : 0;
  return {std::move(plan), cycles};
}

}  // namespace

Plan HeuristicPlan(const Graph& graph, const Target& cpu, int threads) {
  // On near cores unet, estimated at 1.02, took 0.93 times as long in blocks; what was estimated at 1.06 and
  // more lost nothing by rows.
  constexpr double kWorthwhile = 1.05;
  constexpr DefaultStyle kStyles[] = {DefaultStyle::kBlocks, DefaultStyle::kRows};
  const int64_t styles = threads == 1 || ArchitectureOf(cpu.isa) == Architecture::kAny ? 1 : 2;
  StyledPlan plans[std::size(kStyles)];
  ForEachIndex(
      styles,
      [&](int64_t i) {
        plans[i] = PlanInStyle(graph, {.cpu = cpu, .threads = threads, .style = kStyles[i]});
      },
      threads);
  auto& [blocks, rows] = plans;
  return std::move(styles > 1 && rows.cycles * kWorthwhile < blocks.cycles ? rows.plan : blocks.plan);
}

Plan PlanOfRecords(const Graph& graph, const Target& target, int threads, RecordOfTask record_of) {
  return PlanInStyle(graph, {.cpu = target, .threads = threads, .given = std::move(record_of)}).plan;
}

namespace {

// The config of a record for the same convolution of another image: its knobs where they have such values,
// numbers of pixels in proportion to those of the image; what the space does not offer is the default's.
std::optional<Config> ConfigFor(const Record& record, const ConvTemplate& conv_template,
                                const ConvWorkload& workload, const ConfigSpace& space, const Target& cpu) {
  const auto is_valid = [&](const Config& config) {
    return space.IndexOf(config).has_value() && space.WhyInvalid(config).empty();
  };
  if (is_valid(record.config)) return record.config;
  const Config preset = conv_template.Default(workload, cpu);
  const double growth = static_cast<double>(workload.oh * workload.ow) /
                        static_cast<double>(record.workload.oh * record.workload.ow);
  Config config;
  for (const Knob& knob : space.knobs()) {
    const auto given = record.config.Find(knob.name);
    if (!given) return std::nullopt;
    const auto grown = static_cast<int64_t>(std::llround(static_cast<double>(*given) * growth));
    int64_t value = preset.Get(knob.name);
    for (const int64_t candidate : {grown, *given}) {
      if (std::ranges::find(knob.values, candidate) != knob.values.end()) value = candidate;
    }
    config.Set(knob.name, value);
  }
  if (is_valid(config)) return config;
  std::optional<Config> other = conv_template.WithLayouts(workload, space, preset, record.layouts);
  return other && is_valid(*other) ? other : std::nullopt;
}

// nullopt where the record's template has none for it.
std::optional<Record> RecordFor(const Record& record, const ConvWorkload& workload, const Target& cpu) {
  const ConvTemplate& conv_template = FindConvTemplate(record.template_name);
  if (!conv_template.Supports(workload, cpu).ok) return std::nullopt;
  const ConfigSpace space = conv_template.Space(workload, cpu);
  std::optional<Config> config = ConfigFor(record, conv_template, workload, space, cpu);
  if (!config) return std::nullopt;
  Record other;
  other.target = record.target;
  other.workload = workload;
  other.template_name = record.template_name;
  other.layouts = conv_template.Layouts(workload, *config);
  other.config = *std::move(config);
  other.conditions.threads = record.conditions.threads;
  other.tuner = "other size";
  return other;
}

// A plan's nodes for another size of its network.
class OtherSize {
 public:
  OtherSize(const Plan& plan, const Graph& graph, const Target& cpu)
      : graph_(graph), cpu_(cpu), threads_(plan.threads) {
    for (const NodePlan& node : plan.nodes) planned_[node.node] = &node;
    for (const FusablePair& pair : FusablePairs(graph)) pairs_.emplace(graph.node(pair.conv).name, pair);
  }

  // nullopt where the plan has no such node.
  std::optional<NodePlan> Of(NodeId id) {
    const Node& node = graph_.node(id);
    const auto found = planned_.find(node.name);
    if (found == planned_.end() || found->second->op_type != node.op->Type()) return std::nullopt;
    NodePlan other;
    other.node = node.name;
    other.op_type = found->second->op_type;
    other.fused_into = found->second->fused_into;
    other.split = found->second->split;
    other.region = found->second->region;
    if (!other.fused_into.empty()) return IsFusable(other) ? std::optional(other) : std::nullopt;
    return graph_.As<ConvolutionOp>(id) ? OfConv(id, *found->second, other) : OfOp(id, *found->second, other);
  }

  // Of a region: as many bands, or more where rows are longer, so that its buffers take no more. How many
  // that is one of its convolutions says, whose sizes are known.
  int64_t BandRows(int region, int64_t rows, const std::vector<NodePlan>& others) const {
    for (const NodePlan& other : others) {
      const std::optional<Record>& from = planned_.at(other.node)->record;
      if (other.region != region || !from || !other.record) continue;
      const ConvWorkload &was = from->workload, &is = other.record->workload;
      rows = std::min(rows, was.oh);
      return std::max<int64_t>(1, std::min(rows * is.oh / was.oh, rows * was.ow / is.ow));
    }
    return rows;
  }

 private:
  bool IsFusable(const NodePlan& first) const {
    const auto pair = pairs_.find(first.fused_into);
    return pair != pairs_.end() && graph_.node(pair->second.first).name == first.node;
  }

  // As RecordFor, once for what networks repeat.
  const std::optional<Record>& RecordOf(const Record& record, const ConvWorkload& workload) {
    const auto [found, is_new] = records_.try_emplace(
        {record.template_name + " " + record.config.ToString(), WorkloadToString(workload)});
    if (is_new) found->second = RecordFor(record, workload, cpu_);
    return found->second;
  }

  std::optional<NodePlan> OfConv(NodeId id, const NodePlan& from, NodePlan other) {
    const ConvWorkload& own = graph_.As<ConvolutionOp>(id)->workload();
    if (!from.record) {
      other.layouts = from.layouts;
      return NeedsRecord(own) ? std::nullopt : std::optional(other);
    }
    const auto pair = pairs_.find(other.node);
    const bool fused = from.record->workload.fused();
    if (fused && pair == pairs_.end()) return std::nullopt;
    other.record = RecordOf(*from.record, fused ? pair->second.workload : own);
    if (!other.record && (fused || own.bytes)) return std::nullopt;
    if (!other.record) other.record = DefaultRecord(own, cpu_, threads_);
    other.layouts = other.record->layouts;
    return other;
  }

  std::optional<NodePlan> OfOp(NodeId id, const NodePlan& from, NodePlan other) {
    const Op& op = *graph_.node(id).op;
    if (op.IsView()) {
      const ViewLayouts view = op.LayoutsOfView();
      other.layouts = NodeLayouts(graph_, id, view.in, view.out);
      return other;
    }
    const Layout kept = InputOrder(graph_.node(id), from.layouts.out);
    const Layout layout = NodeRunsIn(graph_, id, kept) ? kept : Layout::Nchw();
    other.layouts = NodeLayouts(graph_, id, layout, layout);
    const std::optional<ConvWorkload> task = TaskOf(graph_, id);
    if (from.record && task) other.record = RecordOf(*from.record, *task);
    return other;
  }

  const Graph& graph_;
  const Target& cpu_;
  const int threads_;
  std::map<std::string_view, const NodePlan*> planned_;
  std::map<std::string, FusablePair, std::less<>> pairs_;  // by the conv's name
  std::map<std::pair<std::string, std::string>, std::optional<Record>> records_;
};

double ConvFlops(const Plan& plan) {
  double flops = 0;
  for (const NodePlan& node : plan.nodes)
    if (node.record) flops += node.record->workload.flops();
  return flops;
}

double ConvFlops(const Graph& graph) {
  double flops = 0;
  for (NodeId id = 0; id < graph.size(); ++id)
    if (const auto* conv = graph.As<ConvolutionOp>(id)) flops += conv->workload().flops();
  return flops;
}

}  // namespace

std::optional<Plan> PlanOfOtherSize(const Plan& plan, const Graph& graph, const Target& cpu) {
  Plan other;
  other.network = graph.name();
  other.graph_hash = GraphHash(graph);
  other.quantization = plan.quantization;
  other.target = plan.target;
  other.threads = plan.threads;
  other.ends = plan.ends;
  other.accuracy = plan.accuracy;
  other.solver = "other size";
  other.certificate = "none";
  OtherSize nodes(plan, graph, cpu);
  for (NodeId id = 0; id < graph.size(); ++id) {
    if (graph.IsSource(id)) continue;
    std::optional<NodePlan> node = nodes.Of(id);
    if (!node) return std::nullopt;
    other.nodes.push_back(*std::move(node));
  }
  for (const RegionPlan& region : plan.regions) {
    const int number = static_cast<int>(other.regions.size()) + 1;
    other.regions.push_back({nodes.BandRows(number, region.band_rows, other.nodes)});
  }
  other = WithRegionsThatCompile(graph, std::move(other), cpu);
  try {
    const std::vector<NodeSchedule> schedules = ResolveSchedules(graph, other, cpu, PlanFrom::kDefaults);
    other.transforms =
        NeededTransforms(graph, BuildProgram(graph, schedules, other.ends.outputs, other.regions));
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kUsage) throw;
    return std::nullopt;
  }
  return other;
}

const Plan* NearestPlan(std::span<const Plan> plans, const Graph& graph, const Target& cpu, int threads) {
  const double flops = ConvFlops(graph);
  const Plan* nearest = nullptr;
  std::pair<double, bool> nearest_gap;
  for (const Plan& plan : plans) {
    if (plan.network != graph.name() || !SameMachine(plan.target, cpu) || plan.target.version != cpu.version)
      continue;
    const std::pair gap(std::abs(std::log((ConvFlops(plan) + 1) / (flops + 1))), plan.threads != threads);
    if (nearest == nullptr || gap < nearest_gap) nearest = &plan, nearest_gap = gap;
  }
  return nearest;
}

}  // namespace tilesmith
