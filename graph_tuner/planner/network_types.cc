#include "graph_tuner/planner/network_types.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "graph_tuner/problem/graph_tune.h"
#include "layouts/base/check.h"
#include "layouts/base/error.h"
#include "layouts/base/settings.h"
#include "templates/base/conv_template.h"

namespace tilesmith {
std::optional<double> OutputErrorLimit(double given) {
  if (!(given > 0))
    throw Error(ErrorCode::kUsage,
                fmt::format("{} must be above 0, got {}", settings::kMaxOutputError, given));
  return std::isfinite(given) ? std::optional(given) : std::nullopt;
}

void CheckOutputErrorLimit(std::optional<double> limit, Precision precision) {
  if (!limit || precision == Precision::kBf16 || precision == Precision::kMixed) return;
  throw Error(ErrorCode::kUsage, fmt::format("{} is for {} bf16 and mixed, not {}", settings::kMaxOutputError,
                                             settings::kPrecision, PrecisionName(precision)));
}

FloatNetwork OpenFloats(const NetworkSource& network, const DevicePtr& machine, int64_t samples) {
  auto graph = std::make_unique<const Graph>(network.Load(nullptr));
  const Graph& loaded = *graph;
  return {std::move(graph), OutputErrors(loaded, machine, network.Samples(loaded, samples))};
}

FormCosts::FormCosts(const PlanRequest& request) : measured_(request.open_costs()) {
  if (request.hurried) lazy_ = std::make_unique<LazyCosts>(*measured_);
}

void FormCosts::MeasurePaid(const Graph& graph, const std::vector<Record>& records,
                            const GraphTuneOptions& options, const WorkLimit& limit) const {
  if (!lazy_) return;
  const double now = NowSeconds();
  const WorkLimit half = {limit.stop, std::midpoint(now, std::max(now, limit.end))};
  tilesmith::MeasurePaid(graph, records, options, *lazy_, [&] {
    ThrowIfStopped(half.stop);
    return !half.out_of_time();
  });
}

void FormCosts::MeasurePaid(const Graph& graph, const Plan& plan) const {
  if (lazy_) lazy_->Measure(graph, plan);
}

TypedPlan PlanFloats(const PlanRequest& request, const Graph& floats, Precision precision,
                     const FormCosts& costs, const WorkSinks& sinks, const Corrections& learned) {
  TypedPlan typed = {std::string(PrecisionName(precision)), &floats, std::nullopt};
  const DevicePtr& machine = request.machine;
  if (precision == Precision::kBf16 && !HasTemplates(machine->target(), DataType::kBf16)) {
    typed.note = "no template computes in bf16 on this CPU";
    return typed;
  }
  const std::vector<Record>& log = *request.log;
  GraphTuneOptions options = request.tuning;
  options.precision = precision;
  options.allow_defaults = true;
  options.even_shares = true;
  if (precision == Precision::kBf16 && std::ranges::none_of(log, IsNarrow)) {
    typed.note = "the log has no records in it";
    return typed;
  }
  costs.MeasurePaid(*typed.graph, log, options, {sinks.stop, request.begin + request.time_budget});
  const NetworkProblem problem(*typed.graph, log, *costs, std::move(options));
  try {
    typed.plan = GraphTune(problem, learned, request.max_weight_bytes).plan;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kNoCandidate || !request.max_weight_bytes) throw;
    typed.plan = GraphTune(problem, learned).plan;
    typed.may_be_chosen = false;
  }
  typed.note = UntunedText(*typed.plan);
  return typed;
}

bool SameOutputs(const Graph& a, const Graph& b) {
  return std::ranges::equal(a.outputs(), b.outputs(), [&](Graph::NodeId in_a, Graph::NodeId in_b) {
    return a.node(in_a).shape == b.node(in_b).shape && a.node(in_a).type == b.node(in_b).type;
  });
}

std::string UntunedText(const Plan& plan) {
  int convs = 0, untuned = 0;
  for (const NodePlan& node : plan.nodes) {
    convs += node.record.has_value();
    untuned += node.record && node.record->seconds == 0;
  }
  return untuned == 0 ? "" : fmt::format("{} of {} convolutions untuned", untuned, convs);
}

std::vector<TypeRun> RunTypes(const PlanRuns& where, std::span<const TypedPlan> plans,
                              const OutputErrors& errors, std::optional<size_t> chosen, double most,
                              double seconds) {
  std::vector<GraphPlan> contestants;
  std::vector<size_t> places;  // of each among the plans
  std::vector<TypeRun> runs;
  for (const TypedPlan& typed : plans) {
    runs.push_back({.name = typed.name, .note = typed.note});
    if (!typed.plan) continue;
    places.push_back(runs.size() - 1);
    contestants.push_back({typed.graph, &*typed.plan});
    if (SameOutputs(*plans.front().graph, *typed.graph))
      runs.back().difference = errors.Of(*typed.graph, *typed.plan);
  }
  const DuelRounds rounds = ComparePlans(where, contestants, seconds).rounds;
  for (size_t i = 0; i < places.size(); ++i) runs[places[i]].seconds = DuelSeconds(rounds, i);
  const auto fits = [&](size_t contestant) {
    const TypeRun& run = runs[places[contestant]];
    return plans[places[contestant]].may_be_chosen && (!run.difference || run.difference->error <= most);
  };
  std::optional<size_t> winner;  // by turns with it, not by its own clock
  for (size_t i = 0; i < places.size(); ++i) {
    if (chosen ? places[i] == *chosen : fits(i) && (!winner || RatioOf(rounds, *winner, i).median < 1))
      winner = i;
  }
  if (!winner)
    throw Error(ErrorCode::kNoCandidate,
                fmt::format("no plan's output error is at most {:.2g}, which is allowed ({})", most,
                            settings::kMaxOutputError));
  for (size_t i = 0; i < places.size(); ++i) runs[places[i]].ratio = RatioOf(rounds, *winner, i);
  runs[places[*winner]].is_plan = true;
  return runs;
}

}  // namespace tilesmith
