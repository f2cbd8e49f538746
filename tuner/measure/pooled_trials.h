// Several trials of one config counted as one.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "tuner/measure/measurer.h"

namespace tilesmith {

// What `again` says, with the samples of both and, if it worked, the estimate of them all.
TrialResult Pooled(const TrialResult& before, TrialResult again);

// Measures every request `rounds` times, round robin on one machine, so that one that drifts meets all alike;
// where it is lost and another goes on, all begin again there. A request that failed is not tried again.
// `stopped` (not empty) is asked before every trial; the rounds completed until then count. A result without
// samples was never measured. Throws what the measurer throws.
std::vector<TrialResult> MeasureInTurns(std::span<const TrialRequest> requests, int rounds,
                                        Measurer& measurer, const std::function<bool()>& stopped);

}  // namespace tilesmith
