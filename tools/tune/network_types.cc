#include "tools/tune/network_types.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "graph_tuner/problem/graph_tune.h"
#include "layouts/base/check.h"
#include "layouts/base/error.h"
#include "templates/base/conv_template.h"
#include "tools/quantize/calibration_inputs.h"

namespace tilesmith {
std::optional<double> OutputErrorLimit(double given) {
  if (!(given > 0))
    throw Error(ErrorCode::kUsage, fmt::format("--max-output-error must be above 0, got {}", given));
  return std::isfinite(given) ? std::optional(given) : std::nullopt;
}

void CheckOutputErrorLimit(std::optional<double> limit, Precision precision) {
  if (!limit || precision == Precision::kBf16 || precision == Precision::kMixed) return;
  throw Error(ErrorCode::kUsage, fmt::format("--max-output-error is for --precision bf16 and mixed, not {}",
                                             PrecisionName(precision)));
}

FloatNetwork OpenFloats(const ModelOptions& model, const DevicePtr& machine, int64_t samples) {
  ModelOptions floats = model;
  floats.quantization.reset();
  auto graph = std::make_unique<const Graph>(LoadModel(floats));
  const Graph& loaded = *graph;
  return {std::move(graph), OutputErrors(loaded, machine, SamplesOf(loaded, model.calibration, samples))};
}

FormCosts::FormCosts(const GraphTuneModelRequest& request, const DevicePtr& machine, const WorkSinks& sinks)
    : measured_(OpenCosts(request.arguments, machine, sinks)) {
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

TypedPlan PlanFloats(const GraphTuneModelRequest& request, const Graph& floats, Precision precision,
                     const std::vector<Record>& log, const FormCosts& costs, const WorkSinks& sinks,
                     const Corrections& learned) {
  TypedPlan typed = {std::string(PrecisionName(precision)), &floats, std::nullopt};
  const DevicePtr& machine = request.machine;
  if (precision == Precision::kBf16 && !HasTemplates(machine->target(), DataType::kBf16)) {
    typed.note = "no template computes in bf16 on this CPU";
    return typed;
  }
  GraphTuneOptions options = TuningOptions(request.arguments, machine, sinks);
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
    throw Error(
        ErrorCode::kNoCandidate,
        fmt::format("no plan's output error is at most {:.2g}, which is allowed (--max-output-error)", most));
  for (size_t i = 0; i < places.size(); ++i) runs[places[i]].ratio = RatioOf(rounds, *winner, i);
  runs[places[*winner]].is_plan = true;
  return runs;
}

void AddShapes(Report& report, const ModelOptions& model) {
  if (model.input_shapes.empty()) return;
  report.Fact("input_shapes", "input shapes",
              TextCell(fmt::format("{}", fmt::join(model.input_shapes, " "))));
}

void AddOutputError(Report& report, double error, bool random_inputs) {
  report.Fact("output_error",
              random_inputs ? "output error, random inputs" : "output error, calibration's inputs",
              ErrorCell(error));
}

Cell ErrorCell(double error) { return {error, fmt::format("{:.2g}", error)}; }

Table TypesTable(std::span<const TypeRun> runs, bool random_inputs) {
  Table table(
      "types",
      fmt::format("types, executed by turns (95% interval of the plan's gain); errors of the outputs on {} "
                  "inputs",
                  random_inputs ? "random" : "the calibration's"),
      {{"type", "types"},
       {"measured_seconds", "measured ms"},
       {"gain", "plan's gain"},
       {"gain_low", "from"},
       {"gain_high", "to"},
       {"output_error", "output error"},
       {"agreement", "same largest"},
       {"is_plan", "the plan"},
       {"note", "note"}});
  const auto gain = [](double ratio) { return ChangeCell(ratio - 1); };
  for (const TypeRun& run : runs) {
    const bool ran = run.seconds > 0, beside = ran && !run.is_plan;
    const bool classifies = run.difference && run.difference->rows > 0;
    table.AddRow({TextCell(run.name),
                  ran ? MillisecondsCell(run.seconds) : NoCell(),
                  beside ? gain(run.ratio.median) : NoCell(),
                  beside ? gain(run.ratio.low) : NoCell(),
                  beside ? gain(run.ratio.high) : NoCell(),
                  run.difference ? ErrorCell(run.difference->error) : NoCell(),
                  classifies ? PercentCell(static_cast<double>(run.difference->agreeing) /
                                           static_cast<double>(run.difference->rows))
                             : NoCell(),
                  {run.is_plan, run.is_plan ? "yes" : ""},
                  TextCell(run.note)});
  }
  return table;
}

}  // namespace tilesmith
