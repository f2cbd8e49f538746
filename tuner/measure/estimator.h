// The statistic of a trial's samples.
#pragma once

#include <span>

namespace tilesmith {

constexpr const char* kEstimatorName = "p25";

// The 25th percentile (linear between neighbours) of the samples, in their unit.
//
// Disturbances only ever add time: an interrupt, a migration, a neighbour's burst of memory traffic. On a
// quiet machine run-to-run noise is small at the median (0.7 %) and large in the tail (p99 3-12 %), so the
// mean and the maximum are useless, and the median is moved as soon as half of a handful of samples is hit.
// The minimum is the other trap: it rewards the one lucky run (turbo, a page that happened to be warm), the
// more so the more samples are taken, which favours fast configs over slow ones. A low quantile survives
// three disturbed samples of four and needs more than one lucky one.
// Precondition: not empty.
double Estimate(std::span<const double> samples);

}  // namespace tilesmith
