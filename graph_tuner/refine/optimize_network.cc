#include "graph_tuner/refine/optimize_network.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>

#include "graph_tuner/problem/graph_tune.h"
#include "graph_tuner/refine/lazy_costs.h"
#include "graph_tuner/refine/region_plans.h"
#include "graph_tuner/refine/rivals.h"
#include "layouts/base/check.h"
#include "layouts/base/error.h"
#include "layouts/measure/clock.h"

namespace tilesmith {
namespace {

constexpr double kPatience = 4;        // times the gain of tuning that a new plan has to promise
constexpr int kMaxSolutions = 12;      // of one problem, while costs turn out to be guesses
constexpr double kWorthRunning = 1.1;  // times the prediction of the solution, of a rival at most
constexpr size_t kMaxRivals = 2;
constexpr double kRunsOfAPlan = 60;  // in the network's time: what making a plan takes until one was made
constexpr double kPlanSeconds = 0.5;
constexpr double kReserve = 1.3;  // times as long as the last plan took, for one at the end

class NetworkOptimizer {
 public:
  explicit NetworkOptimizer(const NetworkOptimization& work) : work_(work), costs_(*work.costs) {
    options_.allow_defaults = true;
    options_.progress = nullptr;
    for (const Graph* graph : work.graphs) sizes_.push_back({*graph, PlanRace(*graph, costs_)});
    for (size_t i = 0; i < work.workloads.size(); ++i)
      task_of_.emplace(WorkloadToString(work.workloads[i]), i);
    layout_gains_.resize(work.workloads.size());
  }

  OptimizedNetwork Optimize() {
    for (size_t i = 0; i < sizes_.size(); ++i) BeginWithoutRunning(i);
    try {
      Work();
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kInterrupted) throw;
    }
    OptimizedNetwork optimized;
    for (const Size& size : sizes_) optimized.plans.push_back(Result(size));
    optimized.stopped = Stopped();
    return optimized;
  }

 private:
  struct Size {
    const Graph& graph;
    PlanRace race;
    size_t best = 0;                        // of the race's plans
    std::optional<size_t> untuned_at = {};  // of them, where the plan without tuning is one
    PlanMeasurement untuned = {};
    // What a new plan is expected to save; and of the network's time, as the tuner has it, when the last one
    // was made.
    double promised = std::numeric_limits<double>::infinity(), tuned_seconds = 0;
    double kept = 1;          // share of what plans promised that they saved, the later ones counting more
    double plan_seconds = 0;  // that making the last one took
    int solutions = 0;
    std::vector<Plan> tried_regions = {};  // plans without them, that variants with them ran of
  };

  bool Stopped() const { return work_.should_stop && work_.should_stop(); }
  void Stage(const std::string& text) const {
    if (work_.on_stage) work_.on_stage(text);
  }

  GraphTuneResult Solve(const Size& size) {
    const NetworkProblem problem(size.graph, *work_.records, costs_, options_);
    return GraphTune(problem, size.race.corrections(), work_.max_weight_bytes);
  }

  std::optional<Plan> Untuned(const Size& size) const {
    return UntunedPlan(size.graph, options_, work_.max_weight_bytes);
  }

  // A known plan; or, where there are no records, the one without tuning; or by them and guesses.
  void BeginWithoutRunning(size_t index) {
    Size& size = sizes_[index];
    const auto known = std::ranges::find(work_.known_plans, GraphHash(size.graph), &Plan::graph_hash);
    std::optional<Plan> first;
    if (known != work_.known_plans.end()) first = *known;
    if (!first && work_.records->empty()) first = Untuned(size);
    size.best = size.race.Enter(first ? *std::move(first) : Solve(size).plan);
    if (known == work_.known_plans.end() && work_.records->empty()) size.untuned_at = size.best;
    Keep(index);
  }

  void Keep(size_t index) const {
    if (work_.keep) work_.keep(index, BestPlan(sizes_[index]));
  }

  Plan BestPlan(const Size& size) const {
    const RacingPlan& best = size.race.plans()[size.best];
    return best.measured() ? size.race.Kept(size.best) : best.plan;
  }

  void Work() {
    while (!Stopped()) {
      const std::optional<TuningOffer> offer = work_.tuner->BestOffer(layout_gains_);
      const double last_turn = work_.end - Reserve();
      if (NowSeconds() >= last_turn || !offer) {
        if (!MakeDue(0)) return;
      } else if (!MakeDue(kPatience * offer->gain)) {
        Take(*offer, last_turn);
      }
    }
  }

  void Take(const TuningOffer& offer, double end) {
    const double began = NowSeconds();
    work_.tuner->Take(offer, end);
    if (offer.stage == TaskStage::kSearch) return;
    for (Size& size : sizes_) size.promised += offer.gain * (NowSeconds() - began);
  }

