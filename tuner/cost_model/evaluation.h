// How good a cost model's order is.
#pragma once

#include <span>

namespace tilesmith {

// Share of the pairs of different `truth` that `predicted` orders alike; ties of `predicted` count half. 0.5
// is a guess, 1 perfect. 0.5 when no two differ. Precondition: equal lengths.
double PairAccuracy(std::span<const float> predicted, std::span<const float> truth);

// The best truth among the `n` predicted best, against the best truth of all: 1 is perfect. Preconditions:
// equal lengths, not empty, n >= 1, the best truth is positive.
double RecallOfBest(std::span<const float> predicted, std::span<const float> truth, size_t n);

}  // namespace tilesmith
