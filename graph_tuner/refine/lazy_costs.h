// Costs that are guessed until a plan depends on them.
//
// A network has hundreds of costs of transforms and other ops, of which a plan pays a few dozen, and each
// takes milliseconds to measure. So a cost is first guessed, as little as it can be: by the bytes that are
// read and written at the highest rate seen so far, and of an op that was measured in other layouts, a part
// of the least of these. What a solution then pays is measured, and the problem solved again, until a
// solution pays only what was measured: where no guess was too high, no plan is cheaper. Source: original.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "graph_tuner/costs/costs.h"
#include "graph_tuner/plan/plan.h"
#include "graph_tuner/problem/network_problem.h"
#include "ops/graph/graph.h"

namespace tilesmith {

class LazyCosts final : public CostSource {
 public:
  // `measured` outlives it.
  explicit LazyCosts(CostSource& measured) : measured_(measured) {}

  // The same whenever asked again, until the next Measure.
  double TransformSeconds(const Shape& shape, const Layout& from, const Layout& to) override;
  bool IsInterpolated(const Shape& shape, const Layout& from, const Layout& to) const override;
  double CopySeconds(const Shape& shape, const Layout& layout) override;
  double OpSeconds(const OpUse& use) override;
  CrossingPrices PricesOfCrossing() override { return measured_.PricesOfCrossing(); }
  void SeeDistance() override { measured_.SeeDistance(); }

  // Measures what the plan pays and was only guessed; `between`, which may be empty, is told before each how
  // many are done, and of how many, and may throw. Returns how many there were.
  size_t Measure(const Graph& graph, const Plan& plan,
                 const std::function<void(size_t done, size_t total)>& between = {});

 private:
  friend class GuessedQuestions;
  double Guess(double bytes) const { return bytes * seconds_per_byte_; }

  CostSource& measured_;
  std::map<std::string, double> known_;    // by question
  std::map<std::string, double> least_;    // of each op, in the layouts that are known
  double seconds_per_byte_ = 1.0 / 100e9;  // the least seen, once there is any
  bool seen_ = false;
};

// Measures what a solution by these records pays, until one pays nothing that is guessed, or until go_on()
// is false, which may also throw.
void MeasurePaid(const Graph& graph, const std::vector<Record>& records, const GraphTuneOptions& options,
                 LazyCosts& costs, const std::function<bool()>& go_on);

}  // namespace tilesmith
