#include "ops/onnx/onnx_export.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "layouts/base/error.h"
#include "ops/graph/reference_run.h"
#include "ops/networks/networks.h"
#include "ops/onnx/onnx_import.h"

namespace tilesmith {
namespace {

Graph Again(std::string_view name, const NetworkOptions& options) {
  return ImportOnnxBytes(OnnxBytes(ListNetwork(name, options)), "exported");
}

TEST(OnnxExportTest, BuiltInNetworksComeBackAsTheyWere) {
  for (const BuiltInNetwork& network : BuiltInNetworks()) {
    if (network.name.starts_with("vgg")) continue;  // half a gigabyte of weights
    SCOPED_TRACE(network.name);
    const int64_t size = network.name == "inception_v3" ? 75 : 64;
    const NetworkOptions options{.batch = 2, .height = size, .width = size};
    const Graph graph = BuildNetwork(network.name, options), again = Again(network.name, options);
    EXPECT_EQ(GraphHash(again), GraphHash(graph));
    ASSERT_EQ(again.outputs().size(), 1u);
    EXPECT_EQ(again.node(again.outputs()[0]).name, graph.node(graph.outputs()[0]).name);
  }
}

TEST(OnnxExportTest, WeightsComeBackToTheLastBit) {
  for (const char* name : {"squeezenet1_1", "unet"}) {
    SCOPED_TRACE(name);
    const NetworkOptions options{.height = 32, .width = 32};
    Tensor input({1, 3, 32, 32});
    for (int64_t i = 0; i < input.size(); ++i) input.floats()[i] = static_cast<float>(i % 23) / 11 - 1;
    const Tensor* const inputs[] = {&input};
    const Tensor expected = RunReference(BuildNetwork(name, options), inputs)[0];
    const Tensor found = RunReference(Again(name, options), inputs)[0];
    ASSERT_EQ(found.shape(), expected.shape());
    EXPECT_EQ(
        std::memcmp(found.floats(), expected.floats(), static_cast<size_t>(expected.size()) * sizeof(float)),
        0);
  }
}

TEST(OnnxExportTest, AttributesOfEveryType) {
  ModelListing listing{.name = "all", .inputs = {{"x", {1, 2}}}, .outputs = {{"y", {1, 2}}}};
  listing.nodes.push_back({"y",
                           "Gemm",
                           {{"alpha", 2.f}, {"transB", int64_t{1}}},
                           {"x"},
                           {std::make_shared<Tensor>(Shape{2, 2})}});
  listing.nodes.push_back({"unknown",
                           "Unknown",
                           {{"text", std::string("t")},
                            {"ints", std::vector<int64_t>{1, 2}},
                            {"floats", std::vector<float>{1, 2}},
                            {"tensor", Tensor({3})}},
                           {"y"},
                           {}});
  const OnnxSummary summary = SummarizeOnnx(OnnxBytes(listing).bytes, "all");
  EXPECT_EQ(summary.opset, 13);
  EXPECT_EQ(summary.inputs, std::vector<std::string>{"x"});
  EXPECT_EQ(summary.outputs, std::vector<std::string>{"y"});
  EXPECT_EQ(summary.op_types, (std::vector<std::string>{"Gemm", "Unknown"}));
}

}  // namespace
}  // namespace tilesmith
