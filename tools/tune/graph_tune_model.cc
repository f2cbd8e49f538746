#include "tools/tune/graph_tune_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "graph_tuner/plan/plan_file.h"
#include "graph_tuner/plan/price_plan.h"
#include "graph_tuner/refine/baselines.h"
#include "graph_tuner/refine/config_variants.h"
#include "graph_tuner/refine/template_rivals.h"
#include "layouts/base/error.h"
#include "layouts/base/text_file.h"
#include "layouts/measure/clock.h"
#include "tools/cli/interrupt.h"
#include "tools/network/plan_runs.h"

namespace tilesmith {
namespace {

constexpr int kCompared = 3, kTemplateRivals = 2;  // as guesses

class GraphTuner {
 public:
  GraphTuner(const GraphTuneModelRequest& request, const WorkSinks& sinks)
      : request_(request), sinks_(sinks), stages_(sinks, request.seconds) {}

  GraphTunedModel Run() {
    RequireWritable(request_.plan_path);
    CheckGraphTuning(request_.arguments);
    tuned_.machine = OpenMachine(request_.arguments.machine);
    tuned_.graph = LoadModel(request_.arguments.model);
    log_ = LoadTuningLog(request_.arguments, tuned_.machine);
    const PinnedTeam team(tuned_.machine);
    costs_ = OpenCosts(request_.arguments, tuned_.machine, sinks_);
    options_ = TuningOptions(request_.arguments, tuned_.machine, sinks_);
    CheckAccuracyLimits(options_.accuracy);
    tuned_.refined = RefineOrKeep();
    const RefinedPlan& refined = tuned_.refined;
    tuned_.steps = ExplainSteps(tuned_.graph, refined.plan, *costs_, refined.check, tuned_.machine.cpu);
    return std::move(tuned_);
  }

 private:
  // Who interrupts it keeps the fastest of the plans that had run.
  RefinedPlan RefineOrKeep() {
    std::optional<RefinedPlan> refined;
    if (UnlessInterrupted([&] { refined = Refine(); })) return *std::move(refined);
    if (!fastest_) throw Error(ErrorCode::kInterrupted, "interrupted before the first plan had run");
    WritePlan(request_.plan_path, *fastest_);
    throw Error(ErrorCode::kInterrupted,
                fmt::format("interrupted; the fastest plan so far is in {}", request_.plan_path));
  }

  RefinedPlan Refine() {
    ExpectRuns(kTemplateRivals + (request_.baselines ? int(Baselines().size()) : 0));
    const NetworkProblem problem(tuned_.graph, log_, *costs_, options_);
    tuned_.candidates = problem.UsableRecords();
    PredictionLoop loop;
    loop.rounds = int(request_.rounds);
    loop.solve = [&](const Corrections& corrections) {
      const double began = NowSeconds();
      tuned_.solved = GraphTune(problem, corrections, request_.max_weight_bytes);
      tuned_.solve_seconds = NowSeconds() - began;
      return tuned_.solved.plan;
    };
    loop.measure = [&](const std::vector<const Plan*>& plans) {
      stages_.Begin(plans.size() == 1 ? "running the plan" : "running plans by turns", int(plans.size()));
      std::vector<PlanMeasurement> measurements =
          MeasurePlans(tuned_.graph, plans, tuned_.machine, request_.seconds, best_);
      best_ = BetterOf(best_, measurements.front().placement);
      const auto fastest = std::ranges::min_element(measurements, {}, &PlanMeasurement::seconds);
      fastest_ = *plans[size_t(fastest - measurements.begin())];
      return measurements;
    };
    loop.compare = [&](const std::vector<const Plan*>& plans) {
      stages_.Begin("comparing the fastest plans", kPlanDuels * int(plans.size()));
      const Duel duel = ComparePlans(tuned_.graph, plans, tuned_.machine, request_.seconds, best_);
      std::vector<double> ratios;
      for (size_t i = 0; i < plans.size(); ++i) ratios.push_back(RatioOf(duel.rounds, 0, i).median);
      return ratios;
    };
    loop.rivals = [&] {
      std::vector<RivalPlan> rivals = TemplateRivals(problem, tuned_.solved.plan, request_.max_weight_bytes);
      if (request_.baselines) tuned_.baselines = PlanBaselines(problem, request_.max_weight_bytes);
      for (const PlannedBaseline& baseline : tuned_.baselines)
        if (baseline.plan) rivals.push_back({baseline.name, *baseline.plan});
      ExpectRuns(int(rivals.size()));
      return rivals;
    };
    // Written before it is challenged: who kills it keeps the plan.
    loop.challenge = [&](const RefinedPlan& refined) {
      WritePlan(request_.plan_path, refined.plan);
      fastest_ = refined.plan;
      if (!request_.baselines) return std::optional<Plan>();
      if (tuned_.baselines.empty()) tuned_.baselines = PlanBaselines(problem, request_.max_weight_bytes);
      return FasterBaseline(refined);
    };
    if (request_.variants) {
      loop.variants = [&](const Plan& plan) {
        const std::vector<Record> accepted = AcceptedRecords(options_.accuracy, log_);
        return ConfigVariants(tuned_.graph, plan, accepted, tuned_.machine.cpu);
      };
    }
    return RefinePlan(tuned_.graph, *costs_, loop);
  }

  // Counts every solution so far and the rivals in each round and once more, the plan, and the baselines.
  void ExpectRuns(int rivals) {
    int runs = request_.rounds > 0 ? 2 : 1;
    for (int round = 1; round <= int(request_.rounds); ++round) runs += round + rivals;
    if (request_.rounds > 0) runs += int(request_.rounds) + rivals;
    if (request_.rounds > 0 && request_.variants)
      runs += 1 + VariantOptions().variants + int(request_.rounds) + rivals + 1;
    if (request_.rounds > 0) runs += kPlanDuels * (int(request_.rounds) + rivals > 1 ? kCompared : 0);
    if (request_.baselines) runs += kPlanDuels * (1 + rivals);
    stages_.Expect(runs);
  }

  // Runs the baselines beside the plan.
  std::optional<Plan> FasterBaseline(const RefinedPlan& refined) {
    std::vector<PlannedBaseline> baselines = tuned_.baselines;
    DropPlan(refined.plan, baselines);
    int runs = 1;
    for (PlannedBaseline& baseline : baselines) {
      if (!baseline.plan) continue;
      ++runs;
      PricePlan(tuned_.graph, *costs_, *baseline.plan, refined.plan.corrections);
    }
    stages_.Begin("running the baselines", kPlanDuels * runs);
    tuned_.baseline_runs =
        RunBaselines(tuned_.graph, refined.plan, tuned_.machine, baselines, request_.seconds);
    return FasterThanThePlan(tuned_.baseline_runs);
  }

  const GraphTuneModelRequest& request_;
  const WorkSinks& sinks_;
  StageProgress stages_;
  std::vector<Record> log_;
  std::unique_ptr<CostSource> costs_;
  GraphTuneOptions options_;
  GraphTunedModel tuned_;
  std::optional<Plan> fastest_;  // when it was last looked for
  CorePlacement best_;           // that a measurement has seen
};

}  // namespace

GraphTunedModel GraphTuneModel(const GraphTuneModelRequest& request, const WorkSinks& sinks) {
  return GraphTuner(request, sinks).Run();
}

}  // namespace tilesmith
