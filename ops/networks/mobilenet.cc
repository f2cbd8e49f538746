// Howard et al., "MobileNets" (2017), table 1; Sandler et al., "MobileNetV2" (2018), table 2, the latter as
// torchvision has it.
#include <fmt/format.h>

#include "ops/networks/families.h"

namespace tilesmith {
namespace {

using Id = NetworkBuilder::Id;
using Activate = Id (NetworkBuilder::*)(const std::string&, Id);

Id ConvNormAct(NetworkBuilder& b, const std::string& name, Id x, const ConvSpec& spec, Activate activate) {
  const Id normed = b.BatchNorm(name + ".1", b.Conv(name + ".0", x, spec));
  return (b.*activate)(name + ".2", normed);
}

ConvSpec Stem(int64_t channels) {
  return {.channels = channels, .kernel = {3, 3}, .stride = 2, .pad = {1, 1}, .rectified_input = false};
}

ConvSpec Depthwise(int64_t channels, int64_t stride) {
  return {.channels = channels, .kernel = {3, 3}, .stride = stride, .pad = {1, 1}, .groups = channels};
}

Id Classifier(NetworkBuilder& b, const std::string& name, Id x) {
  return b.Gemm(name, b.Flatten("flatten", b.GlobalAveragePool("avgpool", x)), 1000);
}

// Expand to `hidden` channels, filter each alone, project back without activation.
struct InvertedResidual {
  std::string name;
  int64_t hidden, channels, stride;
};

Id AddInvertedResidual(NetworkBuilder& b, const InvertedResidual& block, Id input) {
  constexpr float kBranchGain = 0.5f;  // keeps sums of residual branches from growing with depth
  const bool residual = block.stride == 1 && b.channels(input) == block.channels;
  Id x = input;
  if (block.hidden != b.channels(input)) {
    x = ConvNormAct(b, block.name + ".expand", x, {.channels = block.hidden, .rectified_input = false},
                    &NetworkBuilder::Relu6);
  }
  x = ConvNormAct(b, block.name + ".depthwise", x, Depthwise(block.hidden, block.stride),
                  &NetworkBuilder::Relu6);
  x = b.Conv(block.name + ".project.0", x, {.channels = block.channels});
  x = b.BatchNorm(block.name + ".project.1", x, 1e-5f, residual ? kBranchGain : 1);
  return residual ? b.Add(block.name + ".add", input, x) : x;
}

}  // namespace

Id BuildMobilenetV1(NetworkBuilder& b, Id input) {
  struct Separable {
    int64_t channels, stride;
  };
  constexpr Separable kBlocks[] = {{64, 1},  {128, 2}, {128, 1}, {256, 2}, {256, 1},  {512, 2}, {512, 1},
                                   {512, 1}, {512, 1}, {512, 1}, {512, 1}, {1024, 2}, {1024, 1}};
  Id x = ConvNormAct(b, "features.0", input, Stem(32), &NetworkBuilder::Relu);
  int index = 0;
  for (const Separable& block : kBlocks) {
    const std::string name = fmt::format("features.{}", ++index);
    x = ConvNormAct(b, name + ".depthwise", x, Depthwise(b.channels(x), block.stride), &NetworkBuilder::Relu);
    x = ConvNormAct(b, name + ".pointwise", x, {.channels = block.channels}, &NetworkBuilder::Relu);
  }
  return Classifier(b, "classifier", x);
}

Id BuildMobilenetV2(NetworkBuilder& b, Id input) {
  struct Stage {
    int64_t expansion, channels;
    int repeats;
    int64_t stride;
  };
  constexpr Stage kStages[] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                               {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
  Id x = ConvNormAct(b, "features.0", input, Stem(32), &NetworkBuilder::Relu6);
  int index = 0;
  for (const Stage& stage : kStages) {
    for (int i = 0; i < stage.repeats; ++i) {
      const int64_t stride = i == 0 ? stage.stride : 1;
      x = AddInvertedResidual(
          b, {fmt::format("features.{}", ++index), stage.expansion * b.channels(x), stage.channels, stride},
          x);
    }
  }
  x = ConvNormAct(b, "features.18", x, {.channels = 1280, .rectified_input = false}, &NetworkBuilder::Relu6);
  return Classifier(b, "classifier.1", x);
}

}  // namespace tilesmith
