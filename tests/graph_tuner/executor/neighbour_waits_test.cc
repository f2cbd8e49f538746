#include "graph_tuner/executor/neighbour_waits.h"

#include <gtest/gtest.h>
#include <time.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>

#include "graph_tuner/executor/compiled_network.h"
#include "graph_tuner/executor/heuristic_plan.h"
#include "graph_tuner/executor/network_regions.h"
#include "ops/conv/conv.h"
#include "ops/networks/networks.h"
#include "ops/passes/passes.h"
#include "templates/base/conv_template.h"
#include "tests/graph_tuner/support/executor_random_network.h"
#include "tests/graph_tuner/support/executor_testing.h"
#include "tests/graph_tuner/support/step_alone.h"
#include "tests/support/random_config.h"
#include "tests/support/random_workload.h"
#include "tests/support/test_cpu.h"

namespace tilesmith {
namespace {

constexpr int64_t kRows = 16, kColumns = 4, kDepth = 8;

// One NHWC step after the other, each reading what the one before has written; every tensor has memory of its
// own unless it is said to lie where another one does.
struct RowChain {
  Program program;
  std::vector<Place> places;
  std::vector<StepTouch> touches;
  MemoryPlan memory;
  std::vector<int64_t> scratch;

  RowChain() {
    TensorBuffer input;
    input.source = TensorBuffer::Source::kInput;
    AddValue(input, kRows);
  }
  int AddValue(TensorBuffer buffer, int64_t height) {
    const Shape shape = {1, kDepth, height, kColumns};
    buffer.image_bytes = BatchBytes(shape, Layout::Nhwc());
    const int index = static_cast<int>(program.buffers.size());
    program.buffers.push_back(buffer);
    program.values.push_back({0, Layout::Nhwc(), shape, index});
    places.push_back({index, 0, buffer.image_bytes});
    memory.offsets.push_back(memory.bytes);
    memory.bytes += buffer.image_bytes;
    return index;
  }
  // A step by `split` that reads the last value through `windows`.
  int Add(const std::optional<RowWindows>& windows, int64_t height = kRows, Split split = Split::kRows,
          int stages = 1) {
    const int read = static_cast<int>(program.values.size()) - 1;
    const int written = AddValue({}, height);
    program.steps.push_back({.reads = {read}, .write = written, .in_place = {}, .split = split});
    touches.push_back({stages, {.channels = 2, .rows = height, .height = height}, {windows}, 0});
    return written;
  }
  std::vector<bool> Waits(int threads) const {
    MemoryPlan all = memory;
    for (size_t i = 0; i < program.steps.size(); ++i) all.offsets.push_back(memory.bytes);
    return NeighbourWaits(program, places, all, touches, threads);
  }
};

const RowWindows kPointwise = {}, kThree = {{1, 1, 3}}, kNine = {{1, 4, 9}}, kStrided = {{2, 1, 3}};

TEST(NeighbourWaits, ChainsOfRowsWhoseHaloIsTheNeighbours) {
  RowChain chain;
  for (const RowWindows& windows : {kPointwise, kThree, kPointwise, kThree, kThree}) chain.Add(windows);
  chain.Add(kStrided, kRows / 2);
  // The first step waits for the run before; a halo of two rows of the part's four is the neighbour's.
  EXPECT_EQ(chain.Waits(4), (std::vector<bool>{false, true, true, true, true, true}));
  EXPECT_EQ(chain.Waits(2), (std::vector<bool>{false, true, true, true, true, true}));
}

TEST(NeighbourWaits, AHaloThatReachesFurtherWaitsForAll) {
  RowChain chain;
  chain.Add(kPointwise);
  chain.Add(kNine);  // four rows up and down: with 8 threads those of two neighbours
  EXPECT_EQ(chain.Waits(4), (std::vector<bool>{false, true}));
  EXPECT_EQ(chain.Waits(8), (std::vector<bool>{false, false}));
  // Two windows, one behind the other, reach as far as both.
  RowChain pair;
  pair.Add(kPointwise);
  pair.Add(RowWindows{{1, 1, 3}, {1, 2, 5}});
  EXPECT_EQ(pair.Waits(4), (std::vector<bool>{false, true}));
  EXPECT_EQ(pair.Waits(8), (std::vector<bool>{false, false}));
}

TEST(NeighbourWaits, WhatNobodyCanSayWaitsForAll) {
  RowChain chain;
  chain.Add(kPointwise);
  chain.Add(std::nullopt);                         // reads all
  chain.Add(kPointwise, kRows, Split::kChannels);  // writes a part of every row
  chain.Add(kPointwise);                           // reads it
  chain.Add(kPointwise, kRows, Split::kRows, 2);   // of two stages: reads all that was just written
  chain.Add(kPointwise);                           // rows of its last stage
  EXPECT_EQ(chain.Waits(4), (std::vector<bool>{false, false, false, false, false, true}));
}

// Read three steps ago by the thread three away, which may still be in it.
TEST(NeighbourWaits, NobodyWritesOverWhatADistantThreadStillReads) {
  RowChain chain;
  const int first = chain.Add(kPointwise);
  chain.Add(kPointwise);
  const int third = chain.Add(kPointwise);
  EXPECT_EQ(chain.Waits(4), (std::vector<bool>{false, true, true}));
  chain.places[static_cast<size_t>(third)].root = first;
  EXPECT_EQ(chain.Waits(4), (std::vector<bool>{false, true, true})) << "the same rows are the same thread's";
  chain.places[static_cast<size_t>(third)] = {first, chain.program.buffers[0].image_bytes / 2, 0};
  EXPECT_EQ(chain.Waits(4), (std::vector<bool>{false, true, false})) << "rows lie elsewhere";
  EXPECT_EQ(chain.Waits(2), (std::vector<bool>{false, true, true})) << "there are only neighbours";
}

TEST(NeighbourWaits, ScratchIsAllThreads) {
  RowChain chain;
  const int first = chain.Add(kPointwise);
  chain.Add(kPointwise);
  chain.touches[1].scratch_bytes = 64;
  EXPECT_EQ(chain.Waits(4), (std::vector<bool>{false, true}));
  // Over what the step before reads.
  chain.places[static_cast<size_t>(first) - 1].root = first - 1;
  MemoryPlan all = chain.memory;
  all.offsets.push_back(all.bytes);
  all.offsets.push_back(all.offsets[static_cast<size_t>(first)]);
  EXPECT_EQ(NeighbourWaits(chain.program, chain.places, all, chain.touches, 4),
            (std::vector<bool>{false, false}));
}

StepAlone Alone(const CompiledNetwork& network, size_t index, int threads) {
  const Step& step = network.program.steps[index];
  const auto tensor = [&](int value) {
    const Value& v = network.program.values[static_cast<size_t>(value)];
    return Tensor(v.shape, v.layout);
  };
  std::vector<Tensor> inputs;
  for (const int value : step.reads) inputs.push_back(tensor(value));
  return {*network.kernels[index], network.touches[index], step.split, threads,
          std::move(inputs),       tensor(step.write)};
}

// How many steps something is said of.
int ExpectShares(const CompiledNetwork& network, int threads, uint64_t seed) {
  int told = 0;
  for (size_t i = 0; i < network.kernels.size(); ++i) {
    StepAlone step = Alone(network, i, threads);
    if (!step.Told()) continue;
    SCOPED_TRACE(testing::Message() << "seed " << seed << ", " << threads << " threads, step "
                                    << network.steps[i].name << " (" << network.steps[i].kind << ", "
                                    << network.steps[i].layouts << ")");
    step.ExpectShares(seed);
    ++told;
    if (testing::Test::HasFailure()) break;
  }
  return told;
}

TEST(NeighbourWaits, SharesOfRandomPlansTouchNoMoreThanIsSaid) {
  const Target cpu = TestCpu();
  int told = 0;
  for (uint64_t seed = 0; seed < 40 && !HasFailure(); ++seed) {
    TestRandom random(seed);
    const Graph graph = RandomNetwork(random);
    Plan plan = RandomPlan(graph, cpu, random);
    const int threads = static_cast<int>(random.Integer(2, 5));
    for (NodePlan& node : plan.nodes)
      node.split = random.Pick(std::vector<Split>(kSplits, std::end(kSplits)));
    told += ExpectShares(*CompileNetwork(graph, plan, OpenDevice(cpu, threads)), threads, seed);
  }
  EXPECT_GT(told, 100);
}

TEST(NeighbourWaits, SharesOfDefaultPlansTouchNoMoreThanIsSaid) {
  const Target cpu = TestCpu();
  for (const char* name : {"mobilenet_v2", "resnet18", "densenet121", "squeezenet1_1"}) {
    const Graph graph = OptimizeGraph(BuildNetwork(name, {.height = 64, .width = 64}));
    SCOPED_TRACE(name);
    EXPECT_GT(ExpectShares(*CompileNetwork(graph, HeuristicPlan(graph, cpu, 3), OpenDevice(cpu, 3)), 3, 1),
              10);
  }
}

// Of every template, whatever its schedule.
TEST(NeighbourWaits, SharesOfEveryTemplateTouchNoMoreThanIsSaid) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  TestRandom random(seed);
  const Target cpu = TestCpu();
  int told = 0;
  for (const ConvTemplate* conv_template : ConvTemplates()) {
    for (int i = 0; i < 60 && !HasFailure(); ++i) {
      const ConvWorkload workload = i % 3 == 0 ? RandomFusedWorkload(random) : RandomWorkload(random);
      if (!conv_template->Supports(workload, cpu).ok) continue;
      const auto config = RandomValidConfig(conv_template->Space(workload, cpu), random, 500);
      if (!config) continue;
      const ConvData data = MakeConvData(workload, [](Tensor& t) {
        FillUniform({t.floats(), static_cast<size_t>(t.size())}, 1);
      });
      const auto kernel = conv_template->Build(workload, *config, cpu, WeightsOf(data.tensors()));
      const LayoutPair layouts = conv_template->Layouts(workload, *config);
      std::vector<Tensor> inputs = {Tensor(workload.input_shape(), layouts.in)};
      if (workload.post.sum) inputs.emplace_back(workload.output_shape(), layouts.out);
      StepTouch touch{kernel->Stages(), kernel->Grid(kernel->Stages() - 1), {WindowsOf(workload)}};
      if (workload.post.sum) touch.reads.emplace_back(RowWindows());
      const int threads = static_cast<int>(random.Integer(2, 6));
      const Split split = random.Pick(std::vector<Split>(kSplits, std::end(kSplits)));
      StepAlone step(*kernel, touch, split, threads, std::move(inputs),
                     Tensor(workload.output_shape(), layouts.out));
      if (!step.Told()) continue;
      SCOPED_TRACE(testing::Message()
                   << conv_template->Name() << ", " << WorkloadToString(workload) << ", "
                   << config->ToString() << ", " << threads << " threads by " << SplitName(split));
      step.ExpectShares(seed);
      ++told;
    }
  }
  EXPECT_GT(told, 20);
}

// A kernel whose threads are late now and then.
class LateKernel final : public Kernel {
 public:
  LateKernel(std::unique_ptr<Kernel> kernel, unsigned seed) : kernel_(std::move(kernel)), seed_(seed) {}
  int Stages() const override { return kernel_->Stages(); }
  int64_t Tasks(int stage) const override { return kernel_->Tasks(stage); }
  TaskGrid Grid(int stage) const override { return kernel_->Grid(stage); }
  int64_t ScratchBytes(int threads) const override { return kernel_->ScratchBytes(threads); }
  void Run(const KernelArgs& args, int stage, TaskRange range) const override {
    std::minstd_rand random(seed_ + static_cast<unsigned>(range.thread) * 7919);
    random.discard(3);
    const timespec pause{0, 300'000};
    if (random() % 4 == 0) nanosleep(&pause, nullptr);
    kernel_->Run(args, stage, range);
  }

 private:
  const std::unique_ptr<Kernel> kernel_;
  const unsigned seed_;
};

std::vector<Tensor> InputsOf(const Graph& graph) {
  std::vector<Tensor> inputs;
  for (const Graph::NodeId id : graph.GraphInputs()) {
    inputs.emplace_back(graph.node(id).shape);
    Tensor& input = inputs.back();
    for (int64_t i = 0; i < input.size(); ++i) input.floats()[i] = static_cast<float>(i % 17) / 17 - 0.4F;
  }
  return inputs;
}

// What the network computes, run after run, with threads that are late.
void ExpectTheSame(const std::string& name, const Graph& graph, int threads, unsigned seed) {
  const Target cpu = TestCpu();
  const Plan plan = HeuristicPlan(graph, cpu, threads);
  const auto compile = [&] {
    return std::const_pointer_cast<CompiledNetwork>(
        CompileNetwork(graph, plan, OpenDevice(cpu, threads, WaitPolicy::kYield)));
  };
  const auto together = compile(), loose = compile();
  together->neighbour_waits.assign(together->kernels.size(), false);
  std::vector<Tensor> inputs = InputsOf(graph);
  const Tensor* in = inputs.data();
  const auto output = [&] { return Tensor(graph.node(graph.outputs()[0]).shape); };
  Tensor expected = output(), actual = output();
  Tensor *expected_out = &expected, *actual_out = &actual;
  Executor(together).Run(std::span(&in, 1), std::span(&expected_out, 1));
  std::minstd_rand random(seed);
  for (std::unique_ptr<Kernel>& kernel : loose->kernels)
    kernel = std::make_unique<LateKernel>(std::move(kernel), static_cast<unsigned>(random()));
  Executor executor(loose);
  for (int run = 0; run < 2; ++run) {
    executor.Run(std::span(&in, 1), std::span(&actual_out, 1));
    EXPECT_EQ(std::memcmp(actual.raw(), expected.raw(), static_cast<size_t>(expected.bytes())), 0)
        << name << ", " << threads << " threads, run " << run << ", seed " << seed;
  }
}

TEST(NeighbourWaits, LateThreadsChangeNothingThatIsComputed) {
  const unsigned seed = std::random_device()();
  for (const char* name : {"mobilenet_v1", "mobilenet_v2", "resnet18", "squeezenet1_1", "densenet121"}) {
    const Graph graph = OptimizeGraph(BuildNetwork(name, {.height = 96, .width = 96}));
    for (const int threads : {3, 5, 8}) ExpectTheSame(name, graph, threads, seed);
  }
}

TEST(NeighbourWaits, DefaultPlansHaveChains) {
  const Target cpu = TestCpu();
  if (cpu.isa == Isa::kPortable) GTEST_SKIP() << "portable kernels have no estimate";
  const Graph graph = OptimizeGraph(BuildNetwork("mobilenet_v2"));
  const auto network = CompileNetwork(graph, HeuristicPlan(graph, cpu, 4), OpenDevice(cpu, 4));
  EXPECT_GT(std::ranges::count(network->neighbour_waits, true), std::ssize(network->kernels) / 4);
}

}  // namespace
}  // namespace tilesmith
