// How a choice keeps to a limit: a price on what is limited, searched for, and a measurement, after which
// what was chosen by is tightened.
//
// With a price on what is limited (bytes of weights, squares of errors) a solver's solution is the fastest of
// all that need no more than it does itself. Source: Everett, Generalized Lagrange multiplier method,
// Operations Research 11 (1963). What a solver adds up is a prediction, so that the choice is measured, too.
#pragma once

#include <cmath>
#include <utility>

namespace tilesmith {

struct PriceRange {
  double lowest, highest;
};
inline constexpr PriceRange kErrorPrices = {1e-6, 1e15};  // seconds per square of a relative error

template <typename Solved>
struct PricedChoice {
  Solved solved;
  double price = 0;
  bool fits = true;  // false: not even at the highest price
};

// The lowest price in the range, up to a hundredth, at which `solve(price)` gives what fits; 0 where that
// fits.
template <typename Solve, typename Fits>
auto AtLowestPrice(const PriceRange& range, const Solve& solve, const Fits& fits) {
  constexpr double kStep = 8, kPrecision = 1.01;
  PricedChoice<decltype(solve(0.0))> found = {solve(0.0)};
  if (fits(found.solved)) return found;
  double too_low = range.lowest;
  found.price = range.lowest;
  while (!fits(found.solved = solve(found.price))) {
    too_low = found.price;
    found.price *= kStep;
    found.fits = found.price <= range.highest;
    if (!found.fits) return found;
  }
  while (found.price > too_low * kPrecision) {
    const double middle = std::sqrt(too_low * found.price);
    auto solved = solve(middle);
    const bool fit = fits(solved);
    (fit ? found.price : too_low) = middle;
    if (fit) found.solved = std::move(solved);
  }
  return found;
}

// How far below the limit it is aimed, for the next choice to keep to it.
inline constexpr double kLimitMargin = 0.95;

// `choose(is_last)` gives what was measured of a choice; while that is more than `most`, `tighten(measured)`
// makes the next choice a smaller one, some times. Returns what was measured last.
template <typename Choose, typename Tighten>
double ChooseWithin(double most, const Choose& choose, const Tighten& tighten) {
  constexpr int kAttempts = 6;
  double measured = choose(false);
  for (int attempt = 1; attempt < kAttempts && measured > most; ++attempt) {
    tighten(measured);
    measured = choose(attempt + 1 == kAttempts);
  }
  return measured;
}

}  // namespace tilesmith
