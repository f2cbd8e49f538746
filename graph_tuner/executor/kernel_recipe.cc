#include "graph_tuner/executor/kernel_recipe.h"

#include "layouts/base/error.h"
#include "ops/quantize/quantized_conv.h"

namespace tilesmith {

std::span<const std::byte> PackedWeightsOf(const Kernel& kernel) {
  const auto* conv = dynamic_cast<const ConvKernel*>(&kernel);
  return conv ? conv->PackedWeights() : std::span<const std::byte>();
}

std::unique_ptr<Kernel> BuildKernelOf(const KernelRecipe& recipe, const Device& device,
                                      const ConvWeights& weights) {
  if (recipe.kind == StepKind::kTransform)
    return device.BuildTransform(recipe.output, recipe.from, recipe.to);
  if (recipe.kind == StepKind::kCopy) return device.BuildCopy(recipe.images, recipe.image_bytes);
  if (!recipe.conv_template.empty()) {
    return device.BuildConv(FindConvTemplate(recipe.conv_template), recipe.workload, recipe.config, weights);
  }
  return device.BuildOp(*recipe.op, {recipe.inputs, recipe.output, recipe.to, device.target(),
                                     recipe.input_types, weights.parts});
}

std::unique_ptr<Kernel> RebuildKernel(const KernelRecipe& recipe, const Device& device) {
  KernelParts parts(recipe.parts);
  const ConvWeights weights{.quantized = dynamic_cast<const QuantizedConvOp*>(recipe.op.get()),
                            .parts = &parts};
  std::unique_ptr<Kernel> kernel = BuildKernelOf(recipe, device, weights);
  if (!parts.complete()) throw Error(ErrorCode::kBadModel, "a kernel has more parts than it needs");
  return kernel;
}

}  // namespace tilesmith
