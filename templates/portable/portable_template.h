// The portable template: plain C++ built once per instruction set. Supports every workload with
// nothing fused in front of the conv on every CPU, in any pair of layouts; the fallback where no generated
// kernel applies.
//
// Knobs: ic_block, oc_block (x of NCHW[x]c in and out; 0 is NHWC), vector_over (0: output channels, 1: width,
// which suits groups of few channels), ow_tile (positions per tile over channels), rows (output rows per
// task).
#pragma once

#include "templates/conv_template.h"

namespace tilesmith {

class PortableTemplate : public ConvTemplate {
 public:
  std::string_view Name() const override { return "portable"; }
  Support Supports(const ConvWorkload& workload, const CpuInfo& cpu) const override;
  ConfigSpace Space(const ConvWorkload& workload, const CpuInfo& cpu) const override;
  Config Default(const ConvWorkload& workload, const CpuInfo& cpu) const override;
  LayoutPair Layouts(const ConvWorkload& workload, const Config& config) const override;
  LoopFeatures Features(const ConvWorkload& workload, const Config& config,
                        const CpuInfo& cpu) const override;
  LoopNest Nest(const ConvWorkload& workload, const Config& config, const CpuInfo& cpu) const override;
  std::unique_ptr<ConvKernel> Build(const ConvWorkload& workload, const Config& config, const CpuInfo& cpu,
                                    const ConvWeights& weights) const override;
};

}  // namespace tilesmith
