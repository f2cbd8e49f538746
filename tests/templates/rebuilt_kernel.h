// Kernels of the parts of another one, as those of compiled files are.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "ops/quantize/quantized_conv.h"
#include "templates/base/conv_template.h"

namespace tilesmith {

// Builds the kernel twice, whose code lies at different addresses and must be of the same bytes, and returns
// one that was made of the first one's parts, without its weights.
inline std::unique_ptr<ConvKernel> BuildRebuilt(const ConvTemplate& conv_template,
                                                const ConvWorkload& workload, const Config& config,
                                                const Target& cpu, ConvWeights weights) {
  KernelParts made;
  weights.parts = &made;
  const auto first = conv_template.Build(workload, config, cpu, weights);
  KernelParts again;
  weights.parts = &again;
  const auto second = conv_template.Build(workload, config, cpu, weights);
  const std::vector<CodeBlob> code = first->Code(), same = second->Code();
  EXPECT_EQ(code.size(), same.size());
  for (size_t i = 0; i < std::min(code.size(), same.size()); ++i) {
    EXPECT_NE(code[i].bytes.data(), same[i].bytes.data());
    EXPECT_TRUE(std::ranges::equal(code[i].bytes, same[i].bytes)) << code[i].name;
  }
  KernelParts known(made.parts());
  ConvWeights nothing{.parts = &known};
  const auto stripped = weights.quantized != nullptr ? weights.quantized->WithoutWeights() : nullptr;
  nothing.quantized = stripped.get();
  auto rebuilt = conv_template.Build(workload, config, cpu, nothing);
  EXPECT_TRUE(known.complete());
  return rebuilt;
}

}  // namespace tilesmith
