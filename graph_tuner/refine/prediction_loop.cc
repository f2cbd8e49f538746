#include "graph_tuner/refine/prediction_loop.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <tuple>

#include "graph_tuner/plan/price_plan.h"
#include "graph_tuner/refine/config_variants.h"
#include "graph_tuner/refine/template_rivals.h"
#include "layouts/base/check.h"
#include "layouts/base/error.h"
#include "layouts/measure/clock.h"
#include "layouts/measure/quantile.h"

namespace tilesmith {
namespace {

// How a plan did beside the first solution, in a session of runs by turns.
struct Session {
  CorePlacement placement;
  std::vector<double> ratios;  // of every turn
};

// A plan that is known, and how it did.
struct KnownPlan {
  Plan plan;
  size_t round = 0;  // of RefinedPlan::rounds, the last one that it was made for
  PlanMeasurement measurement;
  std::vector<Session> sessions = {};

  bool measured() const { return !sessions.empty(); }
};

bool Agrees(double predicted, double measured, double tolerance) {
  return std::abs(measured - predicted) <= tolerance * predicted;
}

std::vector<std::string> ChangedNodes(const Plan& before, const Plan& after) {
  std::vector<std::string> changed;
  for (size_t i = 0; i < after.nodes.size(); ++i)
    if (!SameSchedule(before.nodes[i], after.nodes[i])) changed.push_back(after.nodes[i].node);
  return changed;
}

class Refinement {
 public:
  Refinement(const NetworkProblem& problem, CostSource& costs, const PredictionLoop& loop)
      : graph_(problem.graph()), problem_(problem), costs_(costs), loop_(loop) {}

  RefinedPlan Refine() {
    try {
      Work();
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kInterrupted || last_.nodes.empty()) throw;
      Settle();
    }
    return std::move(refined_);
  }

 private:
  void Work() {
    for (int round = 1; round <= loop_.rounds && !refined_.settled && HasTimeForARound(); ++round)
      RunRound(fmt::format("round {} of {}", round, loop_.rounds));
    if (known_.empty()) {
      last_ = Solve();
      Keep(last_);
      const PlanMeasurement check = loop_.measure({&last_}, "the plan").at(0);
      refined_.plan = last_;
      refined_.check = check;
      if (loop_.baselines) refined_.baselines = PlanBaselines(problem_, loop_.max_weight_bytes);
    } else {
      if (known_.size() > 1) RunAll("all once more");
      if (loop_.variants_of) TryVariants();
      Choose(loop_.compare ? Winner() : Fastest());
    }
    if (loop_.challenge) Challenge();
  }

  // Stopped: what is known by now has to do.
  void Settle() {
    refined_.finished = false;
    if (refined_.check.seconds > 0) return;
    const bool measured = std::ranges::any_of(known_, [](const KnownPlan& k) { return k.measured(); });
    if (!measured) {
      refined_.plan = last_;
      return;
    }
    const KnownPlan& fastest = Fastest();
    refined_.plan = Priced(fastest.plan);
    refined_.round = fastest.round;
    refined_.plan.corrections = corrections_;
    refined_.plan.placement = fastest.measurement.placement;
    refined_.check = fastest.measurement;
  }

  const Plan& Solve() {
    const double began = NowSeconds();
    refined_.solved = GraphTune(problem_, corrections_, loop_.max_weight_bytes);
    refined_.solve_seconds = NowSeconds() - began;
    return refined_.solved.plan;
  }

  void Keep(const Plan& plan) const {
    if (loop_.keep) loop_.keep(plan);
  }

  // What follows a round runs its plans about three times as long.
  bool HasTimeForARound() const {
    constexpr double kRounds = 4;
    return known_.empty() || NowSeconds() + kRounds * round_seconds_ <= loop_.end;
  }

  Plan Priced(Plan plan) const {
    PricePlan(graph_, costs_, plan, corrections_);
    return plan;
  }

  void RunRound(const std::string& name) {
    const double began = NowSeconds();
    const Plan plan = Solve();
    const size_t rounds_before = refined_.rounds.size();
    solution_ = Find(plan);
    if (solution_ < known_.size() &&
        Agrees(plan.predicted_seconds, known_[solution_].measurement.seconds, loop_.tolerance)) {
      refined_.settled = true;
      return;
    }
    const bool first = solutions_ == 0;
    if (first) Keep(plan);
    Enter(fmt::format("solution {}", ++solutions_), plan, first ? plan : last_);
    last_ = plan;
    if (first) EnterRivals();
    RunAll(name);
    NoteMeasured(rounds_before);
    round_seconds_ = NowSeconds() - began;
  }

