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

using Samples = std::vector<std::vector<Tensor>>;  // inputs of runs, plain, in the graph's order

// What a network's outputs are beside those in f32, over all samples.
struct OutputDifference {
  // The Euclidean norm of an output's difference relative to that of the output; of several the largest.
  double error = 0;
  // The rows of a classifier, whose outputs are rows of classes, and those whose largest value is in the same
  // place.
  int64_t rows = 0, agreeing = 0;
};

// Adds the rows of an output that is one of a classifier: {N, classes, 1, ...}.
void CountAgreement(const Tensor& value, const Tensor& expected, int64_t* rows, int64_t* agreeing);

class OutputSums {
 public:
  // `outputs` of one run, plain, and what they should be, of the same shapes.
  void Add(const std::vector<Tensor>& outputs, const std::vector<Tensor>& expected);
  OutputDifference Difference() const;

 private:
  struct Sums {
    double squares = 0, of_difference = 0;
  };
  std::vector<Sums> sums_;  // of each output
  OutputDifference difference_;
};

// Not thread-safe.
class OutputErrors {
 public:
  // Runs the network in f32 on each sample. The device reads host memory. Precondition: at least one sample.
  OutputErrors(const Graph& graph, DevicePtr device, Samples samples);

  // The square of the error that each conv makes when it alone is computed in bf16 and stored so: the network
  // runs up to it, the conv runs in bf16, and the network goes on with what that gave. Of convs that no
  // template computes in bf16 nothing. On at most `most` samples. progress(done, total) is called before the
  // first conv and after each; may be empty.
  ErrorSquares OfConvs(size_t most, const std::function<void(size_t, size_t)>& progress = {}) const;
  // The difference that a plan of this network makes, or one of the network quantised, whose outputs have the
  // same shapes.
  OutputDifference Of(const Plan& plan) const { return Of(graph_, plan); }
  OutputDifference Of(const Graph& graph, const Plan& plan) const;

 private:
  using Outputs = std::vector<Tensor>;  // plain
  std::vector<Outputs> OutputsOf(const Graph& graph, const Plan& plan) const;

  const Graph& graph_;
  const DevicePtr device_;
  const Samples samples_;
  const Plan floats_;  // without tuning
  std::vector<Outputs> expected_;
};

}  // namespace tilesmith
