#include "graph_tuner/refine/prediction_differences.h"

#include <array>

namespace tilesmith {
namespace {

constexpr double kSlower = 1.05;

int64_t TensorBytes(const ConvWorkload& workload, const LayoutPair& layouts) {
  int64_t floats = PaddedElementCount(workload.input_shape(), layouts.in);
  const int64_t output = PaddedElementCount(workload.output_shape(), layouts.out);
  floats += workload.post.sum ? 2 * output : output;
  return floats * static_cast<int64_t>(sizeof(float));
}

// kept: the part of the network's weights for which there is room in the caches.
bool HasColdWeights(const MatchedStep& match, double kept) {
  if (!match.node || !match.node->record) return false;
  const Record& record = *match.node->record;
  const int64_t weights = match.step.packed_weight_bytes;
  return !record.conditions.cold_weights && record.seconds > 0 &&
         match.step.seconds > kSlower * record.seconds && kept < 1 &&
         weights > TensorBytes(record.workload, match.node->layouts);
}

enum PartKind { kColdConvs, kOtherConvs, kOps, kConversions, kUnplanned, kThreads, kParts };

PartKind PartOf(const StepDifference& difference) {
  const MatchedStep& match = difference.matched;
  if (!match.step.planned) return kUnplanned;
  if (!match.node) return kConversions;
  if (!match.node->record) return kOps;
  return difference.cause == Cause::kColdWeights ? kColdConvs : kOtherConvs;
}

}  // namespace

std::string_view CauseName(Cause cause) { return cause == Cause::kColdWeights ? "cold weights" : ""; }

std::vector<StepDifference> ExplainSteps(const Graph& graph, const Plan& plan, CostSource& costs,
                                         const PlanMeasurement& measurement, const Target& cpu) {
  double weights = 0;
  for (const StepProfile& step : measurement.steps) weights += static_cast<double>(step.packed_weight_bytes);
  const double caches = 0.5 * static_cast<double>(cpu.l2_bytes * plan.threads + cpu.l3_bytes);
  const double kept = weights > 0 ? caches / weights : 1;
  std::vector<StepDifference> differences;
  for (MatchedStep& match : MatchSteps(graph, plan, costs, measurement)) {
    const bool cold = HasColdWeights(match, kept);
    differences.push_back({std::move(match), cold ? Cause::kColdWeights : Cause::kUnknown});
  }
  return differences;
}

std::vector<DifferencePart> SumDifferences(const std::vector<StepDifference>& steps,
                                           const PlanMeasurement& measurement) {
  std::array<DifferencePart, kParts> parts;
  parts[kColdConvs].name = "convolutions with cold weights";
  parts[kOtherConvs].name = "convolutions";
  parts[kOps].name = "other ops";
  parts[kConversions].name = "transforms and copies";
  parts[kUnplanned].name = "copies the plan does not know";
  parts[kThreads].name = "threads and barriers";
  for (const StepDifference& difference : steps) {
    DifferencePart& part = parts[PartOf(difference)];
    ++part.steps;
    part.stand_alone_seconds += difference.matched.stand_alone_seconds;
    part.seconds += difference.matched.step.seconds;
    const NodePlan* node = difference.matched.node;
    if (node != nullptr && node->record && difference.matched.stand_alone_seconds <= 0) part.known = false;
  }
  if (parts[kColdConvs].steps > 0) parts[kOtherConvs].name = "other convolutions";
  parts[kThreads].seconds = measurement.seconds - ProfiledSeconds(measurement);
  std::vector<DifferencePart> present;
  for (DifferencePart& part : parts)
    if (part.steps > 0 || &part == &parts[kThreads]) present.push_back(std::move(part));
  return present;
}

}  // namespace tilesmith
