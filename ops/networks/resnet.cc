// He et al., "Deep Residual Learning for Image Recognition" (2015), tables 1 and 4, as torchvision has it: in
// a bottleneck the 3x3 carries the stride ("v1.5").
#include <fmt/format.h>

#include <array>

#include "ops/networks/families.h"

namespace tilesmith {
namespace {

using Id = NetworkBuilder::Id;

// A residual branch adds to its input. Branches as strong as the input would double the variance with every
// block; trained networks have weak ones.
constexpr float kBranchGain = 0.3f;
constexpr float kEpsilon = 1e-5f;

struct Block {
  std::string name;  // "layer1.0"
  int64_t planes;
  int64_t stride;
};

Id Shortcut(NetworkBuilder& b, const Block& block, Id x, int64_t channels) {
  if (block.stride == 1 && b.channels(x) == channels) return x;
  const Id conv = b.Conv(block.name + ".downsample.0", x, {.channels = channels, .stride = block.stride});
  return b.BatchNorm(block.name + ".downsample.1", conv, kEpsilon);
}

Id Join(NetworkBuilder& b, const Block& block, Id branch, Id shortcut) {
  return b.Relu(block.name + ".relu", b.Add(block.name + ".add", branch, shortcut));
}

Id BasicBlock(NetworkBuilder& b, const Block& block, Id input) {
  const int64_t c = block.planes;
  Id x = b.Conv(block.name + ".conv1", input,
                {.channels = c, .kernel = {3, 3}, .stride = block.stride, .pad = {1, 1}});
  x = b.Relu(block.name + ".relu1", b.BatchNorm(block.name + ".bn1", x));
  x = b.Conv(block.name + ".conv2", x, {.channels = c, .kernel = {3, 3}, .pad = {1, 1}});
  x = b.BatchNorm(block.name + ".bn2", x, kEpsilon, kBranchGain);
  return Join(b, block, x, Shortcut(b, block, input, c));
}

Id Bottleneck(NetworkBuilder& b, const Block& block, Id input) {
  const int64_t c = block.planes;
  Id x = b.Conv(block.name + ".conv1", input, {.channels = c});
  x = b.Relu(block.name + ".relu1", b.BatchNorm(block.name + ".bn1", x));
  x = b.Conv(block.name + ".conv2", x,
             {.channels = c, .kernel = {3, 3}, .stride = block.stride, .pad = {1, 1}});
  x = b.Relu(block.name + ".relu2", b.BatchNorm(block.name + ".bn2", x));
  x = b.Conv(block.name + ".conv3", x, {.channels = 4 * c});
  x = b.BatchNorm(block.name + ".bn3", x, kEpsilon, kBranchGain);
  return Join(b, block, x, Shortcut(b, block, input, 4 * c));
}

using BlockBuilder = Id (*)(NetworkBuilder&, const Block&, Id);

Id Resnet(NetworkBuilder& b, Id input, BlockBuilder build_block, const std::array<int, 4>& depths) {
  Id x = b.Conv("conv1", input,
                {.channels = 64, .kernel = {7, 7}, .stride = 2, .pad = {3, 3}, .rectified_input = false});
  x = b.Relu("relu", b.BatchNorm("bn1", x));
  x = b.MaxPool("maxpool", x, {.kernel = 3, .stride = 2, .pad = 1});
  for (int stage = 0; stage < 4; ++stage) {
    for (int i = 0; i < depths[stage]; ++i) {
      const int64_t stride = stage > 0 && i == 0 ? 2 : 1;
      x = build_block(b, {fmt::format("layer{}.{}", stage + 1, i), int64_t{64} << stage, stride}, x);
    }
  }
  return b.Gemm("fc", b.Flatten("flatten", b.GlobalAveragePool("avgpool", x)), 1000);
}

}  // namespace

Id BuildResnet18(NetworkBuilder& b, Id input) { return Resnet(b, input, BasicBlock, {2, 2, 2, 2}); }
Id BuildResnet34(NetworkBuilder& b, Id input) { return Resnet(b, input, BasicBlock, {3, 4, 6, 3}); }
Id BuildResnet50(NetworkBuilder& b, Id input) { return Resnet(b, input, Bottleneck, {3, 4, 6, 3}); }
Id BuildResnet101(NetworkBuilder& b, Id input) { return Resnet(b, input, Bottleneck, {3, 4, 23, 3}); }

}  // namespace tilesmith
