// What a plan has for a convolution that was never tuned.
#pragma once

#include "layouts/base/target.h"
#include "tuner/records/record.h"

namespace tilesmith {

// Whether a plan has to say how the task is computed. Where it does not, a convolution of bytes is computed
// by a template's default in the plan's layouts (UntunedByteConv), and a product by its op.
inline bool NeedsRecord(const ConvWorkload& workload) { return !workload.bytes && !workload.product; }

enum class DefaultStyle {
  kBlocks,  // ConvTemplate::Default
  kRows,    // TaskPlaces::RowsDefault for so many threads, where a template has it
};

// The default schedule of the first template that supports the workload, or of a later one that is estimated
// to be clearly faster (ConvTemplate::Cycles); unmeasured: seconds is 0, tuner is "default".
Record DefaultRecord(const ConvWorkload& workload, const Target& cpu, int threads,
                     DefaultStyle style = DefaultStyle::kBlocks);

}  // namespace tilesmith
