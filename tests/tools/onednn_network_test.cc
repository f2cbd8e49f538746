// The chain of twins must compute the network, or the baseline of whole networks would be another network's.
#include "tools/onednn/onednn_network.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "layouts/transform.h"
#include "ops/base/op.h"
#include "ops/conv/conv.h"
#include "ops/elementwise/activations.h"
#include "ops/elementwise/binary.h"
#include "ops/graph/reference_run.h"
#include "ops/movement/depth_to_space.h"
#include "ops/movement/shape_arithmetic.h"
#include "ops/movement/transpose.h"
#include "ops/networks/networks.h"
#include "ops/passes/passes.h"
#include "ops/pool/pool.h"
#include "tests/support/test_cpu.h"

namespace tilesmith {
namespace {

std::shared_ptr<const Tensor> UniformWeights(const Shape& shape, unsigned seed) {
  auto tensor = std::make_shared<Tensor>(shape);
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  for (int64_t i = 0; i < tensor->size(); ++i) tensor->floats()[i] = normal(random);
  return tensor;
}

// Relative to the largest output, over runs that must agree with each other. Rounding of some ten to a
// hundred layers, each of relative size sqrt(terms) * eps ~ 1e-5 at most, stays far below; a wrong layer does
// not.
void ExpectComputesReference(const Graph& graph, const OneDnnChoice& choice, double tolerance,
                             DataType floats = DataType::kF32) {
  const auto input = UniformWeights(graph.node(graph.GraphInputs()[0]).shape, 1);
  const Tensor* const inputs[] = {input.get()};
  const Tensor expected = RunReference(graph, inputs)[0];
  std::string refusal;
  const Graph fused = OptimizeGraph(graph);
  const auto network = OneDnnNetwork::Create(fused, choice, TestCpu(), {}, &refusal, floats);
  ASSERT_NE(network, nullptr) << refusal;
  EXPECT_EQ(network->nodes().size(), fused.size());
  if (floats != DataType::kF32 && DetectCpu().bf16) {  // elsewhere oneDNN may have nothing of it
    const auto stored = std::ranges::count_if(
        network->nodes(), [&](const auto& step) { return step.twin->OutputType() == floats; });
    EXPECT_GT(stored, static_cast<int64_t>(fused.size()) * 3 / 4);
  }
  double largest = 0;
  for (int64_t i = 0; i < expected.size(); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(expected.floats()[i])));
  }
  for (int run = 0; run < 2; ++run) {  // a second run must not see what the first left in the buffers
    network->SetInput(0, *input);
    network->Run();
    const Tensor output = network->GetOutput(0);
    ASSERT_EQ(output.shape(), expected.shape());
    for (int64_t i = 0; i < output.size(); ++i) {
      ASSERT_NEAR(output.floats()[i], expected.floats()[i], tolerance * largest)
          << graph.name() << " run " << run;
    }
  }
}

OneDnnAlgorithm Direct(const ConvWorkload&) { return OneDnnAlgorithm::kDirect; }
OneDnnAlgorithm Winograd(const ConvWorkload&) { return OneDnnAlgorithm::kWinograd; }

TEST(OneDnnNetwork, ComputesEveryKindOfNetwork) {
  for (const char* name : {"resnet18", "mobilenet_v2", "squeezenet1_1", "densenet121", "unet"}) {
    SCOPED_TRACE(name);
    ExpectComputesReference(BuildNetwork(name, {.batch = 2, .height = 32, .width = 32}), Direct, 1e-4);
  }
}

// Some ten to fifty layers that each round to 8 bits, of which a residual network adds up some.
TEST(OneDnnNetwork, ComputesInBf16) {
  for (const char* name : {"resnet18", "mobilenet_v2", "squeezenet1_1", "densenet121", "unet"}) {
    SCOPED_TRACE(name);
    ExpectComputesReference(BuildNetwork(name, {.batch = 2, .height = 32, .width = 32}), Direct, 5e-2,
                            DataType::kBf16);
  }
}

TEST(OneDnnNetwork, FallsBackToDirectWhereThereIsNoWinograd) {
  ExpectComputesReference(BuildNetwork("resnet18", {.height = 64, .width = 64}), Winograd, 1e-3);
}

Graph::NodeId AddConv(Graph& graph, const char* workload, const std::vector<Graph::NodeId>& inputs) {
  const ConvWorkload w = ParseWorkload(workload);
  return graph.Add("", std::make_shared<ConvOp>(w, UniformWeights(w.weights_shape(), 7), nullptr), inputs);
}

