// What a fused workload competes with: its parts, one kernel after the other.
#pragma once

#include "tools/bench/our_conv.h"
#include "tuner/records/best_records.h"

namespace tilesmith {

// The two records with the least sum of seconds that agree on the layout between them; of input ops, the main
// conv's fastest. Default schedules where records lack. Precondition: a fused workload.
SeparateSchedules FastestSeparate(const ConvWorkload& workload, const BestByWorkload& records,
                                  const Target& cpu);

// The schedule without tuning: the default of the first template that supports the workload, of those that
// multiply bf16 where `type` is that. Throws Error(kNoCandidate) when none does.
Schedule DefaultSchedule(const ConvWorkload& workload, const Target& cpu, DataType type = DataType::kF32);

}  // namespace tilesmith
