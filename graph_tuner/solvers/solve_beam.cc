#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <numeric>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "graph_tuner/solvers/lower_bound.h"
#include "graph_tuner/solvers/pairwise_costs.h"
#include "graph_tuner/solvers/solver.h"
#include "layouts/base/check.h"

namespace tilesmith {
namespace {

// In which order beam search gives options to variables: one that keeps the frontier small.

struct BeamStep {
  int var = 0;
  std::vector<int> frontier;  // afterwards: chosen variables with neighbours not chosen yet, ascending
};

class Order {
 public:
  explicit Order(const PairwiseCosts& costs)
      : costs_(costs), neighbours_(costs.unary.size()), open_(costs.unary.size()) {
    for (const PairwiseEdge& edge : costs.edges) {
      neighbours_[static_cast<size_t>(edge.a)].push_back(edge.b);
      neighbours_[static_cast<size_t>(edge.b)].push_back(edge.a);
    }
    for (int var = 0; var < costs.size(); ++var) {
      open_[static_cast<size_t>(var)] = static_cast<int>(neighbours_[static_cast<size_t>(var)].size());
      left_.insert(var);
    }
  }

  std::vector<BeamStep> Choose() {
    std::vector<BeamStep> steps;
    while (!left_.empty()) {
      const int var = Next();
      Take(var);
      steps.push_back({var, {frontier_.begin(), frontier_.end()}});
    }
    return steps;
  }

 private:
  int Next() const {
    if (candidates_.empty()) return *left_.begin();
    int best = -1;
    double least = 0;
    for (int var : candidates_) {
      const double growth = Growth(var);
      if (best >= 0 && !(growth < least)) continue;
      best = var;
      least = growth;
    }
    return best;
  }

  // How much the logarithm of the frontier's combinations grows.
  double Growth(int var) const {
    double growth = open_[static_cast<size_t>(var)] > 0 ? std::log(costs_.Options(var)) : 0;
    for (int other : neighbours_[static_cast<size_t>(var)])
      if (frontier_.count(other) && open_[static_cast<size_t>(other)] == 1)
        growth -= std::log(costs_.Options(other));
    return growth;
  }

  void Take(int var) {
    left_.erase(var);
    candidates_.erase(var);
    for (int other : neighbours_[static_cast<size_t>(var)]) {
      if (left_.count(other)) candidates_.insert(other);
      if (--open_[static_cast<size_t>(other)] == 0) frontier_.erase(other);
    }
    if (open_[static_cast<size_t>(var)] > 0) frontier_.insert(var);
  }

  const PairwiseCosts& costs_;
  std::vector<std::vector<int>> neighbours_;
  std::vector<int> open_;  // neighbours of each variable that are not chosen yet
  std::set<int> left_, candidates_, frontier_;
};

// Greedy: of the neighbours of the frontier, the variable after which the frontier has the fewest
// combinations of options; where there is no frontier, the lowest variable left, which is where the network
// begins. Ties go to the lowest variable.
std::vector<BeamStep> ChooseBeamOrder(const PairwiseCosts& costs) { return Order(costs).Choose(); }

// The options of a frontier's variables, in their order.
using Key = std::u16string;

struct State {
  Key key;
  double estimate = 0;  // of the whole assignment: no way to complete it costs less
  uint32_t parent = 0;  // of the step before
  uint16_t option = 0;  // of this step's variable
};

// For the way back.
struct Expansion {
  int var = 0;
  std::vector<uint32_t> parents;
  std::vector<uint16_t> options;
};

// A variable without an option, as a step sees it.
struct Open {
  int var = 0;
  struct Chosen {
    const PairwiseEdge* edge = nullptr;
    size_t position = 0;  // of the edge's other end in the frontier
  };
  std::vector<Chosen> chosen;             // its edges to the frontier
  const PairwiseEdge* to_step = nullptr;  // its edge to the variable that the step chooses for
  std::vector<double> costs;              // of its options, with what the frontier adds; for one state
  double least = 0;                       // of them
};

class Beam {
 public:
  Beam(const PairwiseCosts& costs, uint64_t width)
      : costs_(costs), width_(width), edges_of_(EdgesOf(costs)), position_(costs.unary.size(), -1) {
    TILESMITH_CHECK(width >= 1, "a beam of width 0");
  }

