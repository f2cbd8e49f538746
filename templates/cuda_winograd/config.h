// 3x3 convolutions of stride 1 or 2 by Winograd's algorithm, F(2) and F(4), on a CUDA device: windows of the
// input are transformed, multiplied point by point as cuda_direct's products, and transformed back. Matrices
// and sources: templates/winograd/transforms.h.
//
// The knobs of cuda_winograd, and which workloads it is for.
#pragma once

#include <memory>

#include "layouts/base/target.h"
#include "templates/base/conv_template.h"
#include "templates/base/loop_features.h"
#include "templates/base/loop_nest.h"
#include "templates/cuda_gemm/product.h"
#include "templates/winograd/transforms.h"

namespace tilesmith {
namespace cuda_winograd {}  // namespace cuda_winograd

const ConvTemplate& CudaWinogradTemplate();

namespace cuda_winograd {

// Winograd's algorithm as three launches: input transform, products, output transform. The loops are in
// templates/cuda/kernels/winograd.cu and gemm.cu.
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

}  // namespace cuda_winograd
}  // namespace tilesmith
