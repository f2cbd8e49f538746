#include "ops/networks/networks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "layouts/base/check.h"

namespace tilesmith {

// He et al., "Deep Residual Learning for Image Recognition" (2015), tables 1 and 4, as torchvision has it: in
// a bottleneck the 3x3 carries the stride ("v1.5").

namespace {

using Id = NetworkBuilder::Id;

// A residual branch adds to its input. Branches as strong as the input would double the variance with every
// block; trained networks have weak ones.
constexpr float kBranchGain = 0.3f;
constexpr float kBatchNormEpsilon = 1e-5f;

struct Block {
  std::string name;  // "layer1.0"
  int64_t planes;
  int64_t stride;
};

Id Shortcut(NetworkBuilder& b, const Block& block, Id x, int64_t channels) {
  if (block.stride == 1 && b.channels(x) == channels) return x;
  const Id conv = b.Conv(block.name + ".downsample.0", x, {.channels = channels, .stride = block.stride});
  return b.BatchNorm(block.name + ".downsample.1", conv, kBatchNormEpsilon);
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
  x = b.BatchNorm(block.name + ".bn2", x, kBatchNormEpsilon, kBranchGain);
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
  x = b.BatchNorm(block.name + ".bn3", x, kBatchNormEpsilon, kBranchGain);
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

// Simonyan and Zisserman, "Very Deep Convolutional Networks for Large-Scale Image Recognition" (2014), table
// 1, configurations D and E, without batch norm. torchvision pools the features to 7x7 before the classifier,
// a no-op at 224x224; at other sizes the first dense layer takes the features there are, as in the paper.

namespace {

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

// Howard et al., "MobileNets" (2017), table 1; Sandler et al., "MobileNetV2" (2018), table 2, the latter as
// torchvision has it.

namespace {

using AddActivation = Id (NetworkBuilder::*)(const std::string&, Id);

Id ConvNormAct(NetworkBuilder& b, const std::string& name, Id x, const ConvSpec& spec,
               AddActivation activate) {
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

// Iandola et al., "SqueezeNet" (2016), in the authors' version 1.1, as torchvision has it.

namespace {

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

// Huang et al., "Densely Connected Convolutional Networks" (2016), table 1, as torchvision has it: every
// layer concatenates all earlier outputs of its block anew.

namespace {

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

// Szegedy et al., "Rethinking the Inception Architecture for Computer Vision" (2015), table 1 and figures
// 5-7, as torchvision has it, without the auxiliary classifier (which only trains). Module names are
// torchvision's.

namespace {

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

// Ronneberger et al., "U-Net: Convolutional Networks for Biomedical Image Segmentation" (2015), figure 1, in
// the form now common: padded convs, so that every level keeps its size and nothing is cropped, and three
// channels of input. Height and width must be multiples of 16.

namespace {

constexpr int64_t kClasses = 2;
constexpr int kUnetLevels = 4;
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
  for (int level = 1; level <= kUnetLevels; ++level) {
    const std::string name = fmt::format("down{}", level);
    skips.push_back(x);
    x = DoubleConv(b, name, b.MaxPool(name + ".pool", x, {.kernel = 2, .stride = 2}), kChannels << level);
  }
  for (int level = kUnetLevels - 1; level >= 0; --level) {
    const std::string name = fmt::format("up{}", level);
    const int64_t channels = kChannels << level;
    const Id up = b.ConvTranspose(name + ".up", x, {.channels = channels});
    x = DoubleConv(b, name, b.Concat(name + ".concat", {skips[level], up}), channels);
  }
  return b.Conv("head", x, {.channels = kClasses, .bias = true});
}

namespace {

constexpr int64_t kImageChannels = 3;

constexpr BuiltInNetwork kNetworks[] = {
    {"resnet18", 224, BuildResnet18},
    {"resnet34", 224, BuildResnet34},
    {"resnet50", 224, BuildResnet50},
    {"resnet101", 224, BuildResnet101},
    {"vgg16", 224, BuildVgg16},
    {"vgg19", 224, BuildVgg19},
    {"mobilenet_v1", 224, BuildMobilenetV1},
    {"mobilenet_v2", 224, BuildMobilenetV2},
    {"squeezenet1_1", 224, BuildSqueezenet11},
    {"densenet121", 224, BuildDensenet121},
    {"inception_v3", 299, BuildInceptionV3},
    {"unet", 256, BuildUnet},
};

const BuiltInNetwork* FindNetwork(std::string_view name) {
  const auto* found = std::find_if(std::begin(kNetworks), std::end(kNetworks),
                                   [&](const BuiltInNetwork& network) { return network.name == name; });
  return found == std::end(kNetworks) ? nullptr : found;
}

std::string KnownNames() {
  std::string names;
  for (const BuiltInNetwork& network : kNetworks) {
    names += (names.empty() ? "" : ", ") + std::string(network.name);
  }
  return names;
}

void CheckPositive(std::string_view network, std::string_view what, int64_t value) {
  if (value > 0) return;
  throw Error(ErrorCode::kUsage, fmt::format("network {}: {} {} is not positive", network, what, value));
}

Graph Build(std::string_view name, const NetworkOptions& options, ModelListing* listing) {
  const BuiltInNetwork* network = FindNetwork(name);
  if (network == nullptr) {
    throw Error(ErrorCode::kUsage, fmt::format("unknown network \"{}\" (known: {})", name, KnownNames()));
  }
  const int64_t height = options.height == 0 ? network->size : options.height;
  const int64_t width = options.width == 0 ? network->size : options.width;
  CheckPositive(name, "batch", options.batch);
  CheckPositive(name, "height", height);
  CheckPositive(name, "width", width);
  NetworkBuilder builder{std::string(name), options.seed, listing, options.limits};
  try {
    const auto input = builder.Input("input", {options.batch, kImageChannels, height, width});
    return builder.Finish(network->build(builder, input));
  } catch (const LimitError& error) {
    throw LimitError(fmt::format("network {}: {}", name, error.what()));
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kBadModel) throw;
    throw Error(ErrorCode::kUsage,
                fmt::format("network {} cannot take a {}x{} input: {}", name, height, width, error.what()));
  }
}

}  // namespace

std::span<const BuiltInNetwork> BuiltInNetworks() { return kNetworks; }

bool IsBuiltInNetwork(std::string_view name) { return FindNetwork(name) != nullptr; }

Graph BuildNetwork(std::string_view name, const NetworkOptions& options) {
  return Build(name, options, nullptr);
}

ModelListing ListNetwork(std::string_view name, const NetworkOptions& options) {
  ModelListing listing;
  Build(name, options, &listing);
  return listing;
}

}  // namespace tilesmith