  double PromiseOf(const Size& size) const {
    return size.promised + std::max(0.0, size.tuned_seconds - work_.tuner->NetworkSeconds());
  }
  double GainOf(const Size& size) const { return size.kept * PromiseOf(size); }

  double PlanSeconds(const Size& size) const {
    return size.plan_seconds > 0 ? size.plan_seconds
                                 : kPlanSeconds + kRunsOfAPlan * work_.tuner->NetworkSeconds();
  }

  double Reserve() const {
    double seconds = 0;
    for (const Size& size : sizes_)
      if (GainOf(size) > 0) seconds += kReserve * PlanSeconds(size);
    return seconds;
  }

  // A plan for the size that promises most, if it is more than `gain` for each second. False if none does.
  bool MakeDue(double gain) {
    Size* due = nullptr;
    double most = gain;
    for (Size& size : sizes_) {
      const double promised = GainOf(size) / PlanSeconds(size);
      if (!(promised > most)) continue;
      most = promised;
      due = &size;
    }
    if (due == nullptr || NowSeconds() >= work_.end) return false;
    MakePlan(static_cast<size_t>(due - sizes_.data()));
    return true;
  }

  void MakePlan(size_t index) {
    Size& size = sizes_[index];
    const double began = NowSeconds();
    const std::shared_ptr<void> ready = work_.get_ready ? work_.get_ready() : nullptr;
    costs_.SeeDistance();
    Stage("solving");
    const double promised = PromiseOf(size);
    const Plan solution = SolveWithCosts(size);
    size.promised = 0;
    size.tuned_seconds = work_.tuner->NetworkSeconds();
    if (size.race.Find(solution) < size.race.plans().size() && size.race.plans()[0].measured()) {
      size.plan_seconds = std::max(size.plan_seconds / 2, NowSeconds() - began);
      return;
    }
    const size_t before = size.best;
    Run(index, solution);
    TryRegions(index);
    const double saved = SecondsOf(size, before) - SecondsOf(size, size.best);
    if (std::isfinite(promised)) size.kept = (size.kept + std::clamp(saved / promised, 0.0, 1.0)) / 2;
    size.plan_seconds = NowSeconds() - began;
    NoteLayoutGains(size);
    // Under what the session taught.
    const Plan next = Solve(size).plan;
    if (size.race.Find(next) == size.race.plans().size())
      size.promised = std::max(0.0, SecondsOf(size, size.best) - next.predicted_seconds);
  }

  // In the mean of the distances of the cores, as solutions are predicted.
  static double SecondsOf(const Size& size, size_t plan) {
    return size.race.Priced(size.race.plans()[plan].plan).predicted_seconds;
  }

  Plan SolveWithCosts(Size& size) {
    Plan solution;
    for (int i = 0; i < kMaxSolutions; ++i) {
      solution = Solve(size).plan;
      const size_t measured = costs_.Measure(size.graph, solution, [&](size_t done, size_t total) {
        if (Stopped() || NowSeconds() >= work_.end) throw Error(ErrorCode::kInterrupted, "out of time");
        Stage(fmt::format("costs of ops and transforms {}/{}", done + 1, total));
      });
      if (measured == 0) break;
    }
    return size.race.Priced(std::move(solution));
  }

  void Run(size_t index, const Plan& solution) {
    Size& size = sizes_[index];
    std::vector<size_t> session = {size.best};
    // The first session is to be short, since what it decides, tuned or not, is worth most; so is the last.
    const bool has_time = NowSeconds() + 2 * kReserve * PlanSeconds(size) < work_.end;
    if (size.solutions == 0) {
      const std::optional<Plan> untuned = Untuned(size);
      if (untuned && size.race.Find(*untuned) == size.race.plans().size())
        session.push_back(size.race.Enter(*untuned));
      if (untuned) size.untuned_at = size.race.Find(*untuned);
    }
    if (size.solutions > 0 && has_time)
      for (const Plan& rival : Rivals(size, solution)) session.push_back(size.race.Enter(rival));
    const size_t entered = size.race.Enter(solution);
    if (std::ranges::find(session, entered) == session.end()) session.push_back(entered);
    Stage(fmt::format("running {} plans by turns", session.size()));
    size.race.Run(session,
                  [&](const std::vector<const Plan*>& plans) { return work_.measure(index, plans); });
    if (size.untuned.seconds == 0 && size.untuned_at)
      size.untuned = size.race.plans()[*size.untuned_at].measurement;
    ++size.solutions;
    for (size_t plan : session)
      if (size.race.RatioOf(plan) < size.race.RatioOf(size.best)) size.best = plan;
    Keep(index);
  }

