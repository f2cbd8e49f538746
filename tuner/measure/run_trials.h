// Many trials through a measurer, which is kept as busy as it can be.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>

#include "tuner/measure/measurer.h"

namespace tilesmith {

// Keeps Measurer::Capacity trials in flight: submits what `next` gives and hands each result to `done` with
// the number of its request, 0 for the first. Results come in any order. `next` is asked when there is room
// and again after each result, so it may have nothing now and something later; it is over when it has nothing
// and nothing is in flight. With a capacity of 1 the two take turns. Throws what the measurer and the two
// throw; trials in flight are then lost.
void RunTrials(Measurer& measurer, const std::function<std::optional<TrialRequest>()>& next,
               const std::function<void(size_t index, TrialResult result)>& done);

}  // namespace tilesmith
