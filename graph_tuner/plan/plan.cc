#include "graph_tuner/plan/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "graph_tuner/costs/layout_forms.h"
#include "layouts/base/check.h"
#include "layouts/base/error.h"
#include "layouts/base/stable_hash.h"
#include "templates/base/conv_template.h"

namespace tilesmith {

LayoutPair NodeLayouts(const Graph& graph, Graph::NodeId id, const Layout& in, const Layout& out) {
  const std::vector<Graph::NodeId> inputs = graph.Inputs(id);
  return {inputs.empty() ? in : TensorLayout(graph.node(inputs[0]), in), TensorLayout(graph.node(id), out)};
}

double KnownPrediction(const Plan& plan) {
  const bool known = std::ranges::all_of(plan.nodes, [](const NodePlan& node) {
    return !node.record || node.predicted_seconds > node.crossing_seconds;
  });
  return known ? plan.predicted_seconds : 0;
}

PlacedPrediction PredictionFor(const Plan& plan, const CorePlacement& seen) {
  const PlacedPrediction own = {plan.placement, KnownPrediction(plan)};
  const bool is_of_own = !(seen.barrier_seconds > 0) || AreAlike(seen, plan.placement);
  if (own.seconds == 0 || plan.at_distances.empty() || is_of_own) return own;
  return *std::ranges::min_element(plan.at_distances, {}, [&](const PlacedPrediction& prediction) {
    return DistanceGap(prediction.placement.barrier_seconds, seen.barrier_seconds);
  });
}

bool SameSchedule(const NodePlan& a, const NodePlan& b) {
  if (a.node != b.node || a.layouts != b.layouts || a.split != b.split || a.fused_into != b.fused_into ||
      a.region != b.region)
    return false;
  if (a.record.has_value() != b.record.has_value()) return false;
  return !a.record ||
         (a.record->workload == b.record->workload && a.record->template_name == b.record->template_name &&
          a.record->config == b.record->config);
}

bool SameSchedules(const Plan& a, const Plan& b) {
  return a.regions == b.regions && std::ranges::equal(a.nodes, b.nodes, SameSchedule);
}

const Plan* PlanFor(std::span<const Plan> plans, std::string_view graph_hash, int threads) {
  const Plan* found = nullptr;
  for (const Plan& plan : plans) {
    if (plan.graph_hash != graph_hash) continue;
    if (plan.threads == threads) return &plan;
    if (found == nullptr) found = &plan;
  }
  return found;
}

std::string PlanHash(const Plan& plan) {
  StableHash hash;
  hash.Add(plan.graph_hash);
  hash.Add(static_cast<int64_t>(plan.threads));
  for (const NodePlan& node : plan.nodes) {
    for (const std::string& text : {node.node, node.layouts.in.ToString(), node.layouts.out.ToString(),
                                    std::string(SplitName(node.split)), node.fused_into})
      hash.Add(text);
    if (node.region > 0) {
      hash.Add(static_cast<int64_t>(node.region));
      hash.Add(plan.regions.at(static_cast<size_t>(node.region) - 1).band_rows);
    }
    if (!node.record) continue;
    for (const std::string& text : {WorkloadToString(node.record->workload), node.record->template_name,
                                    node.record->config.ToString()})
      hash.Add(text);
  }
  return fmt::format("{:016x}", hash.value());
}

Plan WithoutRegions(Plan plan) {
  plan.regions.clear();
  for (NodePlan& node : plan.nodes) node.region = 0;
  return plan;
}

void RefusePlan(const std::string& reason) { throw Error(ErrorCode::kUsage, "plan: " + reason); }

FusedNodes FindFusedNodes(const Graph& graph, const Plan& plan) {
  const std::vector<FusablePair> pairs = FusablePairs(graph);
  std::map<std::string_view, const NodePlan*> planned;
  for (const NodePlan& node : plan.nodes) planned[node.node] = &node;
  FusedNodes fused;
  for (const NodePlan& node : plan.nodes) {
    if (node.fused_into.empty()) continue;
    const auto pair = std::ranges::find_if(pairs, [&](const FusablePair& candidate) {
      return graph.node(candidate.first).name == node.node &&
             graph.node(candidate.conv).name == node.fused_into;
    });
    if (pair == pairs.end())
      RefusePlan(fmt::format("node \"{}\" cannot be fused into \"{}\"", node.node, node.fused_into));
    const auto conv = planned.find(node.fused_into);
    if (conv == planned.end() || !conv->second->record || !(conv->second->record->workload == pair->workload))
      RefusePlan(fmt::format("node \"{}\" is fused into \"{}\", which has no record of {}", node.node,
                             node.fused_into, WorkloadToString(pair->workload)));
    fused.emplace(pair->conv, *pair);
  }
  for (const NodePlan& node : plan.nodes) {
    const auto id = graph.Find(node.node);
    if (node.record && node.record->workload.fused() && !(id && fused.contains(*id)))
      RefusePlan(fmt::format("nothing is fused into node \"{}\", its record is of {}", node.node,
                             WorkloadToString(node.record->workload)));
  }
  return fused;
}

std::map<ConversionKey, PlannedConversion> PlannedConversions(const Graph& graph, const Plan& plan) {
  std::map<ConversionKey, PlannedConversion> planned;
  for (const TransformPlan& transform : plan.transforms) {
    const auto tensor = graph.Find(transform.tensor);
    if (!tensor.has_value()) continue;
    const LayoutPair conversion = ConversionOf(graph.node(*tensor).shape, transform.from, transform.to);
    PlannedConversion& entry = planned[{transform.tensor, conversion}];
    entry.seconds = transform.predicted_seconds;
    entry.crossing_seconds = transform.crossing_seconds;
    ++entry.times;
  }
  return planned;
}

double PackedWeightBytes(const Record& record, const Target& cpu) {
  return FindConvTemplate(record.template_name).Features(record.workload, record.config, cpu).weight_bytes;
}

double PackedWeightBytes(const Plan& plan, const Target& cpu) {
  double bytes = 0;
  for (const NodePlan& node : plan.nodes)
    if (node.record) bytes += PackedWeightBytes(*node.record, cpu);
  return bytes;
}

namespace {

// nullopt where the template does not support the workload, or has none of the style.
std::optional<Config> DefaultOfStyle(const ConvTemplate& conv_template, const ConvWorkload& workload,
                                     const Target& cpu, DefaultStyle style) {
  if (style == DefaultStyle::kBlocks) return conv_template.DefaultIfSupported(workload, cpu);
  return conv_template.RowsDefault(workload, cpu);
}

// nullopt where no template has one.
std::optional<Record> RecordOfStyle(const ConvWorkload& workload, const Target& cpu, DefaultStyle style) {
  // Fewer multiplications cost exactness and memory: they have to be worth it.
  constexpr double kWorthwhile = 1.15;
  Record record;
  std::optional<double> fewest;
  for (const ConvTemplate* conv_template : ConvTemplatesFor(cpu, workload)) {
    const bool is_first = record.template_name.empty();
    if (!is_first && !fewest) break;
    std::optional<Config> config = DefaultOfStyle(*conv_template, workload, cpu, style);
    if (!config) continue;
    const std::optional<double> cycles = conv_template->Cycles(workload, *config, cpu);
    if (!is_first && (!cycles || *cycles * kWorthwhile > *fewest)) continue;
    fewest = cycles;
    record.template_name = conv_template->Name();
    record.layouts = conv_template->Layouts(workload, *config);
    record.config = *std::move(config);
  }
  return record.template_name.empty() ? std::nullopt : std::optional(std::move(record));
}

}  // namespace

Record DefaultRecord(const ConvWorkload& workload, const Target& cpu, int threads, DefaultStyle style) {
  Target team = cpu;
  if (style == DefaultStyle::kRows) team.cores = threads;
  std::optional<Record> found = RecordOfStyle(workload, team, style);
  if (!found) found = RecordOfStyle(workload, cpu, DefaultStyle::kBlocks);
  TILESMITH_CHECK(found.has_value(), "no template supports {}", WorkloadToString(workload));
  Record record = *std::move(found);
  record.target = cpu;
  record.workload = workload;
  record.conditions.threads = threads;
  record.tuner = "default";
  return record;
}

}  // namespace tilesmith
