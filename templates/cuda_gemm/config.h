// The knobs of cuda_direct and of the templates on tensor cores, read once from a Config, and which workloads
// they are for.
#pragma once

#include "layouts/base/target.h"
#include "templates/base/conv_template.h"
#include "templates/cuda_gemm/product.h"

namespace tilesmith::cuda_gemm {

Product ReadDirect(const ConvWorkload& workload, const Config& config, const Target& target);
Product ReadTensor(const ConvWorkload& workload, const Config& config, const Target& target);

Product ReadBf16(const ConvWorkload& workload, const Config& config, const Target& target);
Product ReadInt8(const ConvWorkload& workload, const Config& config, const Target& target);

Support SupportsProduct(const ConvWorkload& workload, const Target& target);
Support SupportsInt8(const ConvWorkload& workload, const Target& target);
ConfigSpace DirectSpace(const ConvWorkload& workload, const Target& target);
ConfigSpace TensorSpace(const ConvWorkload& workload, const Target& target);
ConfigSpace Bf16Space(const ConvWorkload& workload, const Target& target);
ConfigSpace Int8Space(const ConvWorkload& workload, const Target& target);
Config DirectDefault(const ConvWorkload& workload, const Target& target);
Config TensorDefault(const ConvWorkload& workload, const Target& target);
Config Bf16Default(const ConvWorkload& workload, const Target& target);
Config Int8Default(const ConvWorkload& workload, const Target& target);

// cuda_tensor's, from how far TF32 rounds operands.
double TensorErrorFactor(const ConvWorkload& workload, const Config& config);
// How operands are rounded to bf16 comes on top of that (TypeRounding).
double Bf16ErrorFactor(const ConvWorkload& workload, const Config& config);

}  // namespace tilesmith::cuda_gemm
