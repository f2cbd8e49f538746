// The problem that graph tuning solves, prepared once: which schedules the convs of a network may have, and
// what everything costs. It is then solved as often as there is something to learn, to charge or to force:
// with other corrections and prices, or with options taken away (explain/).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "graph_tuner/costs/corrections.h"
#include "graph_tuner/costs/costs.h"
#include "graph_tuner/plan/plan.h"
#include "graph_tuner/problem/build_problem.h"
#include "graph_tuner/problem/candidates.h"
#include "graph_tuner/solvers/solver.h"
#include "ops/graph/graph.h"
#include "tuner/precision.h"

namespace tilesmith {

struct GraphTuneOptions {
  Target cpu;
  int threads = 1;
  std::string solver = "auto";
  SolveLimits limits;
  // A workload the log lacks gets its default schedule, at no predicted cost, and the certificate says so.
  bool allow_defaults = false;
  bool fusion = true;        // fused workloads that the log knows may be chosen
  bool regions = false;      // plans that run may compute layers depth first (refine/region_plans.h)
  bool even_shares = false;  // every node's tasks are dealt to threads so, none by rows or channels
  EndLayouts ends;           // how the caller gives inputs and takes outputs; changing that is charged
  AccuracyLimits accuracy;   // records beyond it are as if they were not in the log
  Precision precision = Precision::kF32;  // and so are those in other types
  ErrorBudget errors;                     // of the outputs, by what convs in other types than f32 do to them
  // How the user named the model, for the command that error messages suggest.
  std::string model = "MODEL";
  // Called while costs are asked for, measured ones taking a few milliseconds each.
  std::function<void(size_t done, size_t total)> progress;
};

// Which of the usable records a solution may have: all of them, or those of a baseline or rival.
struct Restriction {
  // Every conv reads and writes this layout where it has such a candidate (else it writes it, as a first conv
  // that reads NCHW does; else it is free), other ops run in it or in NCHW.
  std::optional<Layout> uniform = {};
  // What tuning alone gives: every workload has its fastest record only, whatever its layouts.
  bool fastest_records = false;
  // A template that is done without wherever another one has a record. Layers that can be fused can also run
  // one by one.
  std::string without_template = {};
  // Every node's tasks are dealt to threads in even shares.
  bool even_shares = false;
  // Only records in these types, as far as a workload has them.
  std::optional<Precision> precision = {};
};

// What a solution is charged for besides time; by default nothing.
struct Prices {
  double seconds_per_weight_byte = 0;   // of packed weights (error_price.h)
  double seconds_per_error_square = 0;  // of the outputs (error_price.h)
};

// The layout problem under given corrections and prices.
struct PricedProblem {
  BuiltProblem built;
  Corrections corrections;
  Prices prices;
};

struct SolvedProblem {
  PricedProblem priced;
  Solution solution;
};

// Graph and costs outlive it. Moved, never copied: what is built of it points to its candidates, which moving
// leaves where they are. Not thread-safe.
class NetworkProblem {
 public:
  // `graph` is the network after all passes, `records` a tuning log's. `costs` is asked everything it will
  // ever be asked for this problem. Deterministic. Throws Error(kNoCandidate) naming every workload without a
  // usable record and the command that fills them; Error(kUsage): unknown solver, accuracy limits
  // (CheckAccuracyLimits).
  NetworkProblem(const Graph& graph, const std::vector<Record>& records, CostSource& costs,
                 GraphTuneOptions options);
  // The same of what FindCandidates has made of the records.
  NetworkProblem(const Graph& graph, Candidates usable, CostSource& costs, GraphTuneOptions options);
  NetworkProblem(NetworkProblem&&) = default;
  NetworkProblem& operator=(NetworkProblem&&) = default;

  // The problem with some of the usable records only, whatever this one is restricted to. Costs that are not
  // known yet are asked for.
  NetworkProblem Restricted(const Restriction& restriction) const;

  PricedProblem At(const Corrections& corrections, const Prices& prices) const;
  // Runs the solver. Throws Error(kNoCandidate) with its reason when it refuses.
  Solution Solve(const LayoutProblem& problem) const;
  SolvedProblem Solve(const Corrections& corrections = {}, const Prices& prices = {}) const;
  // The plan of a solution of `priced`, or of it with options taken away. Its cost is computed a second time
  // from the plan alone (price_plan.h) and must agree with the solution's, the price of weights aside.
  Plan PlanOf(const PricedProblem& priced, const Solution& solution) const;

  const Graph& graph() const { return *graph_; }
  const GraphTuneOptions& options() const { return options_; }
  // What is usable, fused workloads among it even where fusion is off, default schedules too; and how much of
  // it is of the log.
  const Candidates& usable() const { return usable_->candidates; }
  int64_t UsableRecords() const;
  const Candidates& candidates() const { return candidates_; }  // of those, what may be chosen
  const TolerantLayouts& layouts() const { return layouts_; }

 private:
  struct Usable {
    Candidates candidates;
    std::vector<std::string> defaults;  // workloads without a record, which have their default schedule
  };
  NetworkProblem(const Graph& graph, std::shared_ptr<const Usable> usable, CostSource& costs,
                 GraphTuneOptions options, Restriction restriction);
  static std::shared_ptr<const Usable> MakeUsable(const Graph& graph, Candidates candidates,
                                                  const GraphTuneOptions& options);
  std::string Certificate(const std::string& solved) const;

  const Graph* graph_;
  CostSource* costs_;
  GraphTuneOptions options_;
  std::shared_ptr<const Usable> usable_;
  Restriction restriction_;
  Candidates candidates_;
  TolerantLayouts layouts_;
  // What no correction or price changes is worked out once.
  std::unique_ptr<Crossings> crossings_;
  DealtCandidates dealt_;
};

}  // namespace tilesmith