  // For those rounds from the given one on.
  void NoteMeasured(size_t first_round) {
    for (const KnownPlan& known : known_) {
      if (known.round < first_round) continue;
      refined_.rounds[known.round].measured_seconds = known.measurement.seconds;
      refined_.rounds[known.round].bytes = known.measurement.bytes;
      refined_.rounds[known.round].disturbed_share = known.measurement.disturbed_share;
    }
  }

  // Which of the known plans has these schedules; their number when none has.
  size_t Find(const Plan& plan) const {
    const auto same =
        std::ranges::find_if(known_, [&](const KnownPlan& k) { return SameSchedules(k.plan, plan); });
    return size_t(same - known_.begin());
  }

  // A plan that the coming round is made for: a new one, or a known one once more.
  void Enter(const std::string& name, const Plan& plan, const Plan& before) {
    const size_t index = Find(plan);
    if (index == known_.size()) known_.emplace_back();
    known_[index].plan = plan;
    known_[index].round = refined_.rounds.size();
    refined_.rounds.push_back({name, plan.predicted_seconds, 0, 0, 0, ChangedNodes(before, plan)});
  }

  void EnterRivals() {
    std::vector<RivalPlan> rivals = loop_.rivals;
    std::ranges::move(TemplateRivals(problem_, last_, loop_.max_weight_bytes), std::back_inserter(rivals));
    if (loop_.baselines) refined_.baselines = PlanBaselines(problem_, loop_.max_weight_bytes);
    for (const PlannedBaseline& baseline : refined_.baselines)
      if (baseline.plan) rivals.push_back({baseline.name, *baseline.plan});
    for (const RivalPlan& rival : rivals)
      if (Find(rival.plan) == known_.size()) Enter(rival.name, rival.plan, last_);
  }

  // What several plans share is learned from the last of them, which is the latest solution.
  void RunAll(const std::string& what) {
    std::vector<const Plan*> plans;
    for (const KnownPlan& known : known_) plans.push_back(&known.plan);
    std::vector<PlanMeasurement> measurements = loop_.measure(plans, what);
    corrections_ = {};
    for (size_t i = 0; i < known_.size(); ++i) {
      KnownPlan& known = known_[i];
      known.measurement = std::move(measurements.at(i));
      LearnFrom(known.plan, known.measurement, corrections_);
      const CorePlacement& placement = known.measurement.placement;
      known.sessions.push_back({placement, RatiosTo(known_[0].measurement, known.measurement)});
      best_ = BetterOf(best_, placement);
    }
    if (loop_.keep) Keep(Priced(Fastest().plan));
  }

  void LearnFrom(const Plan& plan, const PlanMeasurement& measurement, Corrections& corrections) {
    Learn(MatchSteps(graph_, plan, costs_, measurement.steps), ShareScale(measurement), corrections);
  }

  // The plan made of the fastest configs has to beat those that are as fast as their own best by whole runs.
  void TryVariants() {
    const Plan base = Fastest().plan;
    std::vector<Plan> plans = ConfigVariants(graph_, base, *loop_.variants_of, problem_.options().cpu);
    if (plans.empty()) return;
    plans.insert(plans.begin(), base);
    std::vector<const Plan*> pointers;
    pointers.reserve(plans.size());
    for (const Plan& plan : plans) pointers.push_back(&plan);
    const std::vector<PlanMeasurement> measurements = loop_.measure(pointers, "other configs");
    Plan combined = FastestConfigs(plans, measurements);
    if (SameSchedules(combined, base)) return;
    for (size_t i = 0; i < plans.size(); ++i) LearnFrom(plans[i], measurements[i], corrections_);
    PricePlan(graph_, costs_, combined, corrections_);
    const size_t rounds_before = refined_.rounds.size();
    Enter("configs in context", combined, base);
    RunAll("configs in context");
    NoteMeasured(rounds_before);
  }

