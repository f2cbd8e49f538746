// Streams of a network: from the library and from the command line.
#include "tools/network/stream_runs.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <thread>

#include "graph_tuner/executor/heuristic_plan.h"
#include "graph_tuner/planner/network_run.h"
#include "layouts/base/error.h"
#include "layouts/base/thread_team.h"
#include "tests/support/temporary_files.h"
#include "tests/tools/busy_programs.h"
#include "tests/tools/cli.h"
#include "tools/bench/stream_sweep.h"
#include "tools/cli/model.h"
#include "tools/peers/onnx_runtime.h"

namespace tilesmith {
namespace {

class StreamRunsTest : public testing::Test {
 protected:
  StreamTimes Run(const StreamOptions& options, const StopFlag* stop = nullptr) {
    const Plan plan = HeuristicPlan(graph_, machine_->target(), machine_->threads());
    return RunStreams(graph_, plan, machine_, SeededInputs(graph_, 1), options, stop);
  }
  const DevicePtr machine_ = OpenMachine({.threads = 1, .max_isa = ""});
  const Graph graph_ = LoadModel({.model = "squeezenet1_1", .input_shapes = {"input=1x3x48x48"}});
};

TEST_F(StreamRunsTest, EachStreamRunsForTheTimeAndIsCounted) {
  const int64_t streams = std::min(2, machine_->target().cores);
  const StreamTimes times = Run({.streams = streams, .seconds = 0.2, .warmup_seconds = 0.05});
  std::vector<int> of_stream(static_cast<size_t>(streams));
  double last_end = 0;
  for (const StreamRun& run : times.runs) {
    ++of_stream.at(static_cast<size_t>(run.stream));
    EXPECT_GT(run.seconds, 0);
    EXPECT_GE(run.begin_seconds, 0);
    EXPECT_LT(run.begin_seconds, 0.2) << "none begins after the end";
    last_end = std::max(last_end, run.begin_seconds + run.seconds);
  }
  for (const int runs : of_stream) EXPECT_GT(runs, 0);
  EXPECT_NEAR(times.runs_per_second, static_cast<double>(times.runs.size()) / last_end,
              0.5 * times.runs_per_second);
  EXPECT_LE(times.LatencyQuantile(0.5), times.LatencyQuantile(0.99));
  EXPECT_EQ(Lines(LatencyCsv(times)), 1 + static_cast<int64_t>(times.runs.size()));
}

TEST_F(StreamRunsTest, NeedsItsCoresAndStops) {
  const int64_t cores = machine_->target().cores;
  EXPECT_THROW(Run({.streams = cores + 1}), Error);
  EXPECT_THROW(Run({.streams = std::numeric_limits<int64_t>::max()}), Error);
  const StopFlag stop = true;
  EXPECT_THROW(Run({.streams = 1, .seconds = 600}, &stop), Error);
}

TEST_F(StreamRunsTest, SidesTakeTurns) {
  const int64_t streams = std::min(2, machine_->target().cores);
  std::atomic<int> running[2] = {}, together = 0;
  std::vector<OpenStream> sides;
  for (int side = 0; side < 2; ++side) {
    sides.push_back([&, side] {
      return [&, side] {
        ++running[side];
        if (running[1 - side] > 0) ++together;
        std::this_thread::sleep_for(std::chrono::milliseconds(side + 1));
        --running[side];
      };
    });
  }
  const std::vector<StreamTimes> times =
      TimeStreams(sides, 1, {.streams = streams, .seconds = 0.08, .warmup_seconds = 0});
  ASSERT_EQ(times.size(), 2u);
  // The first runs, before the turns begin, may coincide with the other stream's of the other side.
  EXPECT_LE(together, 2 * streams);
  for (int side = 0; side < 2; ++side) {
    EXPECT_GE(times[side].LatencyQuantile(0), 0.001 * (side + 1));
    EXPECT_LE(times[side].runs_per_second, 1000.0 / (side + 1) * static_cast<double>(streams));
    EXPECT_GT(times[side].runs.size(), 4u) << "each turn has one";
  }
}

TEST_F(StreamRunsTest, StreamsThatWaitForOtherProgramsAreDisturbed) {
  if (!std::ifstream("/proc/self/schedstat").good()) GTEST_SKIP() << "the kernel does not count that";
  const BusyPrograms others(4, ProcessCores()[0]);
  const OpenStream computing = [] { return [] {}; };
  const StreamOptions options = {.streams = 1, .seconds = 0.4, .warmup_seconds = 0};
  EXPECT_EQ(TimeStreams({&computing, 1}, 1, options).front().disturbed_share, 1);
}

TEST_F(StreamRunsTest, ASideThatFailsEndsAllStreams) {
  const int64_t streams = std::min(2, machine_->target().cores);
  std::atomic<int> opened = 0;
  const OpenStream failing = [&]() -> std::function<void()> {
    if (opened++ == 0) throw Error(ErrorCode::kBadModel, "refused");
    return [] {};
  };
  EXPECT_THROW(TimeStreams({&failing, 1}, 1, {.streams = streams, .seconds = 600}), Error);
}

TEST(PercentilesTest, AreNumbersAboveZeroUpToAHundred) {
  EXPECT_EQ(ParsePercentiles({}), (std::vector<double>{50, 90, 99}));
  EXPECT_EQ(ParsePercentiles({"99.9", "100"}), (std::vector<double>{99.9, 100}));
  for (const char* text : {"0", "-1", "101", "nan", "", "9x"})
    EXPECT_THROW(ParsePercentiles({text}), Error) << text;
}

TEST(SweepTest, VariesWhatItIsAskedTo) {
  SweepRequest request;
  ParseSweep("batch,streams", &request);
  EXPECT_TRUE(request.batch && request.streams && !request.threads);
  EXPECT_THROW(ParseSweep("threads,bats", &request), Error);
}

TEST(StreamCommandsTest, TellThroughputAndLatency) {
  const TemporaryDirectory directory;
  const std::string csv = directory.File("runs.csv");
  const std::vector<std::string> network = {
      "squeezenet1_1", "--input-shape", "input=1x3x48x48", "--threads", "1",
      "--duration",    "100ms",         "--warmup",        "10ms",      "--json"};
  std::vector<std::string> run = {"run", "--streams", "1", "--percentile", "99.9", "--latency-csv", csv};
  run.insert(run.end(), network.begin(), network.end());
  const ProgramResult ran = Tilesmith(run);
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  const auto json = nlohmann::json::parse(ran.out);
  EXPECT_GT(json["runs_per_second"], 0);
  ASSERT_EQ(json["latencies"].size(), 1u);
  EXPECT_EQ(json["latencies"][0]["percentile"], 99.9);
  EXPECT_EQ(Lines(ReadFile(csv)), 1 + json["runs_counted"].get<int64_t>());
  run.emplace_back("--check");
  ExpectRefusal(run, 2, "are about times of streams");

  std::vector<std::string> bench = {"bench", "--sweep", "streams,threads", "--csv", csv};
  bench.insert(bench.end(), network.begin(), network.end());
  const ProgramResult swept = Tilesmith(bench);
  ASSERT_EQ(swept.exit_code, 0) << swept.err;
  const auto rows = nlohmann::json::parse(swept.out);
  EXPECT_GE(rows["sweep"].size(), 1u);
  EXPECT_GT(rows["sweep"][0]["images_per_second"], 0);
  if (!FindOnnxRuntime("").empty()) {
    EXPECT_GT(rows["sweep"][0]["onnxruntime_images_per_second"], 0);
    EXPECT_GT(rows["sweep"][0]["ratio"], 0);
  }
  EXPECT_THAT(rows["most_images"].get<std::string>(), testing::HasSubstr("of 1 thread"));
  EXPECT_THAT(ReadFile(csv), testing::HasSubstr("threads,batch,streams,images_per_second"));
  std::vector<std::string> one = {"bench", "--streams", "1"};
  one.insert(one.end(), network.begin(), network.end());
  EXPECT_EQ(nlohmann::json::parse(Tilesmith(one).out)["sweep"].size(), 1u);
  bench[2] = "cores";
  ExpectRefusal(bench, 2, "--sweep takes threads, batch and streams");
}

}  // namespace
}  // namespace tilesmith
