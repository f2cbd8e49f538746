#include "graph_tuner/planner/plan_network.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "graph_tuner/check/output_errors.h"
#include "graph_tuner/executor/heuristic_plan.h"
#include "graph_tuner/plan/plan_file.h"
#include "graph_tuner/plan/price_plan.h"
#include "graph_tuner/planner/network_types.h"
#include "graph_tuner/problem/within_limits.h"
#include "graph_tuner/refine/baselines.h"
#include "graph_tuner/refine/rivals.h"
#include "layouts/base/check.h"
#include "layouts/base/error.h"
#include "layouts/base/settings.h"

namespace tilesmith {
namespace {

constexpr int kCompared = 3, kTemplateRivals = 2;  // as guesses

class FormPlanner {
 public:
  FormPlanner(const PlanRequest& request, const WorkSinks& sinks, const KnownErrors* known)
      : request_(request),
        sinks_(sinks),
        known_(known),
        errors_(known != nullptr ? &known->of : nullptr),
        log_(*request.log),
        limit_{sinks.stop, request.begin + request.time_budget},
        stages_(sinks, request.seconds, limit_),
        options_(request.tuning) {}

  PlannedNetwork Run() {
    planned_.machine = request_.machine;
    planned_.graph = request_.network->Load(request_.quantization);
    const PinnedTeam team(planned_.machine);
    costs_.emplace(request_);
    // Splits go by prices, which a network may take otherwise: a plan has them only where plans are run.
    options_.even_shares = request_.rounds == 0;
    CheckAccuracyLimits(options_.accuracy);
    Refine();
    RefinedPlan& refined = planned_.refined;
    refined.plan.quantization = request_.quantization;
    planned_.steps =
        ExplainSteps(planned_.graph, refined.plan, **costs_, refined.check, planned_.machine->target());
    return std::move(planned_);
  }

 private:
  void Refine() {
    try {
      RefineProblem();
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kInterrupted) throw;
      throw Error(ErrorCode::kInterrupted, "interrupted before there was a plan");
    }
    Write(planned_.refined.plan);
    planned_.stopped = IsStopped(sinks_.stop);
  }

  void RefineProblem() {
    const bool narrow = options_.precision == Precision::kBf16 || options_.precision == Precision::kMixed;
    if (narrow && !request_.quantization) {
      errors_ = &own_errors_.emplace(planned_.graph, planned_.machine,
                                     request_.network->Samples(planned_.graph, ErrorSamples(request_)));
    }
    costs_->MeasurePaid(planned_.graph, log_, options_, limit_);
    if (request_.max_output_error) {
      KeepErrorsWithin(*request_.max_output_error);
      costs_->MeasurePaid(planned_.graph, log_, options_, limit_);
    }
    (**costs_).SeeDistance();
    const NetworkProblem problem(planned_.graph, log_, **costs_, options_);
    planned_.candidates = problem.UsableRecords();
    const std::vector<Record> accepted =
        RecordsIn(options_.precision, AcceptedRecords(options_.accuracy, log_));
    PredictionLoop loop;
    loop.rounds = static_cast<int>(request_.rounds);
    loop.max_weight_bytes = request_.max_weight_bytes;
    if (loop.rounds > 0) {
      loop.rivals = SplitRivals(problem, **costs_, request_.max_weight_bytes);
      AddKnown(&loop.rivals);
    }
    // Without convolutions and rivals there is nothing that runs could decide.
    const bool chooses = !problem.candidates().empty() || !loop.rivals.empty();
    if (!chooses) loop.rounds = 0;
    ExpectRuns(kTemplateRivals + static_cast<int>(loop.rivals.size()) +
               (request_.baselines ? static_cast<int>(Baselines(options_.precision).size()) : 0));
    loop.baselines = request_.baselines && chooses;
    if (request_.variants) loop.variants_of = &accepted;
    loop.end = limit_.end;
    loop.keep = [&](const Plan& plan) { Write(plan); };
    loop.measure = [&](const std::vector<const Plan*>& plans, const std::string& what) {
      const double each = stages_.SecondsEach();
      BeginRuns(fmt::format("{}: running {} by turns", what, PlansText(plans.size())), plans.size());
      planned_.watch.Skip();
      const Disturbance before = planned_.watch.total();
      std::vector<PlanMeasurement> measurements = MeasurePlans(Where(), plans, each);
      planned_.watch.EndInterval();
      for (PlanMeasurement& measurement : measurements)
        measurement.disturbed_share = (planned_.watch.total() - before).share();
      return measurements;
    };
    loop.compare = [&](const std::vector<const Plan*>& plans) {
      const double each = stages_.SecondsEach();
      BeginRuns("comparing the fastest plans", kPlanDuels * plans.size());
      const Duel duel = ComparePlans(Where(), plans, each);
      std::vector<double> ratios;
      ratios.reserve(plans.size());
      for (size_t i = 0; i < plans.size(); ++i) ratios.push_back(RatioOf(duel.rounds, 0, i).median);
      return ratios;
    };
    if (loop.baselines) loop.challenge = [&](const RefinedPlan& refined) { return FasterBaseline(refined); };
    planned_.refined = RefinePlan(problem, **costs_, loop);
    // Of a solution that there was no time to run nobody knows whether it is faster than what ran before.
    const bool has_run = planned_.refined.check.seconds > 0 || loop.rounds == 0;
    if (!has_run && !fitting_.empty()) planned_.refined.plan = fitting_.front();
    CheckError();
  }