  void Run() {
    const std::vector<BeamStep> order = ChooseBeamOrder(costs_);
    states_ = {State{{}, SumOfLeast(costs_), 0, 0}};
    for (const BeamStep& step : order) {
      Extend(step);
      if (states_.size() > width_) Cut();
      Remember(step.var);
      for (int& position : position_) position = -1;
      for (size_t i = 0; i < step.frontier.size(); ++i)
        position_[static_cast<size_t>(step.frontier[i])] = static_cast<int>(i);
      stats.induced_width = std::max(stats.induced_width, static_cast<int>(step.frontier.size()));
    }
  }

  // Every frontier being empty in the end, one state is left, or none.
  bool found() const { return !states_.empty(); }

  std::vector<int> BestOptions() const {
    std::vector<int> options(costs_.unary.size(), 0);
    uint32_t state = 0;
    for (auto step = steps_.rbegin(); step != steps_.rend(); ++step) {
      options[static_cast<size_t>(step->var)] = step->options[state];
      state = step->parents[state];
    }
    return options;
  }

  double least_dropped() const { return least_dropped_; }  // no assignment that was dropped costs less

  SolveStats stats;

 private:
  void Extend(const BeamStep& step) {
    Open self = Look(step.var, nullptr);
    // The neighbours still to come, and the least entries of the edges there: what an estimate holds until
    // now for the edges that the neighbours' costs comprise from now on.
    std::vector<Open> ahead;
    double least_edges = 0;
    for (int e : edges_of_[static_cast<size_t>(step.var)]) {
      const PairwiseEdge& edge = costs_.edges[static_cast<size_t>(e)];
      const int other = edge.Other(step.var);
      if (position_[static_cast<size_t>(other)] >= 0) continue;
      ahead.push_back(Look(other, &edge));
      least_edges += *std::min_element(edge.costs.values.begin(), edge.costs.values.end());
    }
    std::vector<State> next;
    std::unordered_map<Key, uint32_t> known;
    for (size_t parent = 0; parent < states_.size(); ++parent) {
      const State& state = states_[parent];
      Weigh(self, state.key);
      for (Open& open : ahead) Weigh(open, state.key);
      for (int option = 0; option < costs_.Options(step.var); ++option) {
        double estimate =
            state.estimate + (self.costs[static_cast<size_t>(option)] - self.least) - least_edges;
        for (const Open& open : ahead) estimate += LeastAfter(open, step.var, option) - open.least;
        if (!(estimate < kForbidden)) continue;
        State candidate{KeyAfter(step, state.key, option), estimate, static_cast<uint32_t>(parent),
                        static_cast<uint16_t>(option)};
        const auto [at, is_new] = known.try_emplace(candidate.key, static_cast<uint32_t>(next.size()));
        if (is_new)
          next.push_back(std::move(candidate));
        else if (estimate < next[at->second].estimate)
          next[at->second] = std::move(candidate);
      }
    }
    states_ = std::move(next);
    stats.largest_table = std::max(stats.largest_table, static_cast<uint64_t>(states_.size()));
    stats.total_entries += states_.size();
  }

  Open Look(int var, const PairwiseEdge* to_step) const {
    Open open;
    open.var = var;
    open.to_step = to_step;
    for (int e : edges_of_[static_cast<size_t>(var)]) {
      const PairwiseEdge& edge = costs_.edges[static_cast<size_t>(e)];
      const int position = position_[static_cast<size_t>(edge.Other(var))];
      if (position >= 0) open.chosen.push_back({&edge, static_cast<size_t>(position)});
    }
    return open;
  }

