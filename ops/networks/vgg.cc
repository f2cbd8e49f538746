// Simonyan and Zisserman, "Very Deep Convolutional Networks for Large-Scale Image Recognition" (2014), table
// 1, configurations D and E, without batch norm. torchvision pools the features to 7x7 before the classifier,
// a no-op at 224x224; at other sizes the first dense layer takes the features there are, as in the paper.
#include <fmt/format.h>

#include <array>

#include "ops/networks/families.h"

namespace tilesmith {
namespace {

using Id = NetworkBuilder::Id;

Id Vgg(NetworkBuilder& b, Id input, const std::array<int, 5>& depths) {
  constexpr std::array<int64_t, 5> kChannels = {64, 128, 256, 512, 512};
  Id x = input;
  int index = 0;  // as in torchvision's features.N
  for (size_t stage = 0; stage < depths.size(); ++stage) {
    for (int i = 0; i < depths[stage]; ++i) {
      const bool first = index == 0;
      x = b.Conv(fmt::format("features.{}", index++), x,
                 {.channels = kChannels[stage],
                  .kernel = {3, 3},
                  .pad = {1, 1},
                  .bias = true,
                  .rectified_input = !first});
      x = b.Relu(fmt::format("features.{}", index++), x);
    }
    x = b.MaxPool(fmt::format("features.{}", index++), x, {.kernel = 2, .stride = 2});
  }
  x = b.Flatten("flatten", x);
  x = b.Relu("classifier.1", b.Gemm("classifier.0", x, 4096));
  x = b.Relu("classifier.4", b.Gemm("classifier.3", x, 4096));
  return b.Gemm("classifier.6", x, 1000);
}

}  // namespace

Id BuildVgg16(NetworkBuilder& b, Id input) { return Vgg(b, input, {2, 2, 3, 3, 3}); }
Id BuildVgg19(NetworkBuilder& b, Id input) { return Vgg(b, input, {2, 2, 4, 4, 4}); }

}  // namespace tilesmith