  void AddKnown(std::vector<RivalPlan>* rivals) {
    const std::string hash = GraphHash(planned_.graph);
    for (const RivalPlan& known : request_.known) {
      const bool has_types = options_.precision != Precision::kF32 ||
                             std::ranges::none_of(known.plan.nodes, [](const NodePlan& node) {
                               return node.record && IsNarrow(*node.record);
                             });
      if (known.plan.graph_hash != hash || !has_types ||
          options_.errors.Of(known.plan) > options_.errors.most)
        continue;
      rivals->push_back(known);
      PricePlan(planned_.graph, **costs_, rivals->back().plan);
      fitting_.push_back(rivals->back().plan);
    }
  }

  // Sets the budget of errors: what each conv does by itself is measured, and where a plan's outputs show
  // that the sum of squares is more, the budget is cut by as much.
  void KeepErrorsWithin(double most) {
    TILESMITH_CHECK(errors_ != nullptr);
    if (known_ != nullptr) {
      options_.errors.squares = known_->squares;
    } else if (!MeasureSquares()) {
      sinks_.Warn("bf16 is left out: there was no time to measure what each layer in it does to the outputs");
      options_.precision = Precision::kF32;
    }
    planned_.bf16_squares = options_.errors.squares;
    options_.errors.most = std::max(0.0, most * most - OfBytes());
    ChooseWithin(
        most,
        [&](bool) {
          const NetworkProblem problem(planned_.graph, log_, **costs_, options_);
          return ErrorOf(GraphTune(problem, {}, request_.max_weight_bytes).plan);
        },
        [&](double seen) { TightenBudget(most, seen); });
  }

  // Says whether there was time for it, which only a hurry can leave none for.
  bool MeasureSquares() {
    bool in_time = true;
    try {
      options_.errors.squares = errors_->OfConvs(InjectedSamples(request_), [&](size_t done, size_t total) {
        ThrowIfStopped(sinks_.stop);
        in_time = !request_.hurried || done == total || !limit_.out_of_time();
        if (!in_time) throw Error(ErrorCode::kInterrupted, "out of time");
        sinks_.Stage(fmt::format("what each layer in bf16 does to the outputs {}/{}", done, total));
      });
    } catch (const Error& error) {
      if (in_time || error.code() != ErrorCode::kInterrupted) throw;
    }
    return in_time;
  }