  // The median ratio to the first solution, of sessions that saw the cores placed as well as any did; of all
  // where none of the plan's was one.
  double RatioOf(const KnownPlan& known) const {
    std::vector<double> well_placed, all;
    for (const Session& session : known.sessions) {
      all.insert(all.end(), session.ratios.begin(), session.ratios.end());
      if (AreAlike(session.placement, best_))
        well_placed.insert(well_placed.end(), session.ratios.begin(), session.ratios.end());
    }
    return Quantile(well_placed.empty() ? std::move(all) : std::move(well_placed), 0.5);
  }

  // The last solution, if it is as fast as others. Precondition: some plan has run.
  const KnownPlan& Fastest() const {
    const KnownPlan* fastest = known_[solution_].measured() ? &known_[solution_] : &known_[0];
    double least = RatioOf(*fastest);
    for (const KnownPlan& known : known_) {
      if (!known.measured()) continue;
      const double ratio = RatioOf(known);
      if (ratio >= least) continue;
      least = ratio;
      fastest = &known;
    }
    return *fastest;
  }

  // Those that are nearly as fast as the fastest are compared once more: the smallest of the fastest wins.
  const KnownPlan& Winner() const {
    constexpr double kNearly = 1.1;
    constexpr size_t kMost = 5;
    std::vector<std::pair<double, const KnownPlan*>> close = {{RatioOf(Fastest()), &Fastest()}};
    for (const KnownPlan& known : known_)
      if (&known != close[0].second && RatioOf(known) <= kNearly * close[0].first)
        close.emplace_back(RatioOf(known), &known);
    std::stable_sort(close.begin() + 1, close.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    close.resize(std::min(close.size(), kMost));
    if (close.size() == 1) return *close[0].second;
    std::vector<const Plan*> plans;
    plans.reserve(close.size());
    for (const auto& [ratio, known] : close) plans.push_back(&known->plan);
    const std::vector<double> ratios = loop_.compare(plans);
    const double as_fast = std::ranges::min(ratios) * (1 + loop_.as_fast);
    const auto worth = [&](size_t i) {
      return std::tuple(ratios[i] > as_fast, close[i].second->measurement.bytes, ratios[i]);
    };
    size_t winner = 0;
    for (size_t i = 1; i < close.size(); ++i)
      if (worth(i) < worth(winner)) winner = i;
    return *close[winner].second;
  }

  // What it is predicted to take is of its own turns; all plans were last compared at another moment, in
  // which the machine may have been faster or slower.
  void Choose(const KnownPlan& known) {
    Plan plan = Priced(known.plan);
    const double then = plan.predicted_seconds;
    std::vector<PlanMeasurement> twice = loop_.measure({&plan, &plan}, "the plan once more");
    Corrections own;
    LearnFrom(plan, twice.at(0), own);
    PricePlan(graph_, costs_, plan, own);
    plan.placement = twice.at(0).placement;
    plan.corrections = corrections_.Scaled(then > 0 ? plan.predicted_seconds / then : 1);
    refined_.plan = std::move(plan);
    refined_.round = known.round;
    refined_.check = std::move(twice.at(1));
    Keep(refined_.plan);
  }

  void Challenge() {
    constexpr int kMaxReplaced = 2;
    for (int replaced = 0;; ++replaced) {
      const std::optional<Plan> faster = loop_.challenge(refined_);
      if (!faster || known_.empty() || replaced == kMaxReplaced) return;
      const size_t index = Find(*faster);
      TILESMITH_CHECK(index < known_.size(), "a plan that never ran");
      Choose(known_[index]);
    }
  }

  const Graph& graph_;
  const NetworkProblem& problem_;
  CostSource& costs_;
  const PredictionLoop& loop_;
  RefinedPlan refined_;
  Corrections corrections_;       // all that the last rounds taught
  std::vector<KnownPlan> known_;  // distinct
  Plan last_;                     // solution
  int solutions_ = 0;
  double round_seconds_ = 0;  // that the last round took
  CorePlacement best_;        // of any session
  size_t solution_ = 0;       // which of the known plans is the last solution
};

}  // namespace

RefinedPlan RefinePlan(const NetworkProblem& problem, CostSource& costs, const PredictionLoop& loop) {
  return Refinement(problem, costs, loop).Refine();
}

}  // namespace tilesmith
