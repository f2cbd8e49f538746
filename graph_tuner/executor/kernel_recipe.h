// Kernels of compiled networks as values: what is needed to build one, and to build it again of the parts
// that it was made of.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "graph_tuner/executor/program.h"
#include "layouts/kernel_parts.h"
#include "templates/device/device.h"

namespace tilesmith {

// What a step's kernel is built from beside its parts.
struct KernelRecipe {
  StepKind kind = StepKind::kNode;
  std::string conv_template = "";  // of a conv: its name; "": another op, a transform or a copy
  ConvWorkload workload = {};
  Config config = {};
  OpPtr op = nullptr;  // of other nodes; of a conv of bytes, without its weights
  std::vector<Shape> inputs = {};
  std::vector<DataType> input_types = {};
  Shape output = {};
  Layout from = {}, to = {};            // of a transform; `to`: of an op's output, too
  int64_t images = 0, image_bytes = 0;  // of a copy
  std::vector<KernelPart> parts = {};   // that it was built of
};

// A conv's; none of other kernels.
std::span<const std::byte> PackedWeightsOf(const Kernel& kernel);

// The kernel, which refers to the recipe's op. `weights` are looked at for convs only, but for their parts.
std::unique_ptr<Kernel> BuildKernelOf(const KernelRecipe& recipe, const Device& device,
                                      const ConvWeights& weights);
// The kernel of a recipe, of its parts, which are known: what CompileNetwork built it from, on such a device.
// It refers to the recipe's op. Throws Error(kBadModel) where the parts are not those of that kernel.
std::unique_ptr<Kernel> RebuildKernel(const KernelRecipe& recipe, const Device& device);

}  // namespace tilesmith
