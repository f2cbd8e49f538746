// Szegedy et al., "Rethinking the Inception Architecture for Computer Vision" (2015), table 1 and figures
// 5-7, as torchvision has it, without the auxiliary classifier (which only trains). Module names are
// torchvision's.
#include "ops/networks/families.h"

namespace tilesmith {
namespace {

using Id = NetworkBuilder::Id;

Id ConvNormRelu(NetworkBuilder& b, const std::string& name, Id x, const ConvSpec& spec) {
  return b.Relu(name + ".relu", b.BatchNorm(name + ".bn", b.Conv(name + ".conv", x, spec), 1e-3f));
}

ConvSpec Pointwise(int64_t channels) { return {.channels = channels}; }
// Odd kernels that keep the size.
ConvSpec Same(int64_t channels, Kernel2d kernel) {
  return {.channels = channels, .kernel = kernel, .pad = {kernel.h / 2, kernel.w / 2}};
}
ConvSpec Halving(int64_t channels) { return {.channels = channels, .kernel = {3, 3}, .stride = 2}; }

constexpr PoolSpec kHalvingPool = {.kernel = 3, .stride = 2};

Id PoolBranch(NetworkBuilder& b, const std::string& name, Id x, int64_t channels) {
  const Id pooled = b.AveragePool(name + ".avgpool", x, {.kernel = 3, .stride = 1, .pad = 1});
  return ConvNormRelu(b, name + ".branch_pool", pooled, Pointwise(channels));
}

Id InceptionA(NetworkBuilder& b, const std::string& name, Id x, int64_t pool_channels) {
  const Id one = ConvNormRelu(b, name + ".branch1x1", x, Pointwise(64));
  Id five = ConvNormRelu(b, name + ".branch5x5_1", x, Pointwise(48));
  five = ConvNormRelu(b, name + ".branch5x5_2", five, Same(64, {5, 5}));
  Id three = ConvNormRelu(b, name + ".branch3x3dbl_1", x, Pointwise(64));
  three = ConvNormRelu(b, name + ".branch3x3dbl_2", three, Same(96, {3, 3}));
  three = ConvNormRelu(b, name + ".branch3x3dbl_3", three, Same(96, {3, 3}));
  return b.Concat(name + ".concat", {one, five, three, PoolBranch(b, name, x, pool_channels)});
}

Id InceptionB(NetworkBuilder& b, const std::string& name, Id x) {
  const Id three = ConvNormRelu(b, name + ".branch3x3", x, Halving(384));
  Id twice = ConvNormRelu(b, name + ".branch3x3dbl_1", x, Pointwise(64));
  twice = ConvNormRelu(b, name + ".branch3x3dbl_2", twice, Same(96, {3, 3}));
  twice = ConvNormRelu(b, name + ".branch3x3dbl_3", twice, Halving(96));
  return b.Concat(name + ".concat", {three, twice, b.MaxPool(name + ".maxpool", x, kHalvingPool)});
}

Id InceptionC(NetworkBuilder& b, const std::string& name, Id x, int64_t c7) {
  const Id one = ConvNormRelu(b, name + ".branch1x1", x, Pointwise(192));
  Id seven = ConvNormRelu(b, name + ".branch7x7_1", x, Pointwise(c7));
  seven = ConvNormRelu(b, name + ".branch7x7_2", seven, Same(c7, {1, 7}));
  seven = ConvNormRelu(b, name + ".branch7x7_3", seven, Same(192, {7, 1}));
  Id twice = ConvNormRelu(b, name + ".branch7x7dbl_1", x, Pointwise(c7));
  twice = ConvNormRelu(b, name + ".branch7x7dbl_2", twice, Same(c7, {7, 1}));
  twice = ConvNormRelu(b, name + ".branch7x7dbl_3", twice, Same(c7, {1, 7}));
  twice = ConvNormRelu(b, name + ".branch7x7dbl_4", twice, Same(c7, {7, 1}));
  twice = ConvNormRelu(b, name + ".branch7x7dbl_5", twice, Same(192, {1, 7}));
  return b.Concat(name + ".concat", {one, seven, twice, PoolBranch(b, name, x, 192)});
}

Id InceptionD(NetworkBuilder& b, const std::string& name, Id x) {
  Id three = ConvNormRelu(b, name + ".branch3x3_1", x, Pointwise(192));
  three = ConvNormRelu(b, name + ".branch3x3_2", three, Halving(320));
  Id seven = ConvNormRelu(b, name + ".branch7x7x3_1", x, Pointwise(192));
  seven = ConvNormRelu(b, name + ".branch7x7x3_2", seven, Same(192, {1, 7}));
  seven = ConvNormRelu(b, name + ".branch7x7x3_3", seven, Same(192, {7, 1}));
  seven = ConvNormRelu(b, name + ".branch7x7x3_4", seven, Halving(192));
  return b.Concat(name + ".concat", {three, seven, b.MaxPool(name + ".maxpool", x, kHalvingPool)});
}

// Two convs side by side on the same input, concatenated.
Id Fork(NetworkBuilder& b, const std::string& name, Id x) {
  const Id flat = ConvNormRelu(b, name + "a", x, Same(384, {1, 3}));
  const Id tall = ConvNormRelu(b, name + "b", x, Same(384, {3, 1}));
  return b.Concat(name + ".concat", {flat, tall});
}

Id InceptionE(NetworkBuilder& b, const std::string& name, Id x) {
  const Id one = ConvNormRelu(b, name + ".branch1x1", x, Pointwise(320));
  const Id three = ConvNormRelu(b, name + ".branch3x3_1", x, Pointwise(384));
  const Id forked = Fork(b, name + ".branch3x3_2", three);
  Id twice = ConvNormRelu(b, name + ".branch3x3dbl_1", x, Pointwise(448));
  twice = ConvNormRelu(b, name + ".branch3x3dbl_2", twice, Same(384, {3, 3}));
  const Id forked_twice = Fork(b, name + ".branch3x3dbl_3", twice);
  return b.Concat(name + ".concat", {one, forked, forked_twice, PoolBranch(b, name, x, 192)});
}

Id InceptionStem(NetworkBuilder& b, Id input) {
  ConvSpec first = Halving(32);
  first.rectified_input = false;
  Id x = ConvNormRelu(b, "Conv2d_1a_3x3", input, first);
  x = ConvNormRelu(b, "Conv2d_2a_3x3", x, {.channels = 32, .kernel = {3, 3}});
  x = ConvNormRelu(b, "Conv2d_2b_3x3", x, Same(64, {3, 3}));
  x = b.MaxPool("maxpool1", x, kHalvingPool);
  x = ConvNormRelu(b, "Conv2d_3b_1x1", x, Pointwise(80));
  x = ConvNormRelu(b, "Conv2d_4a_3x3", x, {.channels = 192, .kernel = {3, 3}});
  return b.MaxPool("maxpool2", x, kHalvingPool);
}

}  // namespace

Id BuildInceptionV3(NetworkBuilder& b, Id input) {
  Id x = InceptionStem(b, input);
  x = InceptionA(b, "Mixed_5b", x, 32);
  x = InceptionA(b, "Mixed_5c", x, 64);
  x = InceptionA(b, "Mixed_5d", x, 64);
  x = InceptionB(b, "Mixed_6a", x);
  x = InceptionC(b, "Mixed_6b", x, 128);
  x = InceptionC(b, "Mixed_6c", x, 160);
  x = InceptionC(b, "Mixed_6d", x, 160);
  x = InceptionC(b, "Mixed_6e", x, 192);
  x = InceptionD(b, "Mixed_7a", x);
  x = InceptionE(b, "Mixed_7b", x);
  x = InceptionE(b, "Mixed_7c", x);
  return b.Gemm("fc", b.Flatten("flatten", b.GlobalAveragePool("avgpool", x)), 1000);
}

}  // namespace tilesmith
