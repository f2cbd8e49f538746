// A workload whose outputs are gathered, a tile of them by each thread: the loops are in
// templates/cuda/kernels/gather.cu.
#pragma once

#include <memory>
#include <string>

#include "templates/base/loop_features.h"
#include "templates/base/loop_nest.h"
#include "templates/cuda_gather/config.h"

namespace tilesmith::cuda_gather {

struct Schedule {
  ConvWorkload workload;
  GatherConfig config;
  Layout in, out;

  int64_t filters() const { return workload.oc / workload.g; }
  int64_t filter_tiles() const;  // of a group
  int64_t padding_channels() const { return out.PaddedChannels(workload.oc) - workload.oc; }
  int64_t tiles() const;      // which threads compute
  int64_t registers() const;  // of a thread, about
};

Schedule MakeSchedule(const ConvWorkload& workload, const GatherConfig& config);

LoopFeatures FeaturesOf(const Schedule& schedule);
LoopNest NestOf(const Schedule& schedule);
std::unique_ptr<ConvKernel> BuildKernel(const Schedule& schedule, const Target& target,
                                        const ConvWeights& weights);

}  // namespace tilesmith::cuda_gather
