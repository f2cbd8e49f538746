// Huang et al., "Densely Connected Convolutional Networks" (2016), table 1, as torchvision has it: every
// layer concatenates all earlier outputs of its block anew.
#include <fmt/format.h>

#include <array>

#include "ops/networks/families.h"

namespace tilesmith {
namespace {

using Id = NetworkBuilder::Id;

constexpr int64_t kGrowth = 32;
constexpr int64_t kBottleneck = 4 * kGrowth;

Id NormRelu(NetworkBuilder& b, const std::string& prefix, const std::string& number, Id x) {
  return b.Relu(prefix + "relu" + number, b.BatchNorm(prefix + "norm" + number, x));
}

Id DenseLayer(NetworkBuilder& b, const std::string& name, const std::vector<Id>& features) {
  Id x = features.size() == 1 ? features[0] : b.Concat(name + ".concat", features);
  x = b.Conv(name + ".conv1", NormRelu(b, name + ".", "1", x), {.channels = kBottleneck});
  return b.Conv(name + ".conv2", NormRelu(b, name + ".", "2", x),
                {.channels = kGrowth, .kernel = {3, 3}, .pad = {1, 1}});
}

Id Transition(NetworkBuilder& b, const std::string& name, Id x) {
  const Id normed = NormRelu(b, name + ".", "", x);
  return b.AveragePool(name + ".pool", b.Conv(name + ".conv", normed, {.channels = b.channels(x) / 2}),
                       {.kernel = 2, .stride = 2});
}

}  // namespace

Id BuildDensenet121(NetworkBuilder& b, Id input) {
  constexpr std::array<int, 4> kDepths = {6, 12, 24, 16};
  Id x = b.Conv("features.conv0", input,
                {.channels = 64, .kernel = {7, 7}, .stride = 2, .pad = {3, 3}, .rectified_input = false});
  x = b.MaxPool("features.pool0", NormRelu(b, "features.", "0", x), {.kernel = 3, .stride = 2, .pad = 1});
  for (size_t block = 0; block < kDepths.size(); ++block) {
    const std::string name = fmt::format("features.denseblock{}", block + 1);
    std::vector<Id> features = {x};
    for (int layer = 0; layer < kDepths[block]; ++layer) {
      features.push_back(DenseLayer(b, fmt::format("{}.denselayer{}", name, layer + 1), features));
    }
    x = b.Concat(name + ".concat", features);
    if (block + 1 < kDepths.size()) x = Transition(b, fmt::format("features.transition{}", block + 1), x);
  }
  x = NormRelu(b, "features.", "5", x);
  return b.Gemm("classifier", b.Flatten("flatten", b.GlobalAveragePool("avgpool", x)), 1000);
}

}  // namespace tilesmith
