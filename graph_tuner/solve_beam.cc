#include "graph_tuner/solve_beam.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <string>
#include <unordered_map>
#include <utility>

#include "graph_tuner/beam_order.h"
#include "graph_tuner/certificate.h"
#include "graph_tuner/lower_bound.h"
#include "layouts/base/check.h"

namespace tilesmith {
namespace {

// The options of a frontier's variables, in their order.
using Key = std::u16string;

struct State {
  Key key;
  double estimate = 0;  // of the whole assignment: no way to complete it costs less
  uint32_t parent = 0;  // of the step before
  uint16_t option = 0;  // of this step's variable
};

// For the way back.
struct Step {
  int var = 0;
  std::vector<uint32_t> parents;
  std::vector<uint16_t> options;
};

// An edge of the variable that a step chooses for.
struct StepEdge {
  const PairwiseEdge* edge = nullptr;
  size_t position = 0;            // of the other end in the frontier before, when it is in there
  const double* least = nullptr;  // for each option of the end that comes first: the edge's least entry
};

class Beam {
 public:
  Beam(const PairwiseCosts& costs, uint64_t width)
      : costs_(costs), width_(width), edges_of_(EdgesOf(costs)), least_(costs.edges.size()) {
    TILESMITH_CHECK(width >= 1, "a beam of width 0");
  }

  void Run() {
    const std::vector<BeamStep> order = ChooseBeamOrder(costs_);
    std::vector<int> frontier, step_of(costs_.unary.size());
    for (size_t i = 0; i < order.size(); ++i) step_of[size_t(order[i].var)] = int(i);
    for (size_t e = 0; e < costs_.edges.size(); ++e) FindLeast(int(e), step_of);
    states_ = {State{{}, SumOfLeast(costs_), 0, 0}};
    for (const BeamStep& step : order) {
      Extend(step, frontier, step_of);
      if (states_.size() > width_) Cut();
      Remember(step.var);
      frontier = step.frontier;
      stats.induced_width = std::max(stats.induced_width, int(frontier.size()));
    }
  }

  // Every frontier being empty in the end, one state is left, or none.
  bool found() const { return !states_.empty(); }

  std::vector<int> BestOptions() const {
    std::vector<int> options(costs_.unary.size(), 0);
    uint32_t state = 0;
    for (auto step = steps_.rbegin(); step != steps_.rend(); ++step) {
      options[size_t(step->var)] = step->options[state];
      state = step->parents[state];
    }
    return options;
  }

  double least_dropped() const { return least_dropped_; }  // no assignment that was dropped costs less

  SolveStats stats;

 private:
  void FindLeast(int e, const std::vector<int>& step_of) {
    const PairwiseEdge& edge = costs_.edges[size_t(e)];
    const int first = step_of[size_t(edge.a)] < step_of[size_t(edge.b)] ? edge.a : edge.b;
    std::vector<double>& least = least_[size_t(e)];
    least.assign(size_t(costs_.Options(first)), kForbidden);
    for (int i = 0; i < costs_.Options(first); ++i)
      for (int j = 0; j < costs_.Options(edge.Other(first)); ++j)
        least[size_t(i)] = std::min(least[size_t(i)], edge.At(first, i, j));
  }

  void Extend(const BeamStep& step, const std::vector<int>& frontier, const std::vector<int>& step_of) {
    const int var = step.var;
    std::vector<StepEdge> back;
    const std::vector<double> own = OwnCosts(var, frontier, step_of, back);
    // Where each variable of the new frontier stands in the old one; the variable itself is not in there.
    std::vector<size_t> from;
    for (int other : step.frontier)
      from.push_back(other == var ? frontier.size() : PositionOf(other, frontier));
    std::vector<State> next;
    std::unordered_map<Key, uint32_t> known;
    Key key(step.frontier.size(), 0);
    for (size_t parent = 0; parent < states_.size(); ++parent) {
      const State& state = states_[parent];
      for (int option = 0; option < costs_.Options(var); ++option) {
        double estimate = state.estimate + own[size_t(option)];
        for (const StepEdge& e : back) {
          const int other = state.key[e.position];
          estimate += e.edge->At(var, option, other) - e.least[other];
        }
        if (!(estimate < kForbidden)) continue;
        for (size_t i = 0; i < from.size(); ++i)
          key[i] = from[i] == frontier.size() ? char16_t(option) : state.key[from[i]];
        const auto [at, is_new] = known.try_emplace(key, uint32_t(next.size()));
        State candidate{key, estimate, uint32_t(parent), uint16_t(option)};
        if (is_new)
          next.push_back(std::move(candidate));
        else if (estimate < next[at->second].estimate)
          next[at->second] = std::move(candidate);
      }
    }
    states_ = std::move(next);
    stats.largest_table = std::max(stats.largest_table, uint64_t(states_.size()));
    stats.total_entries += states_.size();
  }

  // What each option of `var` adds to an estimate whatever the frontier, and the edges to the frontier, whose
  // true cost takes the place of the estimated one.
  std::vector<double> OwnCosts(int var, const std::vector<int>& frontier, const std::vector<int>& step_of,
                               std::vector<StepEdge>& back) const {
    std::vector<double> own = costs_.unary[size_t(var)];
    const double least_own = *std::min_element(own.begin(), own.end());
    for (double& cost : own) cost -= least_own;
    for (int e : edges_of_[size_t(var)]) {
      const PairwiseEdge& edge = costs_.edges[size_t(e)];
      const std::vector<double>& least = least_[size_t(e)];
      if (step_of[size_t(edge.Other(var))] < step_of[size_t(var)]) {
        back.push_back({&edge, PositionOf(edge.Other(var), frontier), least.data()});
        continue;
      }
      const double least_edge = *std::min_element(least.begin(), least.end());
      for (size_t option = 0; option < own.size(); ++option) own[option] += least[option] - least_edge;
    }
    return own;
  }

  static size_t PositionOf(int var, const std::vector<int>& frontier) {
    return size_t(std::lower_bound(frontier.begin(), frontier.end(), var) - frontier.begin());
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
    Step& step = steps_.emplace_back();
    step.var = var;
    for (const State& state : states_) {
      step.parents.push_back(state.parent);
      step.options.push_back(state.option);
    }
  }

  const PairwiseCosts& costs_;
  const uint64_t width_;
  const std::vector<std::vector<int>> edges_of_;
  std::vector<std::vector<double>> least_;  // of each edge, for each option of the end chosen first
  std::vector<State> states_;
  std::vector<Step> steps_;
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