  // What was learned since may have led to another plan than the one whose error was seen.
  void CheckError() {
    if (errors_ == nullptr) return;
    RefinedPlan& refined = planned_.refined;
    planned_.output_error = ErrorOf(refined.plan);
    if (!request_.max_output_error) return;
    const double most = *request_.max_output_error;
    const auto plan_again = [&] {
      const NetworkProblem problem(planned_.graph, log_, **costs_, options_);
      const Corrections learned = refined.plan.corrections;
      refined.plan = GraphTune(problem, learned, request_.max_weight_bytes).plan;
      refined.plan.corrections = learned;
      PlanRuns where = Where();
      where.limit = {sinks_.stop};  // no plan keeps to the limit before this one, whatever the time
      refined.check = MeasurePlans(where, {&refined.plan}, request_.seconds).front();
      planned_.baselines = {};  // they ran beside another plan
      planned_.output_error = ErrorOf(refined.plan);
    };
    bool tightened = false;
    ChooseWithin(
        most,
        [&](bool) {
          if (tightened) plan_again();
          return *planned_.output_error;
        },
        [&](double seen) {
          TightenBudget(most, seen);
          tightened = true;
        });
    planned_.predicted_output_error = std::sqrt(OfBytes() + options_.errors.Of(refined.plan));
    if (*planned_.output_error <= most) return;
    throw Error(ErrorCode::kNoCandidate,
                fmt::format("{}: the plan's output error is {:.2g}, allowed is {:.2g} ({})",
                            planned_.graph.name(), *planned_.output_error, most, settings::kMaxOutputError));
  }

  // The budget shrinks by how much more the outputs are off than the squares add up to. Precondition: seen >
  // most.
  void TightenBudget(double most, double seen) {
    const double allowed = std::max(0.0, most * most - OfBytes());
    options_.errors.most *= kLimitMargin * allowed / (seen * seen - std::min(OfBytes(), most * most));
  }

  double ErrorOf(const Plan& plan) const { return errors_->Of(planned_.graph, plan).error; }
  double OfBytes() const { return known_ != nullptr ? known_->of_bytes : 0; }

  void Write(Plan plan) const {
    if (!request_.keep) return;
    plan.quantization = request_.quantization;
    request_.keep(plan);
  }

  static std::string PlansText(size_t plans) {
    return plans == 1 ? "the plan" : fmt::format("{} plans", plans);
  }

  PlanRuns Where() {
    return {planned_.graph, planned_.machine, limit_, [this] {
              planned_.watch.EndInterval();
              stages_.Tick();
            }};
  }

  void BeginRuns(const std::string& what, size_t runs) { stages_.Begin(what, static_cast<int>(runs)); }

  // Counts every solution so far and the rivals in each round and once more, the plan, and the baselines.
  void ExpectRuns(int rivals) {
    const int rounds = static_cast<int>(request_.rounds);
    int runs = rounds > 0 ? 2 : 1;
    for (int round = 1; round <= rounds; ++round) runs += round + rivals;
    if (rounds > 0) runs += rounds + rivals;
    if (rounds > 0 && request_.variants) runs += 1 + VariantOptions().variants + rounds + rivals + 1;
    if (rounds > 0) runs += kPlanDuels * (rounds + rivals > 1 ? kCompared : 0);
    if (request_.baselines) runs += kPlanDuels * (1 + rivals);
    stages_.Expect(runs);
  }

  // Runs the baselines beside the plan.
  std::optional<Plan> FasterBaseline(const RefinedPlan& refined) {
    std::vector<PlannedBaseline> baselines = refined.baselines;
    DropPlan(refined.plan, baselines);
    size_t runs = 1;
    for (PlannedBaseline& baseline : baselines) {
      if (!baseline.plan) continue;
      ++runs;
      PricePlan(planned_.graph, **costs_, *baseline.plan, refined.plan.corrections);
    }
    const double each = stages_.SecondsEach();
    BeginRuns("running the baselines", kPlanDuels * runs);
    planned_.baselines = RunBaselines(Where(), refined.plan, baselines, each);
    return FasterThanThePlan(planned_.baselines.runs);
  }

  const PlanRequest& request_;
  const WorkSinks& sinks_;
  const KnownErrors* const known_;
  const OutputErrors* errors_;  // where other types than f32 are allowed
  const std::vector<Record>& log_;
  const WorkLimit limit_;
  StageProgress stages_;
  std::optional<FormCosts> costs_;
  std::vector<Plan> fitting_;  // of those that are known
  GraphTuneOptions options_;
  PlannedNetwork planned_;
  std::optional<OutputErrors> own_errors_;
};

}  // namespace

