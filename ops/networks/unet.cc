// Ronneberger et al., "U-Net: Convolutional Networks for Biomedical Image Segmentation" (2015), figure 1, in
// the form now common: padded convs, so that every level keeps its size and nothing is cropped, and three
// channels of input. Height and width must be multiples of 16.
#include <fmt/format.h>

#include <vector>

#include "ops/networks/families.h"

namespace tilesmith {
namespace {

using Id = NetworkBuilder::Id;

constexpr int64_t kClasses = 2;
constexpr int kLevels = 4;
constexpr int64_t kChannels = 64;  // of the first level; each further one has twice as many

Id ConvRelu(NetworkBuilder& b, const std::string& name, Id x, int64_t channels, bool rectified_input) {
  const ConvSpec spec = {.channels = channels,
                         .kernel = {3, 3},
                         .pad = {1, 1},
                         .bias = true,
                         .rectified_input = rectified_input};
  return b.Relu(name + ".relu", b.Conv(name, x, spec));
}

Id DoubleConv(NetworkBuilder& b, const std::string& name, Id x, int64_t channels, bool first = false) {
  return ConvRelu(b, name + ".conv2", ConvRelu(b, name + ".conv1", x, channels, !first), channels, true);
}

}  // namespace

Id BuildUnet(NetworkBuilder& b, Id input) {
  std::vector<Id> skips;
  Id x = DoubleConv(b, "down0", input, kChannels, true);
  for (int level = 1; level <= kLevels; ++level) {
    const std::string name = fmt::format("down{}", level);
    skips.push_back(x);
    x = DoubleConv(b, name, b.MaxPool(name + ".pool", x, {.kernel = 2, .stride = 2}), kChannels << level);
  }
  for (int level = kLevels - 1; level >= 0; --level) {
    const std::string name = fmt::format("up{}", level);
    const int64_t channels = kChannels << level;
    const Id up = b.ConvTranspose(name + ".up", x, {.channels = channels});
    x = DoubleConv(b, name, b.Concat(name + ".concat", {skips[level], up}), channels);
  }
  return b.Conv("head", x, {.channels = kClasses, .bias = true});
}

}  // namespace tilesmith
