// How a time budget for a whole network is spread over its tasks.
#pragma once

#include <span>

namespace tilesmith {

// Seconds for the first of the tasks that are left. A third of the time is shared out evenly, so that no task
// goes without, the rest in proportion to the weights; what a task leaves over goes to those after it.
// Preconditions: not empty, weights positive.
double TimeShare(double seconds_left, std::span<const double> weights_left);

}  // namespace tilesmith
