#include "graph_tuner/refine/prediction_loop.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <numeric>
#include <tuple>

#include "graph_tuner/plan/price_plan.h"
#include "graph_tuner/refine/plan_race.h"
#include "graph_tuner/refine/region_plans.h"
#include "graph_tuner/refine/rivals.h"
#include "layouts/base/check.h"
#include "layouts/base/error.h"
#include "layouts/measure/clock.h"

namespace tilesmith {
namespace {

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
      : graph_(problem.graph()), problem_(problem), costs_(costs), loop_(loop), race_(graph_, costs) {}

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
    if (known().empty()) {
      last_ = Solve();
      Keep(last_);
      const PlanMeasurement check = loop_.measure({&last_}, "the plan").at(0);
      refined_.plan = last_;
      refined_.check = check;
      if (loop_.baselines) refined_.baselines = PlanBaselines(problem_, loop_.max_weight_bytes);
    } else {
      if (known().size() > 1) RunAll("all once more");
      if (loop_.variants_of) TryVariants();
      if (problem_.options().regions) TryRegions();
      Choose(loop_.compare ? Winner() : race_.Fastest(solution_));
    }
    if (loop_.challenge) Challenge();
  }

  // Stopped: what is known by now has to do.
  void Settle() {
    refined_.finished = false;
    if (refined_.check.seconds > 0) return;
    if (!std::ranges::any_of(known(), &RacingPlan::measured)) {
      refined_.plan = last_;
      return;
    }
    const size_t fastest = race_.Fastest(solution_);
    refined_.plan = race_.Kept(fastest);
    refined_.round = round_of_[fastest];
    refined_.check = known()[fastest].measurement;
    NoteRatios(fastest);
  }

  const Plan& Solve() {
    const double began = NowSeconds();
    refined_.solved = GraphTune(problem_, race_.corrections(), loop_.max_weight_bytes);
    refined_.solve_seconds = NowSeconds() - began;
    return refined_.solved.plan;
  }

  void Keep(const Plan& plan) const {
    if (loop_.keep) loop_.keep(plan);
  }

  // What follows a round runs its plans about three times as long.
  bool HasTimeForARound() const {
    constexpr double kRounds = 4;
    return known().empty() || NowSeconds() + kRounds * round_seconds_ <= loop_.end;
  }