// Kernels of ours convert what is given and what it gives.
TEST(OneDnnNetwork, ComputesInF32BetweenEndsOf16Bits) {
  for (const DataType type : {DataType::kF16, DataType::kBf16}) {
    Graph graph("halves");
    const auto x = graph.Add("x", std::make_shared<InputOp>(Shape{1, 16, 6, 6}, type), {});
    const auto wide = graph.Add("wide", std::make_shared<CastOp>(DataType::kF32), {x});
    const auto conv = AddConv(graph, "mb1ic16ih6oc16kh3ph1+relu", {wide});
    graph.MarkOutput(graph.Add("y", std::make_shared<CastOp>(type), {conv}));
    const Tensor given = TransformGeneric(*UniformWeights({1, 16, 6, 6}, 1), Layout::Nchw(type));
    const Tensor* const inputs[] = {&given};
    const Tensor expected = TransformGeneric(RunReference(graph, inputs)[0], Layout::Nchw());
    std::string refusal;
    const auto network = OneDnnNetwork::Create(graph, Direct, TestCpu(), {}, &refusal);
    ASSERT_NE(network, nullptr) << refusal;
    EXPECT_EQ(network->GuestTypes(), (std::vector<std::string>{"Cast", "Cast"}));
    network->SetInput(0, given);
    network->Run();
    const Tensor output = network->GetOutput(0);
    const double step = type == DataType::kF16 ? 0x1p-10 : 0x1p-7;
    for (int64_t i = 0; i < output.size(); ++i)
      ASSERT_NEAR(output.floats()[i], expected.floats()[i], step * std::abs(expected.floats()[i]) + 1e-3);
  }
}

// The first sum may overwrite its residual; the second may not, as its residual is read again later; the
// third adds its own input.
TEST(OneDnnNetwork, OverwritesAResidualOnlyAtItsLastUse) {
  Graph graph("residuals");
  const auto input = graph.Add("input", std::make_shared<InputOp>(Shape{1, 16, 6, 6}), {});
  const auto a = AddConv(graph, "mb1ic16ih6oc16kh3ph1+relu", {input});
  const auto b = AddConv(graph, "mb1ic16ih6oc16kh1", {a});
  const auto c = AddConv(graph, "mb1ic16ih6oc16kh1+sum", {a, b});
  const auto d = AddConv(graph, "mb1ic16ih6oc16kh3ph1+sum", {c, a});
  const auto e = AddConv(graph, "mb1ic16ih6oc16kh1+sum+relu", {d, a});
  const auto f = AddConv(graph, "mb1ic16ih6oc16kh1+sum", {e, e});
  const auto g = AddConv(graph, "mb1ic16ih6oc16kh1+sum", {f, input});
  graph.MarkOutput(g);
  ExpectComputesReference(graph, Direct, 1e-4);
}

// Squeeze and excite: a gate on either side of the multiplication, with whole and with padded blocks.
TEST(OneDnnNetwork, MultipliesByGates) {
  for (const int64_t channels : {16, 20}) {
    for (const bool gate_first : {false, true}) {
      SCOPED_TRACE(fmt::format("{} channels, gate {}", channels, gate_first ? "first" : "second"));
      Graph graph("gates");
      const std::string conv = fmt::format("mb2ic{0}ih6oc{0}kh3ph1+relu", channels);
      const std::string squeeze = fmt::format("mb2ic{0}ih1oc{0}kh1", channels);
      const auto input = graph.Add("input", std::make_shared<InputOp>(Shape{2, channels, 6, 6}), {});
      const auto data = AddConv(graph, conv.c_str(), {input});
      const auto pooled = graph.Add("", std::make_shared<GlobalPoolOp>(PoolKind::kAverage), {data});
      const auto squeezed = AddConv(graph, squeeze.c_str(), {pooled});
      const Activation sigmoid{.kind = ActivationKind::kSigmoid};
      const auto gate = graph.Add("", std::make_shared<ActivationOp>(sigmoid), {squeezed});
      const auto inputs = gate_first ? std::vector{gate, data} : std::vector{data, gate};
      const auto gated = graph.Add("", std::make_shared<BinaryOp>(BinaryKind::kMul), inputs);
      graph.MarkOutput(AddConv(graph, conv.c_str(), {gated}));
      ExpectComputesReference(graph, Direct, 1e-4);
    }
  }
}

// A pixel shuffle between two convs, then a transpose: oneDNN has neither.
TEST(OneDnnNetwork, RunsOurKernelsWhereThereIsNoPrimitive) {
  Graph graph("guests");
  const auto input = graph.Add("input", std::make_shared<InputOp>(Shape{1, 16, 6, 6}), {});
  const auto a = AddConv(graph, "mb1ic16ih6oc64kh3ph1+relu", {input});
  const auto shuffled = graph.Add("", std::make_shared<DepthToSpaceOp>(DepthToSpaceParams{2, 2}), {a});
  const auto b = AddConv(graph, "mb1ic16ih12oc20kh3ph1", {shuffled});
  graph.MarkOutput(graph.Add("", std::make_shared<TransposeOp>(std::vector<int64_t>{0, 1, 3, 2}), {b}));
  ExpectComputesReference(graph, Direct, 1e-4);
  const auto network = OneDnnNetwork::Create(OptimizeGraph(graph), Direct, TestCpu());
  EXPECT_EQ(network->GuestTypes(), (std::vector<std::string>{"DepthToSpace", "Transpose"}));
}

}  // namespace
}  // namespace tilesmith
