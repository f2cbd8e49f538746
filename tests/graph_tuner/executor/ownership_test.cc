#include "graph_tuner/executor/ownership.h"

#include <gtest/gtest.h>

#include "graph_tuner/executor/compiled_network.h"
#include "graph_tuner/executor/heuristic_plan.h"
#include "ops/networks/networks.h"
#include "ops/passes/passes.h"
#include "tests/support/test_cpu.h"

namespace tilesmith {
namespace {

constexpr int64_t kChannels = 32, kHeight = 12, kWidth = 10;
const Shape kShape = {1, kChannels, kHeight, kWidth};
constexpr double kRowBytes = kChannels * kWidth * 4, kBytes = kRowBytes * kHeight;

TaskGrid Grid(int64_t channels = 4) {
  return {.images = 1, .channels = channels, .rows = kHeight, .height = kHeight};
}

// One step after the other, each reading what the one before has written, of one shape.
struct Chain {
  Program program;
  std::vector<StepGrids> grids;

  int AddValue(TensorBuffer buffer, const Shape& shape = kShape) {
    buffer.images = shape[0];
    buffer.image_bytes = BatchBytes(shape, Layout::Nchw());
    program.buffers.push_back(buffer);
    program.values.push_back({0, Layout::Nchw(), shape, static_cast<int>(program.buffers.size()) - 1});
    return static_cast<int>(program.values.size()) - 1;
  }
  void Add(Split split, const ConvWorkload* conv = nullptr, const TaskGrid& grid = Grid()) {
    if (program.values.empty()) {
      TensorBuffer input;
      input.source = TensorBuffer::Source::kInput;
      AddValue(input);
    }
    const int read = static_cast<int>(program.values.size()) - 1;
    program.steps.push_back({.reads = {read}, .write = AddValue({}), .in_place = {}, .split = split});
    grids.push_back({grid, grid, conv});
  }
  std::vector<double> Crossed(int threads = 2) const { return CrossedBytes(program, grids, threads); }
};

TEST(Ownership, RowsThatStayCrossOnlyAtTheHalo) {
  const ConvWorkload pointwise = ParseWorkload("ic32ih12iw10oc32oh12ow10kh1");
  const ConvWorkload spatial = ParseWorkload("ic32ih12iw10oc32oh12ow10kh3ph1");
  const ConvWorkload depthwise = ParseWorkload("g32ic32ih12iw10oc32oh12ow10kh5ph2");
  Chain chain;
  chain.Add(Split::kRows, &spatial);  // the caller's input
  chain.Add(Split::kRows, &pointwise);
  chain.Add(Split::kRows, &spatial);
  chain.Add(Split::kRows, &depthwise);
  chain.Add(Split::kRows);
  const std::vector<double> crossed = chain.Crossed();
  const double expected[] = {0, 0, 2 * kRowBytes, 4 * kRowBytes, 0};
  for (size_t i = 0; i < crossed.size(); ++i) EXPECT_NEAR(crossed[i], expected[i], 1e-6) << "step " << i;
  for (const double bytes : chain.Crossed(1)) EXPECT_EQ(bytes, 0);
}

TEST(Ownership, AChangeOfSplitMovesWhatTheOtherWrote) {
  const ConvWorkload pointwise = ParseWorkload("ic32ih12iw10oc32oh12ow10kh1");
  const ConvWorkload depthwise = ParseWorkload("g32ic32ih12iw10oc32oh12ow10kh3ph1");
  Chain chain;
  chain.Add(Split::kChannels, &pointwise);
  chain.Add(Split::kChannels, &depthwise);              // its own
  chain.Add(Split::kChannels, &pointwise);              // each thread reads all
  chain.Add(Split::kRows, &pointwise);                  // all channels of its rows
  chain.Add(Split::kChannels);                          // half of its channels
  chain.Add(Split::kOne);                               // the other's half
  chain.Add(Split::kRows, nullptr, TaskGrid::List(4));  // no place: reads all
  chain.Add(Split::kRows);                              // of what nobody owns
  const std::vector<double> crossed = chain.Crossed();
  const double expected[] = {0, 0, 1, 0.5, 0.5, 0.5, 1, 1};
  for (size_t i = 0; i < crossed.size(); ++i)
    EXPECT_NEAR(crossed[i], expected[i] * kBytes, 1e-6) << "step " << i;
}

TEST(Ownership, OfAConcatEverySliceIsItsWriters) {
  Chain chain;
  chain.Add(Split::kRows);
  TensorBuffer whole;
  const int concat = chain.AddValue(whole, {1, 2 * kChannels, kHeight, kWidth});
  const int slice = chain.program.values[chain.program.steps[0].write].buffer;
  chain.program.buffers[slice].slice_of = chain.program.values[concat].buffer;
  chain.program.steps.push_back(
      {.reads = {0}, .write = chain.AddValue({}), .in_place = {}, .split = Split::kChannels});
  chain.grids.push_back({Grid(), Grid()});
  TensorBuffer& second = chain.program.buffers.back();
  second.slice_of = chain.program.values[concat].buffer;
  second.slice_offset = static_cast<int64_t>(kBytes);
  const int result = chain.AddValue({}, {1, 2 * kChannels, kHeight, kWidth});
  chain.program.steps.push_back({.reads = {concat}, .write = result, .in_place = {}, .split = Split::kRows});
  chain.grids.push_back({Grid(), Grid()});
  // Rows of the first slice are where they were; of the second, half of the other's channels is read.
  EXPECT_NEAR(chain.Crossed()[2], kBytes / 2, 1e-6);
}

// One broken link shows as a large part of what the network reads.
TEST(Ownership, DefaultPlansKeepRowsWithTheirThreads) {
  const Target cpu = TestCpu();
  if (cpu.isa == Isa::kPortable) GTEST_SKIP() << "portable kernels have no estimate";
  for (const char* name : {"mobilenet_v1", "mobilenet_v2"}) {
    const Graph graph = OptimizeGraph(BuildNetwork(name));
    const auto network = CompileNetwork(graph, HeuristicPlan(graph, cpu, 2), OpenDevice(cpu, 2));
    double crossed = 0, read = 0;
    for (size_t i = 0; i < network->steps.size(); ++i) {
      crossed += network->steps[i].crossed_bytes;
      for (const int value : network->program.steps[i].reads) {
        const Value& v = network->program.values[value];
        read += static_cast<double>(PaddedBytes(v.shape, v.layout));
      }
    }
    EXPECT_LT(crossed, 0.12 * read) << name;
  }
}

}  // namespace
}  // namespace tilesmith
