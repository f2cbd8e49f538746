// Quantiles of measured times.
#pragma once

#include <vector>

namespace tilesmith {

// The q-quantile, linear between neighbours: 0 is the minimum, 0.5 the median, 1 the maximum. Preconditions:
// values is not empty, 0 <= q <= 1.
double Quantile(std::vector<double> values, double q);

// The lower quartile, the statistic of every timing here. Disturbances only ever add time: an interrupt, a
// migration, a neighbour's burst of memory traffic. Run-to-run noise is small at the median (0.7 %) and large
// in the tail (p99 3-12 %), so the mean and the maximum are useless, and the median moves as soon as half of
// a handful of samples is hit. The minimum rewards the one lucky run (turbo, a page that happened to be
// warm), the more so the more samples are taken, which favours what is fast over what is slow. A low quantile
// survives three disturbed samples of four and needs more than one lucky one.
inline double LowerQuartile(std::vector<double> samples) { return Quantile(std::move(samples), 0.25); }

}  // namespace tilesmith
