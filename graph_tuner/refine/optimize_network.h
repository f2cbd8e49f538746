// Tuning and graph tuning at once, with a plan at any moment.
//
// There are three things to spend time on: measuring configs of a convolution (search, other layouts,
// re-timing, tuner/network_tuner.h); solving the layout problem with what is known, and running the solution
// beside the best plan so far, which also teaches what its steps cost in the network (plan_race.h); and
// measuring the costs that a solution pays (lazy_costs.h). Each says how many seconds of the network it is
// expected to save for each second that it takes:
//
//   a turn of tuning: what NetworkTuner expects; for other layouts of what the best plan pays for those it
//     has, in transforms around the convolution and in configs slower than its fastest;
//   a new plan: what the convolutions have gained since the last one, and what the last solution's prediction
//     promises beyond the best plan, as far as earlier plans kept what was promised, over what the last plan
//     took to solve and to run.
//
// A plan's gain is had once, whenever it is made, so that making it waits until it is worth several times the
// best turn of tuning; and enough time is kept back to make one at the end. A plan becomes the best by having
// been faster in a session by turns. Source: original.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "graph_tuner/problem/network_problem.h"
#include "graph_tuner/refine/plan_race.h"
#include "tuner/network_tuner.h"

namespace tilesmith {

struct NetworkOptimization {
  // A network, for several sizes of its inputs if there are more than one.
  std::vector<const Graph*> graphs;
  GraphTuneOptions options;  // default schedules are allowed whatever they say
  std::optional<int64_t> max_weight_bytes = {};
  CostSource* costs = nullptr;
  NetworkTuner* tuner = nullptr;
  std::vector<ConvWorkload> workloads;           // of the tuner's tasks, in their order
  const std::vector<Record>* records = nullptr;  // all so far; grows when the tuner takes turns
  std::vector<Plan> known_plans = {};  // of earlier runs: where the work begins, those that fit a graph
  double end = 0;                      // on the clock of NowSeconds
  // Runs plans of a graph by turns (PredictionLoop::measure). May throw Error(kInterrupted), as what costs
  // are asked for may: that ends the work, and what was the best plan stays it.
  std::function<std::vector<PlanMeasurement>(size_t graph, const std::vector<const Plan*>&)> measure;
  // While what it returns lives, plans may be run and costs be measured. May be empty.
  std::function<std::shared_ptr<void>()> get_ready = {};
  // Told the best plan of a graph: at first without tuning, then whenever there is a better one.
  std::function<void(size_t graph, const Plan&)> keep = {};
  std::function<void(const std::string&)> on_stage = {};
  std::function<bool()> should_stop = {};
};

struct OptimizedPlan {
  Plan plan;
  // What it showed in its last session, nothing of one that never ran; and the untuned plan likewise in its
  // first.
  PlanMeasurement measurement, untuned;
  // By how much it was faster than the untuned plan; 0 where one of them never ran, and where it is that one.
  double seconds_saved = 0;
  int solutions = 0;  // distinct ones that ran
};

struct OptimizedNetwork {
  std::vector<OptimizedPlan> plans;  // of each graph
  bool stopped = false;
};

// With no time at all the plans are those without tuning, or by the records there are. The callbacks' errors
// go through but for Error(kInterrupted), once there is a plan. Errors are GraphTune's otherwise.
OptimizedNetwork OptimizeNetwork(const NetworkOptimization& work);

}  // namespace tilesmith
