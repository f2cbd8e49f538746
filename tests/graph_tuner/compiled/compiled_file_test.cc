#include "graph_tuner/compiled/compiled_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <iostream>

#include "graph_tuner/executor/heuristic_plan.h"
#include "ops/base/saved_op.h"
#include "ops/elementwise/activations.h"
#include "ops/passes/passes.h"
#include "tests/graph_tuner/support/compiled_testing.h"
#include "tests/graph_tuner/support/executor_random_network.h"
#include "tests/graph_tuner/support/region_testing.h"
#include "tests/support/ops/conformance.h"
#include "tests/support/ops/random_model.h"
#include "tests/support/random.h"
#include "tests/support/refusal.h"

namespace tilesmith {
namespace {

using testing::HasSubstr;

TEST(CompiledFile, RandomNetworksAndPlansComputeTheSameBits) {
  for (uint64_t seed = 0; seed < 150 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    TestRandom random(seed);
    const Graph graph = RandomNetwork(random);
    const int threads = static_cast<int>(random.Integer(1, 3));
    const Target cpu = TestCpu();
    const Plan plan = RandomPlan(graph, cpu, random);
    ExpectSameThroughFile(CompileNetwork(graph, plan, OpenDevice(cpu, threads)), RandomInputs(graph, seed));
  }
}

TEST(CompiledFile, RandomModelsComputeTheSameBits) {
  for (uint64_t seed = 0; seed < 150 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    TestRandom random(seed);
    const RandomSizes sizes =
        random.Pick(std::vector<RandomSizes>{RandomSizes::kMixed, RandomSizes::kSomeZero});
    const Graph graph = OptimizeGraph(RandomModel(random, sizes).Import());
    const Target cpu = CapIsa(TestCpu(), random.Pick(std::span(kTestIsas)));
    const Plan plan = HeuristicPlan(graph, cpu, 2);
    ExpectSameThroughFile(CompileNetwork(graph, plan, OpenDevice(cpu, 2)), RandomInputs(graph, seed));
  }
}

// Every op that ONNX has cases of.
TEST(CompiledFile, OpsOfOnnxComputeTheSameBits) {
  if (!HaveConformanceData()) GTEST_SKIP() << "install the package libonnx-testdata to run ONNX's cases";
  const Target cpu = TestCpu();
  const ConformanceReport report =
      RunConformance([&](const Graph& imported, const std::vector<Tensor>& inputs) {
        const Graph graph = OptimizeGraph(imported);
        const auto network = CompileNetwork(graph, HeuristicPlan(graph, cpu, 1), OpenDevice(cpu, 1));
        return OutputsOf(ThroughFile(network), inputs);
      });
  EXPECT_THAT(report.failures, testing::IsEmpty());
  EXPECT_GT(report.ran.size(), 100U);
}

// Whoever changes what is written, a struct's members or a template's parts, gives the format another
// version, and these files, which are the fuzzer's seeds, too (`tilesmith compile`).
TEST(CompiledFile, FilesOfThisVersionAreRead) {
  for (const std::string name : {"small", "late"}) {
    SCOPED_TRACE(name);
    const CompiledFile file(TILESMITH_SOURCE_DIR "/tests/fuzz/corpus/compiled/" + name, true);
    file.Check(0);
    const CompiledSummary& summary = file.networks().at(0);
    if (!RunsCode(summary.target, TestCpu())) continue;
    const auto network = LoadCompiled(file, 0, WaitPolicy::kSleep);
    std::vector<Tensor> inputs;
    for (const UserTensor& input : network->inputs) {
      inputs.emplace_back(input.shape);
      FillUniform({inputs.back().floats(), static_cast<size_t>(inputs.back().size())}, 1);
    }
    // That of `small` is a sigmoid's.
    for (const Tensor& output : OutputsOf(network, inputs)) {
      if (name != "small") continue;
      const std::span<const float> values(output.floats(), static_cast<size_t>(output.size()));
      EXPECT_THAT(values, testing::Each(testing::AllOf(testing::Gt(0), testing::Lt(1))));
    }
  }
}

std::shared_ptr<CompiledNetwork> NetworkWithRegion() {
  Graph graph("bands");
  const Graph::NodeId x = graph.Add("x", std::make_shared<InputOp>(Shape{1, 8, 24, 10}), {});
  const Graph::NodeId a = AddFilledConv(graph, "a", {x}, 16, 3);
  const Graph::NodeId b = AddFilledConv(graph, "b", {a}, 16, 3);
  graph.MarkOutput(AddFilledConv(graph, "c", {b}, 8, 3));
  const Plan plan = WithRegion(RowsPlan(graph, TestCpu(), 2), {"a", "b"}, 2);
  return std::const_pointer_cast<CompiledNetwork>(CompileNetwork(graph, plan, OpenDevice(TestCpu(), 2)));
}

TEST(CompiledFile, RegionsComputeTheSameBits) {
  const auto network = NetworkWithRegion();
  Tensor input({1, 8, 24, 10});
  FillUniform({input.floats(), static_cast<size_t>(input.size())}, 1);
  ExpectSameThroughFile(network, {input});
  const auto loaded = ThroughFile(network);
  ASSERT_EQ(loaded->regions.size(), 1U);
  EXPECT_EQ(loaded->regions[0].schedule.actions, network->regions[0].schedule.actions);
}

TEST(CompiledFile, WrongRegionsAreRefused) {
  const auto refusal = [](const std::function<void(CompiledNetwork&)>& change) {
    const auto network = NetworkWithRegion();
    change(*network);
    return Refusal(ErrorCode::kBadModel, [&] { ThroughFile(network); });
  };
  using Network = CompiledNetwork;
  EXPECT_THAT(refusal([](Network& n) { ++n.program.regions[0].first; }), HasSubstr("another region"));
  EXPECT_THAT(refusal([](Network& n) { n.program.regions[0].last = 99; }), HasSubstr("of no steps"));
  EXPECT_THAT(refusal([](Network& n) { n.program.regions[0].last = 0; }), HasSubstr("of no steps"));
  EXPECT_THAT(refusal([](Network& n) { n.program.regions[0].band_rows = 0; }), HasSubstr("of no steps"));
  EXPECT_THAT(refusal([](Network& n) { n.program.regions[0].band_rows = INT64_MAX; }),
              HasSubstr("of no steps"));
  EXPECT_THAT(refusal([](Network& n) { n.program.buffers[1].slice_of = 0; }), HasSubstr("no concat"));
  EXPECT_THAT(refusal([](Network& n) { n.program.buffers[1].slice_of = 99; }), HasSubstr("no concat"));
  EXPECT_THAT(refusal([](Network& n) { n.program.regions.clear(); }), HasSubstr("different sizes"));
  EXPECT_THAT(refusal([](Network& n) { n.program.steps.back().region = 0; }), HasSubstr("another region"));
  EXPECT_THAT(refusal([](Network& n) { n.memory.offsets.back() = -64; }), HasSubstr("scratch outside"));
  EXPECT_THAT(refusal([](Network& n) { n.memory.offsets.back() = n.memory.bytes; }),
              HasSubstr("scratch outside"));
  const auto rolls = [](Network& n) {
    return std::ranges::find(n.program.buffers, true, &TensorBuffer::rolls) - n.program.buffers.begin();
  };
  const auto kept = [](Network& n) -> TensorBuffer& {
    const Step& last = n.program.steps[static_cast<size_t>(n.program.regions[0].last) - 1];
    return n.program.buffers[static_cast<size_t>(n.program.values[static_cast<size_t>(last.write)].buffer)];
  };
  EXPECT_THAT(refusal([&](Network& n) { kept(n).rolls = true; }), HasSubstr("rolls"));
  EXPECT_THAT(refusal([&](Network& n) {
                n.places[static_cast<size_t>(&kept(n) - n.program.buffers.data())].root =
                    static_cast<int>(rolls(n));
              }),
              HasSubstr("in one that rolls"));
}

TEST(SavedOps, HaveNamesOfTheirOwn) {
  std::set<std::string_view> names;
  std::set<std::type_index> types;
  for (const SavedOp& op : SavedOps()) {
    EXPECT_TRUE(names.insert(op.name).second) << op.name;
    EXPECT_TRUE(types.insert(op.type).second) << op.name;
  }
}

CompiledNetworks SmallNetworks() {
  Graph graph("small");
  const Graph::NodeId x = graph.Add("x", std::make_shared<InputOp>(Shape{1, 16, 5, 5}), {});
  const Graph::NodeId conv = AddFilledConv(graph, "conv", {x}, 16, 3);
  graph.MarkOutput(
      graph.Add("y", std::make_shared<ActivationOp>(Activation{ActivationKind::kSigmoid}), {conv}));
  CompiledNetworks networks;
  for (const Isa isa : kTestIsas) {
    for (const int threads : {1, 2}) {
      Target cpu = CapIsa(TestCpu(), isa);
      if (cpu.isa != isa) continue;
      networks.push_back(CompileNetwork(graph, HeuristicPlan(graph, cpu, threads), OpenDevice(cpu, threads)));
    }
  }
  return networks;
}

class SmallFile : public testing::Test {
 protected:
  // Loads all that is in a file of these bytes.
  void Load(const std::string& bytes, bool verify = false) {
    WriteFile(path_, bytes);
    const CompiledFile file(path_, verify);
    for (size_t i = 0; i < networks_.size(); ++i) file.Load(i, networks_[i]->device);
  }

