// What a plan has for a convolution that was never tuned.
#pragma once

#include "layouts/base/target.h"
#include "tuner/records/record.h"

namespace tilesmith {

// The first template's default schedule, unmeasured: seconds is 0, tuner is "default".
Record DefaultRecord(const ConvWorkload& workload, const Target& cpu, int threads);

}  // namespace tilesmith