  void Weigh(Open& open, const Key& key) const {
    open.costs = costs_.unary[static_cast<size_t>(open.var)];
    for (const Open::Chosen& chosen : open.chosen)
      for (size_t option = 0; option < open.costs.size(); ++option)
        open.costs[option] += chosen.edge->At(open.var, static_cast<int>(option), key[chosen.position]);
    open.least = *std::min_element(open.costs.begin(), open.costs.end());
  }

  // The least of the costs of `open`, once the step's variable has that option.
  static double LeastAfter(const Open& open, int step_var, int option) {
    double least = kForbidden;
    for (size_t i = 0; i < open.costs.size(); ++i)
      least = std::min(least, open.costs[i] + open.to_step->At(step_var, option, static_cast<int>(i)));
    return least;
  }

  Key KeyAfter(const BeamStep& step, const Key& before, int option) const {
    Key key(step.frontier.size(), 0);
    for (size_t i = 0; i < key.size(); ++i) {
      const int var = step.frontier[i];
      key[i] = var == step.var ? char16_t(option)
                               : before[static_cast<size_t>(position_[static_cast<size_t>(var)])];
    }
    return key;
  }

  // Keeps the best, in the order they are in; of equal ones those found first.
  void Cut() {
    std::vector<uint32_t> by_estimate(states_.size());
    std::iota(by_estimate.begin(), by_estimate.end(), 0);
    const auto first_dropped = by_estimate.begin() + std::ptrdiff_t(width_);
    std::nth_element(by_estimate.begin(), first_dropped, by_estimate.end(), [&](uint32_t a, uint32_t b) {
      return std::pair(states_[a].estimate, a) < std::pair(states_[b].estimate, b);
    });
    least_dropped_ = std::min(least_dropped_, states_[*first_dropped].estimate);
    by_estimate.resize(width_);
    std::sort(by_estimate.begin(), by_estimate.end());
    std::vector<State> kept;
    kept.reserve(width_);
    for (uint32_t i : by_estimate) kept.push_back(std::move(states_[i]));
    states_ = std::move(kept);
    ++stats.heuristic_choices;
  }

  void Remember(int var) {
    Expansion& step = steps_.emplace_back();
    step.var = var;
    for (const State& state : states_) {
      step.parents.push_back(state.parent);
      step.options.push_back(state.option);
    }
  }

  const PairwiseCosts& costs_;
  const uint64_t width_;
  const std::vector<std::vector<int>> edges_of_;
  std::vector<int> position_;  // of each variable in the states' keys; -1 when it is not in there
  std::vector<State> states_;
  std::vector<Expansion> steps_;
  double least_dropped_ = kForbidden;
};

}  // namespace

Solution SolveBeam(const LayoutProblem& problem, const SolveLimits& limits) {
  ReducedProblem reduced(problem);
  reduced.Reduce();
  PairwiseCosts costs = CostsOf(reduced);
  Reparametrise(costs);
  if (std::isinf(SumOfLeast(costs))) return InfeasibleSolution({});
  Beam beam(costs, limits.beam_width);
  beam.Run();
  if (!beam.found()) {
    if (std::isinf(beam.least_dropped())) return InfeasibleSolution(beam.stats);
    Solution lost;
    lost.stats = beam.stats;
    lost.refusal = fmt::format(
        "a beam of {} states lost every assignment with a finite cost, which does not prove that there is "
        "none",
        limits.beam_width);
    return lost;
  }
  Assignment assignment = reduced.Original(beam.BestOptions());
  if (std::isinf(beam.least_dropped())) return OptimalSolution(problem, std::move(assignment), beam.stats);
  const double bound = std::max(beam.least_dropped(), LowerBound(costs, limits.bound_table_entries));
  return BoundedSolution(problem, std::move(assignment), bound, beam.stats);
}

}  // namespace tilesmith
