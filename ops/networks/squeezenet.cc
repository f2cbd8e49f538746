// Iandola et al., "SqueezeNet" (2016), in the authors' version 1.1, as torchvision has it.
#include "ops/networks/families.h"

namespace tilesmith {
namespace {

using Id = NetworkBuilder::Id;

Id ConvRelu(NetworkBuilder& b, const std::string& name, Id x, ConvSpec spec) {
  spec.bias = true;
  return b.Relu(name + "_activation", b.Conv(name, x, spec));
}

Id Fire(NetworkBuilder& b, const std::string& name, Id input, int64_t squeeze, int64_t expand) {
  const Id x = ConvRelu(b, name + ".squeeze", input, {.channels = squeeze});
  const Id narrow = ConvRelu(b, name + ".expand1x1", x, {.channels = expand});
  const Id wide = ConvRelu(b, name + ".expand3x3", x, {.channels = expand, .kernel = {3, 3}, .pad = {1, 1}});
  return b.Concat(name + ".concat", {narrow, wide});
}

}  // namespace

Id BuildSqueezenet11(NetworkBuilder& b, Id input) {
  const PoolSpec pool = {.kernel = 3, .stride = 2, .ceil_mode = true};
  Id x = ConvRelu(b, "features.0", input,
                  {.channels = 64, .kernel = {3, 3}, .stride = 2, .rectified_input = false});
  x = b.MaxPool("features.2", x, pool);
  x = Fire(b, "features.3", x, 16, 64);
  x = Fire(b, "features.4", x, 16, 64);
  x = b.MaxPool("features.5", x, pool);
  x = Fire(b, "features.6", x, 32, 128);
  x = Fire(b, "features.7", x, 32, 128);
  x = b.MaxPool("features.8", x, pool);
  x = Fire(b, "features.9", x, 48, 192);
  x = Fire(b, "features.10", x, 48, 192);
  x = Fire(b, "features.11", x, 64, 256);
  x = Fire(b, "features.12", x, 64, 256);
  x = ConvRelu(b, "classifier.1", x, {.channels = 1000});
  return b.Flatten("flatten", b.GlobalAveragePool("avgpool", x));
}

}  // namespace tilesmith
