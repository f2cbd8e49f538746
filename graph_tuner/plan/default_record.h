// What a plan has for a convolution that was never tuned.
#pragma once

#include "layouts/base/target.h"
#include "tuner/records/record.h"

namespace tilesmith {

enum class DefaultStyle {
  kBlocks,  // ConvTemplate::Default
  kRows,    // ConvTemplate::RowsDefault for so many threads, where a template has it
};

// The default schedule of the first template that supports the workload, or of a later one that is estimated
// to be clearly faster (ConvTemplate::Cycles); unmeasured: seconds is 0, tuner is "default".
Record DefaultRecord(const ConvWorkload& workload, const Target& cpu, int threads,
                     DefaultStyle style = DefaultStyle::kBlocks);

}  // namespace tilesmith
