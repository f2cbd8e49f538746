// A price on the error of a network's outputs: with one, a solver trades time for accuracy.
//
// Layers computed in narrower types make errors that reach the outputs. Those of different layers are taken
// to be independent, so their squares add up, which makes them a cost like any other: each node's square
// times a price. The solution at a price is the fastest of all plans whose error is no larger than its own.
// Source: Everett, Generalized Lagrange multiplier method, Operations Research 11 (1963); sums of squares as
// in AdaQuant and HAWQ.
#pragma once

#include <limits>
#include <map>
#include <string>

#include "graph_tuner/plan/plan.h"
#include "layouts/base/target.h"
#include "tuner/records/record.h"

namespace tilesmith {

// What each conv computed in bf16, by a plain sum of rounded factors, does to the outputs, the others in f32:
// the square of the error relative to the outputs' norm, by the conv's name. Nodes that are not there do
// nothing.
using ErrorSquares = std::map<std::string, double>;

struct ErrorBudget {
  ErrorSquares squares;
  double most = std::numeric_limits<double>::infinity();  // of the sum of squares
  bool any() const { return most < std::numeric_limits<double>::infinity(); }

  double Of(const std::string& conv, const Record& record) const;
  // The squares of those of a plan's convs that have any.
  ErrorSquares SquaresOf(const Plan& plan) const;
  double Of(const Plan& plan) const;
};

// A price on the memory of packed weights: with one, a solver trades time for memory.
//
// The solution at a price is the fastest of all plans whose weights are no larger than its own. Source:
// Everett, Generalized Lagrange multiplier method, Operations Research 11 (1963).

struct WeightPrice {
  double seconds_per_byte = 0;
  Target cpu = {};
  double Of(const Record& record) const;  // in seconds
};

}  // namespace tilesmith
