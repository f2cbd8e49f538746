// What types of fewer bits do to a network's outputs: measured, on given inputs.
#pragma once

#include <functional>
#include <vector>

#include "graph_tuner/plan/plan.h"
#include "graph_tuner/problem/error_price.h"
#include "layouts/tensor.h"
#include "ops/graph/graph.h"
#include "templates/device/device.h"

namespace tilesmith {

// The error of an output is the Euclidean norm of its difference from what the network computes in f32,
// relative to the norm of that; of several outputs the largest counts. Not thread-safe.
class OutputErrors {
 public:
  // Runs the network in f32. `inputs` are plain, in the graph's order; the device reads host memory.
  OutputErrors(const Graph& graph, DevicePtr device, std::vector<Tensor> inputs);

  // The square of the error that each conv makes when it alone is computed in bf16 and stored so: the network
  // runs up to it, the conv runs in bf16, and the network goes on with what that gave. Of convs that no
  // template computes in bf16 nothing. progress(done, total) is called before the first conv and after each;
  // may be empty.
  ErrorSquares OfConvs(const std::function<void(size_t, size_t)>& progress = {}) const;
  // Of a plan of this network.
  double Of(const Plan& plan) const;

 private:
  double Compare(const std::vector<Tensor>& outputs) const;
  std::vector<Tensor> OutputsOf(const Plan& plan) const;

  const Graph& graph_;
  const DevicePtr device_;
  const std::vector<Tensor> inputs_;
  const Plan floats_;             // without tuning
  std::vector<Tensor> expected_;  // plain
};

}  // namespace tilesmith
