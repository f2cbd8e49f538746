#include "graph_tuner/solvers/k_best.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "graph_tuner/solvers/lower_bound.h"
#include "graph_tuner/solvers/solver.h"
#include "layouts/base/check.h"

namespace tilesmith {
namespace {

using VarId = LayoutProblem::VarId;
using OptionLists = std::vector<std::vector<int>>;  // of each variable, ascending

// All assignments made of some options.
struct Part {
  OptionLists options;
  Assignment best;
  Solution next;  // the second best, differing from `best` in a variable that matters; or a refusal
};

LayoutProblem Restrict(const LayoutProblem& problem, const OptionLists& options) {
  LayoutProblem restricted;
  for (VarId var = 0; var < problem.size(); ++var) {
    std::vector<double> costs;
    for (int option : options[var]) costs.push_back(problem.variable(var).costs[static_cast<size_t>(option)]);
    restricted.AddVariable(problem.variable(var).name, std::move(costs));
  }
  const auto& graph = problem.boost();
  for (auto [it, end] = boost::edges(graph); it != end; ++it) {
    const auto [a, b] = Endpoints(graph, *it);
    CostMatrix costs(restricted.Options(a), restricted.Options(b));
    for (int i = 0; i < costs.rows; ++i)
      for (int j = 0; j < costs.cols; ++j)
        costs.at(i, j) =
            graph[*it].at(options[a][static_cast<size_t>(i)], options[b][static_cast<size_t>(j)]);
    restricted.AddPairwise(a, b, costs);
  }
  return restricted;
}

// Where an assignment first leaves another one, seen from one variable of a sequence.
enum Leaves { kNotUpToHere, kHere, kBefore, kLeavesCount };

CostMatrix Permit(int rows, int cols, const std::function<bool(int, int)>& permitted) {
  CostMatrix costs(rows, cols);
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < cols; ++j)
      if (!permitted(i, j)) costs.at(i, j) = kForbidden;
  return costs;
}

// Adds variables that let only assignments pass that leave `best` in one of `vars`.
void ForbidBest(LayoutProblem& problem, const OptionLists& options, const Assignment& best,
                const std::vector<VarId>& vars) {
  VarId last = 0;
  for (size_t i = 0; i < vars.size(); ++i) {
    const VarId var = vars[i];
    std::vector<double> costs(kLeavesCount, 0.0);
    if (i == 0) costs[kBefore] = kForbidden;
    if (i + 1 == vars.size()) costs[kNotUpToHere] = kForbidden;
    const VarId leaves = problem.AddVariable("leaves the best", std::move(costs));
    const auto agrees = [&](int option, int where) {
      const bool is_best = options[var][static_cast<size_t>(option)] == best[var];
      return where == kBefore || (where == kNotUpToHere) == is_best;
    };
    problem.AddPairwise(var, leaves, Permit(problem.Options(var), kLeavesCount, agrees));
    const auto follows = [](int before, int here) { return (before == kNotUpToHere) == (here != kBefore); };
    if (i > 0) problem.AddPairwise(last, leaves, Permit(kLeavesCount, kLeavesCount, follows));
    last = leaves;
  }
}

class KBest {
 public:
  KBest(const LayoutProblem& problem, int k, const SolveLimits& limits,
        const std::function<bool(VarId)>& matters)
      : problem_(problem), k_(k), limits_(limits) {
    for (VarId var = 0; var < problem.size(); ++var) matters_.push_back(matters(var));
  }

  std::vector<Solution> Run() {
    found_ = {SolveDp(problem_, limits_)};
    if (!found_[0].solved() || k_ == 1) return std::move(found_);
    const Assignment& best = found_[0].assignment;
    AddPart(OptionsUpTo(CostOfKth(best)), best);
    while (!refusal_ && static_cast<int>(found_.size()) < k_) {
      const auto part = std::min_element(parts_.begin(), parts_.end(), [](const Part& a, const Part& b) {
        return CostOf(a.next) < CostOf(b.next);
      });
      if (!part->next.solved()) break;
      found_.push_back(part->next);
      found_.back().lower_bound = found_[0].cost;
      found_.back().certificate = fmt::format("number {} in order of cost", found_.size());
      if (static_cast<int>(found_.size()) < k_) Split(static_cast<size_t>(part - parts_.begin()));
    }
    // Equal costs may differ by rounding.
    std::stable_sort(found_.begin() + 1, found_.end(),
                     [](const Solution& a, const Solution& b) { return a.cost < b.cost; });
    if (refusal_) found_.push_back(std::move(*refusal_));
    return std::move(found_);
  }

 private:
  static double CostOf(const Solution& solution) { return solution.solved() ? solution.cost : kForbidden; }

  void AddPart(OptionLists options, const Assignment& best) {
    Solution next = SecondBest(options, best);
    if (!next.solved() && !next.infeasible) refusal_ = next;
    parts_.push_back({std::move(options), best, std::move(next)});
  }

