// Does an executor compute what its network says? Rounding alone may move the outputs of a network a lot when
// it subtracts what is nearly equal, and then one bound for all networks is too tight for some kernels that
// are right, and too loose for some that are wrong. So two questions are asked:
//
// - Layer by layer: every step runs on the reference's own inputs, and its output is held to the rounding
//   bound of its kernel (rounding_bounds.h). Then the reference's output takes its place, and each step's
//   inputs must still be exactly those when it runs, so that memory which is taken too early shows as well.
// - End to end: the outputs of an ordinary run are held to kRoundingFactor times what rounding becomes in
//   this network, but at least to a floor. To know that, the reference runs kDraws times more, and behind
//   every step the errors its kernel just made are added, as they are, and with random signs. What they have
//   become at the outputs is the rounding that the network amplifies. The factor is for the difference
//   between one draw and another; errors are added no larger than their bounds, so a wrong kernel does not
//   excuse itself.
//
// Of a network with regions (executor/regions.h), this is asked of the same schedules layer by layer, whose
// outputs the regions must give bit for bit.
//
// Four times the live tensors of the network are held, never all of its tensors; it takes 1 + kDraws
// reference runs.
#pragma once

#include <string>
#include <vector>

#include "graph_tuner/executor/executor.h"

namespace tilesmith {

constexpr double kAllowedDifference = 1e-4;  // of the largest output: what any network may be off
constexpr double kRoundingFactor = 8;
constexpr int kDraws = 2;

// What a network whose outputs move by `rounding` of the largest may be off. Floor: what is allowed anyway.
double AllowedDifference(double rounding, double floor = kAllowedDifference);

struct NetworkCheck {
  // The output that is nearest to what it may be off, relative to its largest number.
  std::string output;
  double difference = 0;
  double rounding = 0;  // what the kernels' rounding errors become in this network
  double allowed = 0;
  // The step that is nearest to its bound, at the element that is.
  std::string worst_step;
  double worst_step_difference = 0, worst_step_allowed = 0;
  int64_t steps = 0;        // that were compared
  int64_t not_numbers = 0;  // values of outputs that are NaN, or the same infinity, in both
  int64_t spread = 0;       // values that a NaN or infinity has reached through an algorithm's tiles only
  std::string wrong;        // "", or the first thing that is wrong
};

// inputs: plain, the graph's in its order. Preconditions: the executor was made of this graph, which has its
// weights, and this plan. Throws Error(kUsage) as Executor does. Deterministic, but for the kernels.
NetworkCheck CheckNetwork(Executor& executor, const Graph& graph, const Plan& plan, const Target& cpu,
                          const std::vector<Tensor>& inputs);

// In words: "difference 2.1e-04, allowed 9.3e-04 (8 times the rounding ...)". Of a check that found nothing
// wrong.
std::string DescribeAllowed(const NetworkCheck& check);

}  // namespace tilesmith
