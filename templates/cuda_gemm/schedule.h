// What is asked of a config of cuda_direct and of the templates on tensor cores, which is a product.
#pragma once

#include <memory>

#include "templates/base/loop_features.h"
#include "templates/base/loop_nest.h"
#include "templates/cuda_gemm/product.h"

namespace tilesmith::cuda_gemm {

LoopFeatures FeaturesOf(const Product& product);
LoopNest NestOf(const Product& product);
std::unique_ptr<ConvKernel> BuildKernel(const Product& product, const Target& target,
                                        const ConvWeights& weights);

}  // namespace tilesmith::cuda_gemm