  void RunRound(const std::string& name) {
    const double began = NowSeconds();
    const Plan plan = Solve();
    const size_t rounds_before = refined_.rounds.size();
    solution_ = race_.Find(plan);
    if (solution_ < known().size() &&
        Agrees(race_.Priced(plan, known()[solution_].measurement.placement).predicted_seconds,
               known()[solution_].measurement.seconds, loop_.tolerance)) {
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
    for (size_t i = 0; i < known().size(); ++i) {
      if (round_of_[i] < first_round) continue;
      const PlanMeasurement& measurement = known()[i].measurement;
      LoopRound& round = refined_.rounds[round_of_[i]];
      round.predicted_seconds = PredictionFor(known()[i].plan, measurement.placement).seconds;
      round.measured_seconds = measurement.seconds;
      round.bytes = measurement.bytes;
      round.disturbed_share = measurement.disturbed_share;
    }
  }

  // A plan that the coming round is made for: a new one, or a known one once more.
  void Enter(const std::string& name, const Plan& plan, const Plan& before) {
    Plan entered = plan;
    PredictAtDistances(graph_, costs_, entered, race_.corrections());
    const size_t index = race_.Enter(entered);
    round_of_.resize(known().size());
    round_of_[index] = refined_.rounds.size();
    refined_.rounds.push_back({name, KnownPrediction(plan), 0, 0, 0, ChangedNodes(before, plan)});
  }

  void EnterRivals() {
    std::vector<RivalPlan> rivals = loop_.rivals;
    std::ranges::move(TemplateRivals(problem_, last_, loop_.max_weight_bytes), std::back_inserter(rivals));
    if (loop_.baselines) refined_.baselines = PlanBaselines(problem_, loop_.max_weight_bytes);
    for (const PlannedBaseline& baseline : refined_.baselines)
      if (baseline.plan) rivals.push_back({baseline.name, *baseline.plan});
    for (const RivalPlan& rival : rivals)
      if (race_.Find(rival.plan) == known().size()) Enter(rival.name, rival.plan, last_);
  }

  // What several plans share is learned from the last of them, which is the latest solution.
  void RunAll(const std::string& what) {
    std::vector<size_t> all(known().size());
    std::iota(all.begin(), all.end(), 0);
    race_.Run(all, [&](const std::vector<const Plan*>& plans) { return loop_.measure(plans, what); });
    if (loop_.keep) Keep(race_.Kept(race_.Fastest(solution_)));
  }

  // The plan made of the fastest configs has to beat those that are as fast as their own best by whole runs.
  void TryVariants() {
    const Plan base = known()[race_.Fastest(solution_)].plan;
    std::vector<Plan> plans = ConfigVariants(graph_, base, *loop_.variants_of, problem_.options().cpu);
    if (plans.empty()) return;
    plans.insert(plans.begin(), base);
    std::vector<const Plan*> pointers;
    pointers.reserve(plans.size());
    for (const Plan& plan : plans) pointers.push_back(&plan);
    const std::vector<PlanMeasurement> measurements = loop_.measure(pointers, "other configs");
    Plan combined = FastestConfigs(plans, measurements);
    if (SameSchedules(combined, base)) return;
    for (size_t i = 0; i < plans.size(); ++i) race_.Learn(plans[i], measurements[i]);
    combined = race_.Priced(std::move(combined));
    const size_t rounds_before = refined_.rounds.size();
    Enter("configs in context", combined, base);
    RunAll("configs in context");
    NoteMeasured(rounds_before);
  }

  void TryRegions() {
    const Plan base = WithoutRegions(known()[race_.Fastest(solution_)].plan);
    const size_t rounds_before = refined_.rounds.size();
    for (const RivalPlan& rival :
         RegionRivals(graph_, base, problem_.usable(), costs_, problem_.options().cpu,
                      [&](const std::vector<const Plan*>& plans) {
                        return loop_.measure(plans, "layers depth first");
                      }))
      Enter(rival.name, race_.Priced(rival.plan), base);
    if (refined_.rounds.size() == rounds_before) return;
    RunAll("regions");
    NoteMeasured(rounds_before);
  }

  // Those that are nearly as fast as the fastest are compared once more: the smallest of the fastest wins.
  size_t Winner() {
    constexpr double kNearly = 1.1;
    constexpr size_t kMax = 5;
    const size_t fastest = race_.Fastest(solution_);
    std::vector<std::pair<double, size_t>> close = {{race_.RatioOf(fastest), fastest}};
    for (size_t i = 0; i < known().size(); ++i)
      if (i != fastest && race_.RatioOf(i) <= kNearly * close[0].first)
        close.emplace_back(race_.RatioOf(i), i);
    std::stable_sort(close.begin() + 1, close.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    close.resize(std::min(close.size(), kMax));
    compared_.clear();
    if (close.size() == 1) return fastest;
    std::vector<const Plan*> plans;
    plans.reserve(close.size());
    for (const auto& [ratio, index] : close) plans.push_back(&known()[index].plan);
    const std::vector<double> ratios = loop_.compare(plans);
    for (size_t i = 0; i < close.size(); ++i) compared_[close[i].second] = ratios[i];
    const double as_fast = std::ranges::min(ratios) * (1 + loop_.as_fast);
    const auto worth = [&](size_t i) {
      return std::tuple(ratios[i] > as_fast, known()[close[i].second].measurement.bytes, ratios[i]);
    };
    size_t winner = 0;
    for (size_t i = 1; i < close.size(); ++i)
      if (worth(i) < worth(winner)) winner = i;
    return close[winner].second;
  }

  // How all others did beside the chosen plan, where the choice was made.
  void NoteRatios(size_t chosen) {
    const auto own = compared_.find(chosen);
    double least = 1;
    for (size_t i = 0; i < known().size(); ++i) {
      if (!known()[i].measured()) continue;
      LoopRound& round = refined_.rounds[round_of_[i]];
      const auto compared = compared_.find(i);
      const bool once_more = own != compared_.end() && compared != compared_.end();
      round.ratio = once_more ? compared->second / own->second : race_.RatioOf(i) / race_.RatioOf(chosen);
      round.note = once_more ? "compared once more" : "";
      if (once_more) least = std::min(least, round.ratio);
    }
    if (least < 1) refined_.rounds[round_of_[chosen]].note = "as fast as the fastest, in less memory";
  }

  // What it is predicted to take is of its own turns; all plans were last compared at another moment, in
  // which the machine may have been faster or slower.
  void Choose(size_t chosen) {
    Plan plan = race_.Kept(chosen);
    std::vector<PlanMeasurement> twice = loop_.measure({&plan, &plan}, "the plan once more");
    const CorePlacement& placement = twice.at(0).placement;
    const double then = race_.Priced(plan, placement).predicted_seconds;
    Corrections own;
    Learn(MatchSteps(graph_, plan, costs_, twice.at(0)), ShareScale(twice.at(0)), own);
    PriceWhereMeasured(graph_, costs_, plan, own, placement);
    plan.corrections = race_.corrections().Scaled(then > 0 ? plan.predicted_seconds / then : 1);
    refined_.plan = std::move(plan);
    refined_.round = round_of_[chosen];
    refined_.check = std::move(twice.at(1));
    NoteRatios(chosen);
    Keep(refined_.plan);
  }

  void Challenge() {
    constexpr int kMaxReplaced = 2;
    for (int replaced = 0;; ++replaced) {
      const std::optional<Plan> faster = loop_.challenge(refined_);
      if (!faster || known().empty() || replaced == kMaxReplaced) return;
      const size_t index = race_.Find(*faster);
      TILESMITH_CHECK(index < known().size(), "a plan that never ran");
      Choose(index);
      refined_.rounds[refined_.round].note = "faster beside the baselines than what was chosen before";
    }
  }

  const std::vector<RacingPlan>& known() const { return race_.plans(); }

  const Graph& graph_;
  const NetworkProblem& problem_;
  CostSource& costs_;
  const PredictionLoop& loop_;
  RefinedPlan refined_;
  PlanRace race_;
  std::vector<size_t> round_of_;  // of each known plan: of RefinedPlan::rounds, the last one it was made for
  Plan last_;                     // solution
  int solutions_ = 0;
  std::map<size_t, double> compared_;  // times of known plans in the last comparison, to one of them
  double round_seconds_ = 0;           // that the last round took
  size_t solution_ = 0;                // which of the known plans is the last solution
};

}  // namespace

RefinedPlan RefinePlan(const NetworkProblem& problem, CostSource& costs, const PredictionLoop& loop) {
  return Refinement(problem, costs, loop).Refine();
}

}  // namespace tilesmith