  // The split is by the first variable that matters in which the best and the second best differ.
  void Split(size_t index) {
    Part part = std::move(parts_[index]);
    parts_.erase(parts_.begin() + std::ptrdiff_t(index));
    const Assignment& next = part.next.assignment;
    VarId var = 0;
    while (!matters_[var] || next[var] == part.best[var]) ++var;
    OptionLists with = part.options;
    with[var] = {next[var]};
    std::erase(part.options[var], next[var]);
    AddPart(std::move(part.options), part.best);
    if (!refusal_) AddPart(std::move(with), next);
  }

  Solution SecondBest(const OptionLists& options, const Assignment& best) const {
    std::vector<VarId> open;
    for (VarId var = 0; var < problem_.size(); ++var)
      if (matters_[var] && options[var].size() > 1) open.push_back(var);
    Solution solution;
    if (open.empty()) {
      solution.infeasible = true;
      solution.refusal = "no other assignment";
      return solution;
    }
    LayoutProblem restricted = Restrict(problem_, options);
    ForbidBest(restricted, options, best, open);
    solution = SolveDp(restricted, limits_);
    if (!solution.solved()) return solution;
    solution.assignment.resize(problem_.size());
    for (VarId var = 0; var < problem_.size(); ++var) {
      int& option = solution.assignment[var];
      option = options[var][static_cast<size_t>(option)];
    }
    solution.cost = Evaluate(problem_, solution.assignment);
    return solution;
  }

  // A cost that at least k assignments do not exceed; infinite when not that many are at hand.
  double CostOfKth(const Assignment& best) const {
    const double cost = Evaluate(problem_, best);
    std::vector<double> costs;
    for (VarId var = 0; var < problem_.size(); ++var) {
      if (!matters_[var]) continue;
      for (int option = 0; option < problem_.Options(var); ++option)
        if (option != best[var]) costs.push_back(CostWith(best, cost, var, option));
    }
    const auto others = static_cast<size_t>(k_) - 1;
    if (costs.size() < others) return kForbidden;
    std::nth_element(costs.begin(), costs.begin() + std::ptrdiff_t(others) - 1, costs.end());
    return costs[others - 1];
  }

  // The cost with one variable changed, and its neighbours that do not matter adapted to that.
  double CostWith(const Assignment& best, double cost, VarId var, int option) const {
    Assignment changed = best;
    changed[var] = option;
    std::vector<VarId> vars = {var};
    const auto& graph = problem_.boost();
    for (auto [it, end] = boost::adjacent_vertices(var, graph); it != end; ++it) {
      if (matters_[*it]) continue;
      changed[*it] = BestOption(changed, *it);
      vars.push_back(*it);
    }
    return cost + (CostAround(changed, vars) - CostAround(best, vars));
  }

  // What these variables and all their edges cost.
  double CostAround(const Assignment& assignment, const std::vector<VarId>& vars) const {
    const auto& graph = problem_.boost();
    double cost = 0;
    for (VarId var : vars) {
      cost += problem_.variable(var).costs[static_cast<size_t>(assignment[var])];
      for (auto [it, end] = boost::out_edges(var, graph); it != end; ++it) {
        const auto [low, high] = Endpoints(graph, *it);
        const bool twice = std::find(vars.begin(), vars.end(), low + high - var) != vars.end();
        if (!twice || var == low) cost += graph[*it].at(assignment[low], assignment[high]);
      }
    }
    return cost;
  }

  int BestOption(const Assignment& assignment, VarId var) const {
    const auto& graph = problem_.boost();
    std::vector<double> costs = problem_.variable(var).costs;
    for (auto [it, end] = boost::out_edges(var, graph); it != end; ++it) {
      const auto [low, high] = Endpoints(graph, *it);
      for (int option = 0; option < static_cast<int>(costs.size()); ++option)
        costs[static_cast<size_t>(option)] +=
            low == var ? graph[*it].at(option, assignment[high]) : graph[*it].at(assignment[low], option);
    }
    return static_cast<int>(std::min_element(costs.begin(), costs.end()) - costs.begin());
  }

  // Options that only assignments dearer than `cost` use are left out.
  OptionLists OptionsUpTo(double cost) const {
    PairwiseCosts costs = CostsOf(ReducedProblem(problem_));
    Reparametrise(costs);
    const std::vector<std::vector<double>> bounds = OptionBounds(costs);
    const double limit = cost + kCostRounding * std::abs(cost);
    OptionLists options(problem_.size());
    for (VarId var = 0; var < problem_.size(); ++var)
      for (int option = 0; option < problem_.Options(var); ++option)
        if (!(bounds[var][static_cast<size_t>(option)] > limit)) options[var].push_back(option);
    return options;
  }

  const LayoutProblem& problem_;
  const int k_;
  const SolveLimits& limits_;
  std::vector<bool> matters_;
  std::vector<Part> parts_;
  std::vector<Solution> found_;
  std::optional<Solution> refusal_;
};

}  // namespace

std::vector<Solution> SolveKBest(const LayoutProblem& problem, int k, const SolveLimits& limits,
                                 const std::function<bool(VarId)>& matters) {
  TILESMITH_CHECK(k >= 1, "the {} best", k);
  return KBest(problem, k, limits, matters).Run();
}

}  // namespace tilesmith