  const TemporaryDirectory folder_;
  const std::string path_ = folder_.File("small.tsc");
  const CompiledNetworks networks_ = SmallNetworks();
  const std::string bytes_ = CompiledBytes(networks_);
};

TEST_F(SmallFile, IsTheSameWheneverItIsWritten) {
  EXPECT_EQ(CompiledBytes(networks_), bytes_);
  EXPECT_EQ(CompiledBytes(SmallNetworks()), bytes_);
  EXPECT_EQ(bytes_.size() % 4096, 0U);
  Load(bytes_, true);
}

// Header and tables have sums that are always looked at, weights and code where that is asked for.
TEST_F(SmallFile, DamagedBytesAreRefused) {
  struct {
    int64_t offset, bytes;
  } sections[3];
  constexpr size_t kFirstSection = 24, kSectionBytes = 24;
  for (size_t i = 0; i < 3; ++i)
    std::memcpy(&sections[i], bytes_.data() + kFirstSection + i * kSectionBytes, sizeof(sections[i]));
  TestRandom random(1);
  const auto damaged = [&](int64_t at) {
    std::string bytes = bytes_;
    bytes[static_cast<size_t>(at)] ^= static_cast<char>(1 << random.Integer(0, 7));
    return bytes;
  };
  constexpr int64_t kHeaderBytes = kFirstSection + 3 * kSectionBytes + 8;
  for (int64_t at = 0; at < kHeaderBytes; ++at)
    EXPECT_NE(Refusal(ErrorCode::kBadModel, [&] { Load(damaged(at)); }), "") << at;
  for (int i = 0; i < 300; ++i) {
    const int64_t at = sections[0].offset + random.Integer(0, sections[0].bytes - 1);
    EXPECT_THAT(Refusal(ErrorCode::kBadModel, [&] { Load(damaged(at)); }),
                HasSubstr("its tables are damaged"));
  }
  for (int section = 1; section < 3; ++section) {
    // Portable kernels have no code.
    for (int i = 0; i < 50 && sections[section].bytes > 0; ++i) {
      const int64_t at = sections[section].offset + random.Integer(0, sections[section].bytes - 1);
      EXPECT_THAT(Refusal(ErrorCode::kBadModel, [&] { Load(damaged(at), true); }), HasSubstr("are damaged"));
    }
  }
}

TEST_F(SmallFile, OtherFilesAreRefusedByName) {
  const auto refusal = [&](const std::string& bytes) {
    return Refusal(ErrorCode::kBadModel, [&] { Load(bytes); });
  };
  EXPECT_THAT(refusal("no network"), HasSubstr(path_ + ": 10 bytes are no compiled network"));
  EXPECT_THAT(refusal(std::string(5000, 'x')), HasSubstr("is no compiled network"));
  EXPECT_THAT(refusal(bytes_.substr(0, bytes_.size() - 1)), HasSubstr("it is cut off, or was added to"));
  EXPECT_THAT(refusal(bytes_ + "x"), HasSubstr("it is cut off, or was added to"));
  std::string version = bytes_;
  version[8] = 9;
  EXPECT_THAT(refusal(version), HasSubstr("is of version 9 of the format, this program reads 4"));
  Refusal(ErrorCode::kEnvironment, [&] { CompiledFile(folder_.File("none.tsc")); });
  Refusal(ErrorCode::kBadModel, [&] { CompiledFile(folder_.path()); });
  EXPECT_TRUE(IsCompiledFile(path_));
  EXPECT_FALSE(IsCompiledFile(folder_.File("none.tsc")));
}

TEST_F(SmallFile, ChoosesWhatFitsBest) {
  WriteFile(path_, bytes_);
  const CompiledFile file(path_);
  const auto chosen = [&](Isa isa, int threads) {
    const CompiledSummary& summary = file.networks()[file.Choose(CapIsa(TestCpu(), isa), threads)];
    return std::pair(summary.target.isa, summary.threads);
  };
  for (const Isa isa : kTestIsas) {
    const Isa best = std::min(isa, TestCpu().isa);
    EXPECT_EQ(chosen(isa, 1), std::pair(best, 1));
    EXPECT_EQ(chosen(isa, 2), std::pair(best, 2));
    EXPECT_EQ(chosen(isa, 8), std::pair(best, 2));
  }
  const std::vector<Shape> shapes = {{1, 16, 5, 6}};
  EXPECT_THAT(Refusal(ErrorCode::kUsage, [&] { file.Choose(TestCpu(), 1, &shapes); }),
              HasSubstr("and the inputs are 1x16x5x6"));
  if (TestCpu().isa == Isa::kPortable) return;
  WriteFile(path_, CompiledBytes({networks_.back()}));
  EXPECT_THAT(
      Refusal(ErrorCode::kUsage, [&] { CompiledFile(path_).Choose(CapIsa(TestCpu(), Isa::kPortable), 1); }),
      HasSubstr("this CPU has portable"));
}

// As in an object: what is before the code in one place, and the code in another.
TEST_F(SmallFile, MayLieInMemory) {
  WriteFile(path_, bytes_);
  const std::span all = std::as_bytes(std::span(bytes_));
  AlignedBuffer before(static_cast<size_t>(BytesBeforeCode(all)));
  std::memcpy(before.data(), all.data(), before.bytes());
  const std::byte* const begin = static_cast<const std::byte*>(before.data());
  const CompiledFile file(begin, all.data() + before.bytes(), "network");
  EXPECT_EQ(file.networks().size(), networks_.size());
  for (size_t i = 0; i < networks_.size(); ++i)
    EXPECT_EQ(file.Load(i, networks_[i]->device)->steps.size(), networks_[i]->steps.size());
  before.floats()[0] = 0;
  EXPECT_THAT(Refusal(ErrorCode::kBadModel, [&] { CompiledFile(begin, begin, "network"); }),
              HasSubstr("network: is no compiled network"));
}

// Code lies in pages that nobody can write to, whichever processes map them.
TEST_F(SmallFile, NoMemoryIsWritableAndExecutable) {
  WriteFile(path_, bytes_);
  const CompiledFile file(path_);
  std::ifstream maps("/proc/self/maps");
  int seen = 0;
  for (std::string line; std::getline(maps, line);) {
    if (!line.ends_with(path_)) continue;
    ++seen;
    EXPECT_THAT(line, testing::AnyOf(HasSubstr(" r--s "), HasSubstr(" r-xp "))) << line;
  }
  EXPECT_GE(seen, 1);
}

}  // namespace
}  // namespace tilesmith
