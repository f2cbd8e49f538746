// The built-in networks must be the published ones: sizes are compared with torchvision's documentation.
#include "ops/networks/networks.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "layouts/base/error.h"
#include "ops/conv/conv.h"
#include "ops/conv/conv_transpose.h"
#include "ops/dense/gemm.h"
#include "ops/elementwise/activations.h"
#include "ops/elementwise/batch_norm.h"
#include "ops/elementwise/binary.h"
#include "ops/graph/reference_run.h"
#include "ops/passes/passes.h"

namespace tilesmith {
namespace {

using testing::HasSubstr;

struct Published {
  const char* name;
  int convs;
  int64_t parameters;
  double giga_macs;      // convs and dense layers, rounded
  int64_t forward_size;  // small enough for a quick forward pass
  int64_t size = 224;
  Shape output = {1, 1000};
};

// convs: counted in the papers' tables, shortcut projections included. parameters and giga_macs: "num_params"
// and "GFLOPS" of the *_Weights.IMAGENET1K_V1 entries in torchvision's model documentation (inception_v3: its
// 27,161,264 less the 3,326,696 of the auxiliary classifier); mobilenet_v1: 569 M multiply-adds and 4.2 M
// parameters in the paper's table 4, the latter counted exactly with biases of the dense layer; unet: counted
// in the paper's figure 1, with biases, for three input channels and padded convs.
const Published kPublished[] = {
    {"resnet18", 20, 11689512, 1.81, 32},          {"resnet34", 36, 21797672, 3.66, 32},
    {"resnet50", 53, 25557032, 4.09, 32},          {"resnet101", 104, 44549160, 7.80, 32},
    {"vgg16", 13, 138357544, 15.47, 32},           {"vgg19", 16, 143667240, 19.63, 32},
    {"mobilenet_v1", 27, 4231976, 0.569, 64},      {"mobilenet_v2", 52, 3504872, 0.30, 64},
    {"squeezenet1_1", 26, 1235496, 0.35, 64},      {"densenet121", 120, 7978856, 2.83, 32},
    {"inception_v3", 94, 23834568, 5.71, 75, 299}, {"unet", 23, 31031810, 48.17, 16, 256, {1, 2, 256, 256}},
};

struct Size {
  int convs = 0;
  int64_t parameters = 0;
  double macs = 0;
};

Size SizeOf(const Graph& graph) {
  Size size;
  const auto elements = [](const std::shared_ptr<const Tensor>& t) { return t == nullptr ? 0 : t->size(); };
  for (Graph::NodeId id = 0; id < graph.size(); ++id) {
    if (const auto* conv = graph.As<ConvOp>(id)) {
      ++size.convs;
      size.parameters += elements(conv->weights()) + elements(conv->bias());
      size.macs += conv->workload().flops() / 2;
    } else if (const auto* up = graph.As<ConvTransposeOp>(id)) {
      ++size.convs;
      size.parameters += elements(up->weights()) + elements(up->bias());
      size.macs += up->Flops(graph.InputShapes(id)) / 2;
    } else if (const auto* gemm = graph.As<GemmOp>(id)) {
      size.parameters += elements(gemm->weights()) + elements(gemm->bias());
      size.macs += static_cast<double>(gemm->k() * gemm->n());
    } else if (const auto* norm = graph.As<ScaleShiftOp>(id)) {
      size.parameters += static_cast<int64_t>(norm->scale().size() + norm->shift().size());
    }
  }
  return size;
}

TEST(Networks, AreThePublishedOnes) {
  ASSERT_EQ(BuiltInNetworks().size(), std::size(kPublished));
  for (const Published& published : kPublished) {
    SCOPED_TRACE(published.name);
    const Graph graph = BuildNetwork(published.name);
    EXPECT_EQ(graph.name(), published.name);
    const Size size = SizeOf(graph);
    EXPECT_EQ(size.convs, published.convs);
    EXPECT_EQ(size.parameters, published.parameters);
    EXPECT_NEAR(size.macs / 1e9, published.giga_macs, 0.006);
    ASSERT_EQ(graph.outputs().size(), 1u);
    EXPECT_EQ(graph.node(graph.outputs()[0]).shape, published.output);
    ASSERT_EQ(graph.GraphInputs().size(), 1u);
    EXPECT_EQ(graph.node(graph.GraphInputs()[0]).shape, (Shape{1, 3, published.size, published.size}));
  }
}

TEST(Networks, HaveTheSameWeightsEveryTime) {
  const Graph once = BuildNetwork("resnet18"), again = BuildNetwork("resnet18", {.batch = 2, .height = 64}),
              other = BuildNetwork("resnet18", {.seed = 2});
  ASSERT_EQ(once.size(), again.size());
  EXPECT_EQ(GraphHash(once), GraphHash(other));  // not of values
  EXPECT_NE(GraphHash(once), GraphHash(again));
  for (Graph::NodeId id = 0; id < once.size(); ++id) {
    const auto* conv = once.As<ConvOp>(id);
    if (conv == nullptr) continue;
    const Tensor& weights = *conv->weights();
    const Tensor& same = *again.As<ConvOp>(id)->weights();
    const Tensor& different = *other.As<ConvOp>(id)->weights();
    const size_t bytes = weights.size() * sizeof(float);
    EXPECT_EQ(std::memcmp(weights.floats(), same.floats(), bytes), 0) << once.node(id).name;
    EXPECT_NE(std::memcmp(weights.floats(), different.floats(), bytes), 0) << once.node(id).name;
  }
}

TEST(Networks, WeightsAreHeInitialised) {
  const Graph graph = BuildNetwork("resnet18");
  const auto id = graph.Find("layer2.0.conv2");
  ASSERT_TRUE(id.has_value());
  const Tensor& weights = *graph.As<ConvOp>(*id)->weights();
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < weights.size(); ++i) {
    sum += weights.floats()[i];
    squares += std::pow(weights.floats()[i], 2);
  }
  const double count = static_cast<double>(weights.size()), variance = 2.0 / (128 * 9);
  // Five standard deviations of the estimates; a uniform variable's fourth moment is 9/5 of its variance
  // squared.
  EXPECT_NEAR(sum / count, 0, 5 * std::sqrt(variance / count));
  EXPECT_NEAR(squares / count / variance, 1, 5 * std::sqrt(0.8 / count));
}

Tensor RandomImages(const Shape& shape) {
  Tensor images(shape);
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  for (int64_t i = 0; i < images.size(); ++i) images.floats()[i] = normal(random);
  return images;
}

double RootMeanSquare(std::span<const float> values) {
  double squares = 0;
  for (const float v : values) squares += static_cast<double>(v) * v;
  return std::sqrt(squares / static_cast<double>(values.size()));
}

TEST(Networks, SignalsNeitherVanishNorExplode) {
  for (const Published& published : kPublished) {
    SCOPED_TRACE(published.name);
    const int64_t size = published.forward_size;
    const Graph graph = BuildNetwork(published.name, {.batch = 2, .height = size, .width = size});
    const Tensor images = RandomImages({2, 3, size, size});
    const Tensor* const inputs[] = {&images};
    const Tensor logits = RunReference(graph, inputs)[0];
    ASSERT_EQ(logits.shape()[0], 2);
    const size_t count = logits.size() / 2;
    const std::span<const float> first(logits.floats(), count), second(logits.floats() + count, count);
    const double rms = RootMeanSquare(first);
    EXPECT_GT(rms, 0.01);  // also fails for NaN
    EXPECT_LT(rms, 100);
    std::vector<float> difference(count);
    for (size_t i = 0; i < count; ++i) difference[i] = first[i] - second[i];
    EXPECT_GT(RootMeanSquare(difference), 1e-3 * rms) << "the output does not depend on the image";
  }
}

struct OpCounts {
  int activations = 0, scale_shifts = 0, additions = 0;
  int activated = 0, summed = 0;  // convs with a fused activation, with a residual
  bool operator==(const OpCounts&) const = default;
};

void PrintTo(const OpCounts& counts, std::ostream* out) {
  *out << fmt::format("activations {} scale_shifts {} additions {} activated {} summed {}",
                      counts.activations, counts.scale_shifts, counts.additions, counts.activated,
                      counts.summed);
}

OpCounts CountOps(const Graph& graph) {
  OpCounts counts;
  for (Graph::NodeId id = 0; id < graph.size(); ++id) {
    counts.activations += graph.As<ActivationOp>(id) != nullptr;
    counts.scale_shifts += graph.As<ScaleShiftOp>(id) != nullptr;
    counts.additions += graph.As<BinaryOp>(id) != nullptr;
    if (const auto* conv = graph.As<ConvOp>(id)) {
      counts.activated += conv->workload().post.activation.kind != ActivationKind::kNone;
      counts.summed += conv->workload().post.sum;
    }
  }
  return counts;
}

int CountDense(const Graph& graph) {
  int count = 0;
  for (Graph::NodeId id = 0; id < graph.size(); ++id) count += graph.As<GemmOp>(id) != nullptr;
  return count;
}

TEST(Networks, FuseIntoTheirConvs) {
  struct Case {
    const char* name;
    OpCounts before, after;
  };
  // resnets: every conv but the shortcuts' (3 and 4) is activated, one in each block adds the shortcut.
  // mobilenet_v2: the 17 projections have no activation; 10 blocks keep their size and are residual.
  // densenet121: a norm before a 1x1 conv (58 layers, 3 transitions) or before the last pooling cannot be
  // folded; norm0 and the 58 norm2 can.
  const Case cases[] = {{"resnet18", {17, 20, 8, 0, 0}, {0, 0, 0, 17, 8}},
                        {"resnet50", {49, 53, 16, 0, 0}, {0, 0, 0, 49, 16}},
                        {"mobilenet_v2", {35, 52, 10, 0, 0}, {0, 0, 0, 35, 10}},
                        {"squeezenet1_1", {26, 0, 0, 0, 0}, {0, 0, 0, 26, 0}},
                        {"densenet121", {121, 121, 0, 0, 0}, {0, 62, 0, 59, 0}},
                        {"unet", {18, 0, 0, 0, 0}, {0, 0, 0, 18, 0}}};
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    const Graph graph = BuildNetwork(c.name, {.height = 64, .width = 64});
    EXPECT_EQ(CountOps(graph), c.before);
    const Graph fused = OptimizeGraph(graph);
    EXPECT_EQ(CountOps(fused), c.after);
    EXPECT_EQ(SizeOf(fused).convs, SizeOf(graph).convs + CountDense(graph));
    EXPECT_EQ(SizeOf(fused).macs, SizeOf(graph).macs);
  }
}

template <typename Call>
std::string UsageMessage(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    return error.what();
  }
  ADD_FAILURE() << "nothing thrown";
  return "";
}

TEST(Networks, SayWhatIsWrong) {
  EXPECT_TRUE(IsBuiltInNetwork("vgg19"));
  EXPECT_FALSE(IsBuiltInNetwork("vgg"));
  EXPECT_THAT(UsageMessage([] { BuildNetwork("resnet51"); }),
              testing::AllOf(HasSubstr("\"resnet51\""), HasSubstr("resnet50, resnet101")));
  EXPECT_THAT(UsageMessage([] { BuildNetwork("resnet18", {.batch = -1}); }), HasSubstr("batch -1"));
  EXPECT_THAT(UsageMessage([] { BuildNetwork("unet", {.height = 40, .width = 64}); }),
              testing::AllOf(HasSubstr("unet"), HasSubstr("40x64"), HasSubstr("up3.concat")));
  EXPECT_THAT(UsageMessage([] { BuildNetwork("inception_v3", {.height = 32, .width = 32}); }),
              testing::AllOf(HasSubstr("inception_v3"), HasSubstr("32x32"), HasSubstr("Mixed_6a")));
}

}  // namespace
}  // namespace tilesmith
