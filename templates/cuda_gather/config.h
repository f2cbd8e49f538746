// Convolutions without much to reuse: a thread gathers what a tile of outputs needs through the caches.
// cuda_depthwise is for one input channel a group, cuda_grouped for a few, and cuda_portable takes whatever
// has nothing fused in front of it and fits 32-bit offsets. Source: original.
//
// The knobs of cuda_depthwise, cuda_grouped and cuda_portable, which have them in common, and which workloads
// each is for.
#pragma once

#include <memory>
#include <string>

#include "layouts/base/target.h"
#include "templates/base/conv_template.h"
#include "templates/base/loop_features.h"
#include "templates/base/loop_nest.h"

namespace tilesmith {
namespace cuda_gather {

struct GatherConfig {
  int64_t ic_block = 1, oc_block = 1;          // 0 is NHWC
  int64_t tile_f = 1, tile_y = 1, tile_x = 1;  // outputs of a thread
  int64_t threads = 128;                       // of a block
  int64_t unroll = 1;                          // channels
  bool channels_first = false;                 // neighbouring threads have neighbouring channels
};

GatherConfig ReadConfig(const Config& config);

// A workload whose outputs are gathered, a tile of them by each thread: the loops are in
// templates/cuda/kernels/gather.cu.
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

}  // namespace cuda_gather

const ConvTemplate& CudaDepthwiseTemplate();
const ConvTemplate& CudaGroupedTemplate();
const ConvTemplate& CudaPortableTemplate();
}  // namespace tilesmith
