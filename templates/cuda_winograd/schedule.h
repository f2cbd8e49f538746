// Winograd's algorithm as three launches: input transform, products, output transform. The loops are in
// templates/cuda/kernels/winograd.cu and gemm.cu.
#pragma once

#include <memory>

#include "templates/base/loop_features.h"
#include "templates/base/loop_nest.h"
#include "templates/cuda_gemm/product.h"
#include "templates/winograd/transforms.h"

namespace tilesmith::cuda_winograd {

struct Schedule {
  ConvWorkload workload;
  Layout in, out;
  const winograd::Transforms* transforms = nullptr;
  int64_t threads = 256;  // of a block of the transforms
  bool in_channels = false,
       out_channels = false;   // whether channels lie together, in operands of products as well
  cuda_gemm::Product product;  // an image for each element of the window

  int64_t tiles() const;  // of all images
  int64_t points() const { return int64_t{transforms->window} * transforms->window; }
  int64_t input_bytes() const;  // of the transformed input
  int64_t scratch_bytes() const;
};

Schedule ReadSchedule(const ConvWorkload& workload, const Config& config, const Target& target);

LoopFeatures FeaturesOf(const Schedule& schedule);
LoopNest NestOf(const Schedule& schedule);
std::unique_ptr<ConvKernel> BuildKernel(const Schedule& schedule, const Target& target,
                                        const ConvWeights& weights);

}  // namespace tilesmith::cuda_winograd
