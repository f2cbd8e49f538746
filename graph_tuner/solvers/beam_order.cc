#include "graph_tuner/solvers/beam_order.h"

#include <cmath>
#include <iterator>
#include <set>

namespace tilesmith {
namespace {

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

}  // namespace

std::vector<BeamStep> ChooseBeamOrder(const PairwiseCosts& costs) { return Order(costs).Choose(); }

}  // namespace tilesmith