  // The best plan with regions, where those of its layers that ran depth first pay. Once for each best plan.
  void TryRegions(size_t index) {
    Size& size = sizes_[index];
    const Plan base = WithoutRegions(size.race.plans()[size.best].plan);
    if (!options_.regions || NowSeconds() + kReserve * PlanSeconds(size) >= work_.end) return;
    if (std::ranges::any_of(size.tried_regions,
                            [&](const Plan& tried) { return SameSchedules(tried, base); }))
      return;
    size.tried_regions.push_back(base);
    const NetworkProblem problem(size.graph, *work_.records, costs_, options_);
    Stage("running layers depth first");
    const auto measure = [&](const std::vector<const Plan*>& plans) { return work_.measure(index, plans); };
    std::vector<size_t> session = {size.best};
    for (const RivalPlan& rival :
         RegionRivals(size.graph, base, problem.usable(), costs_, options_.cpu, measure))
      session.push_back(size.race.Enter(size.race.Priced(rival.plan)));
    if (session.size() == 1) return;
    Stage("running plans with regions by turns");
    size.race.Run(session, measure);
    for (const size_t plan : session)
      if (size.race.RatioOf(plan) < size.race.RatioOf(size.best)) size.best = plan;
    Keep(index);
  }

  // What the solution does without one of its templates, and plans that deal work to threads otherwise, when
  // they are new and seem nearly as fast.
  std::vector<Plan> Rivals(const Size& size, const Plan& solution) {
    const NetworkProblem problem(size.graph, *work_.records, costs_, options_);
    std::vector<RivalPlan> all = TemplateRivals(problem, solution, work_.max_weight_bytes);
    std::ranges::move(SplitRivals(problem, costs_, work_.max_weight_bytes), std::back_inserter(all));
    std::vector<Plan> rivals;
    for (RivalPlan& rival : all) {
      if (KnownPrediction(rival.plan) == 0) continue;
      Plan plan = size.race.Priced(std::move(rival.plan));
      const bool is_new = size.race.Find(plan) == size.race.plans().size();
      if (is_new && plan.predicted_seconds <= kWorthRunning * solution.predicted_seconds)
        rivals.push_back(std::move(plan));
    }
    std::ranges::stable_sort(rivals, {}, &Plan::predicted_seconds);
    if (rivals.size() > kMaxRivals) rivals.resize(kMaxRivals);
    return rivals;
  }

  // Notes what the best plan pays for each task's layouts: transforms of what its nodes read and write, and
  // schedules slower than its fastest.
  void NoteLayoutGains(const Size& size) {
    const Plan plan = BestPlan(size);
    const std::vector<double> best = work_.tuner->BestSeconds();
    std::fill(layout_gains_.begin(), layout_gains_.end(), 0);
    std::map<std::string, double> converting;  // a tensor, by the node that produces it
    for (const TransformPlan& transform : plan.transforms)
      converting[transform.tensor] += transform.predicted_seconds;
    for (const NodePlan& node : plan.nodes) {
      if (!node.record) continue;
      const auto task = task_of_.find(WorkloadToString(node.record->workload));
      if (task == task_of_.end()) continue;
      double& gain = layout_gains_[task->second];
      if (best[task->second] > 0) gain += std::max(0.0, node.record->seconds - best[task->second]);
      const Graph::NodeId id = *size.graph.Find(node.node);
      gain += converting[node.node];
      for (const Graph::NodeId input : size.graph.Inputs(id)) gain += converting[size.graph.node(input).name];
    }
  }

  static double SavedSeconds(const Size& size) {
    const PlanMeasurement& measurement = size.race.plans()[size.best].measurement;
    if (!size.untuned_at || *size.untuned_at == size.best || !size.race.plans()[*size.untuned_at].measured())
      return 0;
    const double ratio = size.race.RatioOf(size.best);
    return ratio > 0 ? measurement.seconds * (size.race.RatioOf(*size.untuned_at) / ratio - 1) : 0;
  }

  OptimizedPlan Result(const Size& size) const {
    const RacingPlan& best = size.race.plans()[size.best];
    OptimizedPlan result{BestPlan(size), best.measurement, size.untuned, 0, size.solutions};
    if (best.measured()) result.seconds_saved = SavedSeconds(size);
    return result;
  }

  const NetworkOptimization& work_;
  LazyCosts costs_;
  GraphTuneOptions options_ = work_.options;
  std::vector<Size> sizes_;
  std::map<std::string, size_t> task_of_;
  std::vector<double> layout_gains_;  // of each task, by the plan that ran last
};

}  // namespace

OptimizedNetwork OptimizeNetwork(const NetworkOptimization& work) {
  return NetworkOptimizer(work).Optimize();
}

}  // namespace tilesmith
