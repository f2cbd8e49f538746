// oneDNN's twins of convolutions of bytes compute what the reference does.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "layouts/data_type.h"
#include "ops/graph/reference_run.h"
#include "ops/movement/concat.h"
#include "ops/movement/view.h"
#include "ops/networks/networks.h"
#include "ops/passes/passes.h"
#include "ops/quantize/byte_sums.h"
#include "ops/quantize/quantized_data.h"
#include "tests/support/ops/quantized_net.h"
#include "tests/support/test_cpu.h"
#include "tools/onednn/onednn_network.h"

namespace tilesmith {
namespace {

// Weights of 7 bits: without VNNI oneDNN's sums of two products saturate beyond.
QuantizedData SmallWeights(const ConvWorkload& workload, uint64_t seed) {
  QuantizedData data = MakeQuantizedData(workload, seed);
  QuantizedConvParams params = data.op->params();
  Tensor weights = *params.weights.stored;
  for (int64_t i = 0; i < weights.size(); ++i)
    weights.data<int8_t>()[i] = static_cast<int8_t>(std::clamp<int>(weights.data<int8_t>()[i], -63, 63));
  params.weights.stored = std::make_shared<const Tensor>(std::move(weights));
  data.op = std::make_shared<const QuantizedConvOp>(workload, std::move(params));
  return data;
}

double StoredAt(const Tensor& tensor, int64_t i) {
  return VisitType(tensor.type(), [&](auto tag) {
    return static_cast<double>(tensor.data<typename decltype(tag)::Type>()[i]);
  });
}

class OneDnnBytesTest : public testing::TestWithParam<const char*> {};

TEST_P(OneDnnBytesTest, IsWithinAStep) {
  const ConvWorkload workload = ParseWorkload(GetParam());
  if (workload.bytes->in == DataType::kI8 && !DetectCpu().vnni)
    GTEST_SKIP() << "without VNNI oneDNN halves the weights of signed inputs";
  const QuantizedData data = SmallWeights(workload, 1);
  std::string refusal;
  const std::unique_ptr<OneDnnConv> twin = OneDnnConv::Create(*data.op, &refusal);
  ASSERT_NE(twin, nullptr) << refusal;
  twin->SetInput(data.input);
  if (data.residual) twin->SetResidual(*data.residual);
  twin->Run();
  const Tensor theirs = twin->GetOutput(), expected = data.op->Reference(data.inputs());
  const bool real = workload.bytes->out == DataType::kF32;
  for (int64_t i = 0; i < expected.size(); ++i) {
    const double want = StoredAt(expected, i), allowed = real ? 1e-4 * std::max(std::abs(want), 1.0)
                                                         : data.residual ? 2
                                                                         : 1;
    ASSERT_NEAR(theirs.floats()[i], want, allowed) << twin->ImplName() << " at " << i;
  }
  EXPECT_FALSE(twin->PackedWeights().empty());
}

INSTANTIATE_TEST_SUITE_P(
    Workloads, OneDnnBytesTest,
    testing::Values("ic16ih9oc24oh9kh3ph1+bias:u8:i8:u8", "ic16ih9oc24oh7kh3:u8:i8:u8",
                    "ic32ih8oc16oh8kh1+bias+sum:u8:i8:u8", "ic3ih12oc8oh6kh3sh2ph1+bias:u8:i8:i8",
                    "ic16ih6oc16oh6kh1+bias:u8:i8:f32", "ic16ih6oc16oh6kh1+bias:i8:i8:i8",
                    "g32ic32ih9oc32oh9kh3ph1+bias:u8:i8:u8", "mb2g2ic32ih5oc32oh5kh3ph1:u8:i8:u8"));

// Convs, a sum in one and one beside them, pools, a concat and a dense layer: the chain computes the network,
// but for the steps in which roundings differ.
TEST(OneDnnBytes, AChainComputesTheNetwork) {
  QuantizedNet net;
  net.largest_weight = 63;
  const Shape shape = {2, 16, 9, 7};
  auto x = net.Stored(net.Input(shape));
  x = net.Stored(net.Relu(net.Conv(x, 16, 3)));
  x = net.Stored(net.MaxPool(x));
  const auto left = net.Stored(net.Conv(x, 16, 1));
  const auto right = net.Stored(net.Conv(x, 16, 3, net.activations, 16));
  x = net.Stored(net.Relu(net.Add(left, right)));
  const auto both = net.graph.Add("both", std::make_shared<ConcatOp>(1), {x, left});
  x = net.Stored(net.Conv(net.Stored(both), 24, 1));
  x = net.Stored(net.GlobalAveragePool(net.Stored(net.AveragePool(x))));
  x = net.graph.Add("flat", std::make_shared<ViewOp>("Flatten", Shape{2, 24}), {x});
  net.graph.MarkOutput(net.Stored(net.Dense(x, 10)));
  TestRandom random(3);
  Tensor input(shape);
  for (int64_t i = 0; i < input.size(); ++i) input.floats()[i] = random.Uniform(-2.f, 2.f);
  const Tensor* const inputs[] = {&input};
  const Tensor expected = RunReference(net.graph, inputs)[0];
  const Graph graph = OptimizeGraph(std::move(net.graph));
  ASSERT_TRUE(AddsBytes(graph));
  std::string refusal;
  const auto choice = [](const ConvWorkload&) { return OneDnnAlgorithm::kAuto; };
  const auto chain = OneDnnNetwork::Create(graph, choice, TestCpu(), {}, &refusal);
  ASSERT_NE(chain, nullptr) << refusal;
  for (int run = 0; run < 2; ++run) {
    chain->SetInput(0, input);
    chain->Run();
    const Tensor output = chain->GetOutput(0);
    ASSERT_EQ(output.shape(), expected.shape());
    double largest = 0;
    for (int64_t i = 0; i < output.size(); ++i) {
      largest = std::max(largest, std::abs(static_cast<double>(expected.floats()[i])));
      EXPECT_NEAR(output.floats()[i], expected.floats()[i], 3 * net.activations.scales[0]) << i;
    }
    EXPECT_GT(largest, 0.5);
  }
  const std::vector<std::string> guests = chain->GuestTypes();
  EXPECT_EQ(std::ranges::count(guests, "QuantizedConv") + std::ranges::count(guests, "QuantizedMaxPool") +
                std::ranges::count(guests, "Concat"),
            0)
      << testing::PrintToString(guests);
}

TEST(OneDnnBytes, OnlySumsOfBytesWithoutVnniMaySaturate) {
  const Graph floats = BuildNetwork("squeezenet1_1", {.height = 48, .width = 48});
  const Graph bytes = OptimizeGraph(QuantizedBlock(16));
  Target without = DetectCpu(), with = without;
  without.vnni = false, with.vnni = true;
  EXPECT_TRUE(MaySaturate(bytes, without));
  EXPECT_FALSE(MaySaturate(bytes, with));
  EXPECT_FALSE(MaySaturate(floats, without));
}

TEST(OneDnnBytes, RefusesZeroPointsOfWeights) {
  const QuantizedData data = MakeQuantizedData(ParseWorkload("ic16ih9oc24oh9kh3ph1:u8:u8:u8"), 1);
  std::string refusal;
  EXPECT_EQ(OneDnnConv::Create(*data.op, &refusal), nullptr);
  EXPECT_EQ(refusal, "oneDNN's weights are i8 without a zero point");
}

}  // namespace
}  // namespace tilesmith