PlannedNetwork PlanForm(const PlanRequest& request, const WorkSinks& sinks, const KnownErrors* known) {
  return FormPlanner(request, sinks, known).Run();
}

PlannedNetwork PlanNetwork(const PlanRequest& request, const WorkSinks& sinks) {
  if (request.rounds < 0 || request.rounds > kMaxRounds)
    throw Error(ErrorCode::kUsage, fmt::format("{} must be from 0 to {}, got {}", settings::kRounds,
                                               kMaxRounds, request.rounds));
  const Precision precision = request.tuning.precision;
  CheckOutputErrorLimit(request.max_output_error, precision);
  const bool on_cpu = request.machine->target().device == kCpuDevice;
  if (precision == Precision::kMixed && on_cpu && !request.quantization) return PlanMixed(request, sinks);
  constexpr double kForComparing = 0.15;  // of the time
  PlanRequest form = request;
  if (!IsF32(precision)) form.time_budget *= 1 - kForComparing;
  PlannedNetwork planned = PlanForm(form, sinks);
  if (!IsF32(precision) && !planned.stopped) CompareTypes(request, sinks, &planned);
  return planned;
}

void PlanSizes(PlanRequest request, std::span<NetworkSource* const> sizes,
               const std::function<void(const std::vector<Plan>&)>& keep, const WorkSinks& sinks,
               const std::function<void(size_t size, const PlannedNetwork&)>& on_planned) {
  const double end = request.begin + request.time_budget;
  CheckOutputErrorLimit(request.max_output_error, request.tuning.precision);
  if (request.tuning.precision == Precision::kInt8 && !request.quantization)
    request.quantization = sizes.front()->Calibrate(sinks);
  if (request.tuning.precision == Precision::kBf16 && std::ranges::none_of(*request.log, IsNarrow))
    sinks.Warn("the log has no record in bf16: the plan is in f32 (tuning in bf16 adds some)");
  std::vector<Plan> plans;  // of the sizes so far
  request.keep = [&](const Plan& plan) {
    std::vector<Plan> kept = plans;
    kept.push_back(plan);
    keep(kept);
  };
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (i > 0) request.begin = NowSeconds();
    request.time_budget = std::max(0.0, end - request.begin) / static_cast<double>(sizes.size() - i);
    if (i > 0) request.quantization = plans.front().quantization;
    if (i > 0 && request.quantization && request.max_output_error) {
      sinks.Warn(fmt::format("{} was held to in the first size of the inputs, whose types the others have",
                             settings::kMaxOutputError));
      request.max_output_error.reset();
      request.tuning.precision = Precision::kInt8;  // what stays float is f32
    }
    request.network = sizes[i];
    const PlannedNetwork planned = i == 0 ? PlanNetwork(request, sinks) : PlanForm(request, sinks);
    on_planned(i, planned);
    if (planned.stopped) return;
    plans.push_back(planned.refined.plan);
  }
}

FastestByWorkload FastestOf(const BestByWorkload& best) {
  FastestByWorkload fastest;
  for (const auto& [workload, by_layouts] : best) {
    const auto first =
        std::ranges::min_element(by_layouts, {}, [](const auto& entry) { return entry.second.seconds; });
    fastest.emplace(workload, first->second);
  }
  return fastest;
}

Plan PlanOfFastest(const Graph& graph, const DevicePtr& machine, const FastestByWorkload& fastest) {
  bool any = false;
  const auto record_of = [&](const ConvWorkload& workload) -> std::optional<Record> {
    const auto found = fastest.find(WorkloadToString(workload));
    any = any || found != fastest.end();
    if (found != fastest.end()) return found->second;
    if (!NeedsRecord(workload)) return std::nullopt;
    return DefaultRecord(workload, machine->target(), machine->threads());
  };
  Plan plan = PlanOfRecords(graph, machine->target(), machine->threads(), record_of);
  if (!any) return HeuristicPlan(graph, machine->target(), machine->threads());
  plan.solver = "fastest of the log";
  return plan;
}

}  // namespace tilesmith
