// The grouped Winograd template's numbers: the Winograd template's, its products merged, with scratch for one
// vector of channels that holds V, then M:
//     [place of xi][tile of the block][lane]
#pragma once

#include <memory>

#include "templates/grouped_winograd/config.h"
#include "templates/winograd/schedule.h"

namespace tilesmith::grouped_winograd {

struct Schedule : winograd::Schedule {
  GroupedWinogradConfig grouped;
};

Schedule MakeSchedule(const ConvWorkload& workload, const GroupedWinogradConfig& config, int vector_floats);

// A task is one block of tiles of one vector of channels.
TaskGrid GridOf(const Schedule& schedule);
LoopFeatures FeaturesOf(const Schedule& schedule);
LoopNest NestOf(const Schedule& schedule);

// Precondition: cpu.isa is AVX2 or AVX-512 and the machine has it.
std::unique_ptr<ConvKernel> BuildKernel(Schedule schedule, const Target& cpu, const ConvWeights& weights);

}  // namespace tilesmith::grouped_winograd
