// Whatever runs networks and measures costs does it through a device: here through one whose memory is its
// own.
#include "tests/graph_tuner/support/far_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph_tuner/costs/costs.h"
#include "graph_tuner/executor/compiled_network.h"
#include "layouts/base/error.h"
#include "ops/base/op.h"
#include "ops/elementwise/activations.h"
#include "ops/elementwise/binary.h"
#include "ops/movement/concat.h"
#include "tests/graph_tuner/support/executor_testing.h"

namespace tilesmith {
namespace {

using NodeId = Graph::NodeId;

// Two convs side by side, a constant added, a concat, and an input that is an output as well.
Graph SmallNetwork() {
  Graph graph("small");
  const NodeId x = graph.Add("x", std::make_shared<InputOp>(Shape{2, 8, 6, 5}), {});
  const NodeId a = AddFilledConv(graph, "a", {x}, 16);
  const NodeId b = AddFilledConv(graph, "b", {x}, 11, 3);
  const auto added = std::make_shared<Tensor>(Shape{2, 16, 6, 5});
  FillUniform({added->floats(), static_cast<size_t>(added->size())}, 5);
  const NodeId c = graph.Add("c", std::make_shared<ConstantOp>(added), {});
  const NodeId sum = graph.Add("sum", std::make_shared<BinaryOp>(BinaryKind::kAdd), {a, c});
  const NodeId relu =
      graph.Add("relu", std::make_shared<ActivationOp>(Activation{ActivationKind::kRelu}), {b});
  graph.MarkOutput(graph.Add("cat", std::make_shared<ConcatOp>(1), {sum, relu}));
  graph.MarkOutput(x);
  return graph;
}

TEST(FarDevice, RunsANetworkEndToEnd) {
  const Graph graph = SmallNetwork();
  const auto device = std::make_shared<FarDevice>(TestCpu());
  const std::vector<Tensor> inputs = RandomInputs(graph, 7);
  const std::vector<Tensor> expected = RunReference(graph, Pointers(inputs));
  for (const int64_t block : {1, 8}) {
    const Plan plan = UniformPlan(graph, TestCpu(), block);
    {
      Executor far(graph, plan, device), near(graph, plan, OpenDevice(TestCpu(), 1));
      ExpectOutputs(far, graph, inputs, expected, 1e-5);
      std::vector<Tensor> from_far = UnwrittenOutputs(graph), from_near = UnwrittenOutputs(graph);
      device->launches = device->uploads = device->downloads = 0;
      far.Run(Pointers(inputs), Pointers(from_far));
      near.Run(Pointers(inputs), Pointers(from_near));
      for (size_t i = 0; i < from_far.size(); ++i) {
        EXPECT_EQ(std::memcmp(from_far[i].floats(), from_near[i].floats(),
                              static_cast<size_t>(from_far[i].size()) * sizeof(float)),
                  0)
            << "output " << i << " is the same to the bit";
      }
      EXPECT_EQ(device->uploads, 1);
      EXPECT_EQ(device->downloads, 2);
      const std::vector<StepProfile> profile = far.Profile(Pointers(inputs), Pointers(from_far), 2);
      EXPECT_EQ(device->launches, 3 * static_cast<int>(profile.size()));
      EXPECT_GE(device->built, static_cast<int>(profile.size()));
      for (const StepProfile& step : profile) EXPECT_GT(step.seconds, 0) << step.name;
      EXPECT_GE(device->allocations(), 5u) << "activations, a constant, an input, two outputs";
    }
    EXPECT_EQ(device->allocations(), 0u) << "all is given back";
  }
}

TEST(FarDevice, ExecutorsShareWhatWasBuiltAndUploaded) {
  const Graph graph = SmallNetwork();
  const auto device = std::make_shared<FarDevice>(TestCpu());
  const auto network = CompileNetwork(graph, UniformPlan(graph, TestCpu(), 8), device);
  const int built = device->built, uploads = device->uploads;
  EXPECT_GE(uploads, 1) << "the constant";
  Executor first(network), second(network);
  EXPECT_EQ(device->built, built);
  EXPECT_EQ(device->uploads, uploads);
  for (Executor* executor : {&first, &second}) {
    const std::vector<Tensor> inputs = RandomInputs(graph, executor == &first ? 1 : 2);
    ExpectOutputs(*executor, graph, inputs, RunReference(graph, Pointers(inputs)), 1e-5);
  }
}

TEST(FarDevice, StopsWhenAsked) {
  const Graph graph = SmallNetwork();
  StopFlag stop = false;
  Executor executor(graph, UniformPlan(graph, TestCpu(), 8), std::make_shared<FarDevice>(TestCpu()), &stop);
  const std::vector<Tensor> inputs = RandomInputs(graph, 7);
  std::vector<Tensor> outputs = UnwrittenOutputs(graph);
  stop = true;
  EXPECT_THROW(executor.Run(Pointers(inputs), Pointers(outputs)), Error);
}

TEST(FarDevice, MeasuresItsOwnCosts) {
  const auto device = std::make_shared<FarDevice>(TestCpu());
  const auto costs = MeasuredCosts(device, {}, nullptr);
  const Shape shape = {1, 20, 6, 6};
  const OpPtr relu = std::make_shared<ActivationOp>(Activation{ActivationKind::kRelu});
  EXPECT_GT(costs->TransformSeconds(shape, Layout::Nchw(), Layout::Blocked(8)), 0);
  EXPECT_GT(costs->CopySeconds(shape, Layout::Blocked(8)), 0);
  EXPECT_GT(costs->OpSeconds({relu, {shape}, shape, Layout::Blocked(8)}), 0);
  EXPECT_EQ(device->built, 3);
  EXPECT_GE(device->launches, 3);
  EXPECT_EQ(device->allocations(), 0u);
}

TEST(OpenDevice, FindsTheDeviceOfATargetAndNamesTheUnknown) {
  const auto cpu = OpenDevice(TestCpu(), 2);
  EXPECT_EQ(cpu->target(), TestCpu());
  EXPECT_EQ(cpu->threads(), 2);
  EXPECT_TRUE(cpu->ReadsHostMemory());
  Target target = TestCpu();
  target.device = "abacus";
  try {
    OpenDevice(target, 1);
    ADD_FAILURE() << "opened";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kEnvironment);
    EXPECT_THAT(error.what(), testing::HasSubstr("\"abacus\""));
  }
}

TEST(ConvTemplates, AreForOneKindOfTarget) {
  const ConvWorkload workload = ParseWorkload("ic16ih8oc16oh8kh3ph1");
  Target target = TestCpu();
  target.device = "abacus";
  EXPECT_TRUE(ConvTemplates(target.device).empty());
  for (const ConvTemplate* one : ConvTemplates()) {
    EXPECT_EQ(one->DeviceKind(), kCpuDevice);
    EXPECT_THAT(one->Supports(workload, target).reason, testing::HasSubstr("abacus")) << one->Name();
  }
}

}  // namespace
}  // namespace tilesmith
