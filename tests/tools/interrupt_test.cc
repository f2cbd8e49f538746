// SIGTERM and SIGINT during long work: it stops where it is, with exit code 130.
#include <unistd.h>

#include <csignal>
#include <sstream>

#include "tests/support/temporary_files.h"
#include "tests/tools/cli.h"

namespace tilesmith {
namespace {

constexpr int kInterrupted = 130;

// A network of many stages, of which one run takes minutes: more than the program is given.
const std::vector<std::string> kLongRun{"resnet152", "--input-shape", "input=1x3x1120x1120", "--threads", "1",
                                        "--max-isa", "portable"};
constexpr double kSeconds = 60;

std::vector<std::string> With(std::vector<std::string> arguments, const std::vector<std::string>& more) {
  arguments.insert(arguments.begin(), TILESMITH_BINARY);
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

// Until the file is there, for as long as the program may take.
bool WaitForFile(const std::string& path) {
  for (int i = 0; i < int(kSeconds * 500); ++i) {
    if (access(path.c_str(), F_OK) == 0) return true;
    usleep(2000);
  }
  return false;
}

// Whether the program comes to handle the signal rather than to die of it.
bool WaitUntilCaught(const BackgroundProgram& program, int signal) {
  const std::string path = "/proc/" + std::to_string(program.pid()) + "/status", key = "SigCgt:";
  for (int i = 0; i < int(kSeconds * 500); ++i) {
    const std::string status = ReadFile(path);
    const size_t at = status.find(key);
    if (at == std::string::npos) return false;
    if (std::stoull(status.substr(at + key.size()), nullptr, 16) >> (signal - 1) & 1) return true;
    usleep(2000);
  }
  return false;
}

// Half a second on a core: hundreds of runs of a small network.
bool WaitUntilItComputed(const BackgroundProgram& program) {
  const std::string path = "/proc/" + std::to_string(program.pid()) + "/stat";
  for (int i = 0; i < int(kSeconds * 500); ++i) {
    const std::string stat = ReadFile(path);
    std::istringstream fields(stat.substr(std::min(stat.size(), stat.rfind(')') + 1)));
    std::string skipped;
    for (int field = 3; field < 14; ++field) fields >> skipped;
    int64_t ticks = 0;
    if (fields >> ticks && ticks >= sysconf(_SC_CLK_TCK) / 2) return true;
    usleep(2000);
  }
  return false;
}

TEST(InterruptTest, ARunStopsWithinTheNetwork) {
  for (const int signal : {SIGTERM, SIGINT}) {
    BackgroundProgram run(With({"run", "--perf-map"}, kLongRun), {.seconds = kSeconds});
    const std::string map = "/tmp/perf-" + std::to_string(run.pid()) + ".map";
    ASSERT_TRUE(WaitForFile(map));  // the network is ready, and runs
    std::remove(map.c_str());
    run.Signal(signal);
    const ProgramResult result = run.Wait();
    EXPECT_EQ(result.exit_code, kInterrupted);
    EXPECT_EQ(result.err, "tilesmith run: interrupted\n");
  }
}

TEST(InterruptTest, TimesOfRunsBeforeAreReported) {
  const TemporaryDirectory directory;
  BackgroundProgram run({TILESMITH_BINARY, "run", "squeezenet1_1", "--input-shape", "input=1x3x48x48",
                         "--runs", "1000000000", "--output", directory.File("out"), "--perf-map"},
                        {.seconds = kSeconds});
  const std::string map = "/tmp/perf-" + std::to_string(run.pid()) + ".map";
  ASSERT_TRUE(WaitForFile(map));
  std::remove(map.c_str());
  ASSERT_TRUE(WaitUntilItComputed(run));
  run.Signal(SIGTERM);
  const ProgramResult result = run.Wait();
  EXPECT_EQ(result.exit_code, kInterrupted) << result.err;
  EXPECT_THAT(result.out, testing::HasSubstr("median ms"));
}

TEST(InterruptTest, BenchStopsWithinAConvolution) {
  BackgroundProgram bench({TILESMITH_BINARY, "bench", "mb64ic64ih56oc64oh56kh3ph1", "--time", "10m",
                           "--threads", "1", "--max-isa", "portable"},
                          {.seconds = kSeconds});
  ASSERT_TRUE(WaitUntilCaught(bench, SIGTERM));
  bench.Signal(SIGTERM);
  EXPECT_EQ(bench.Wait().exit_code, kInterrupted);
}

TEST(InterruptTest, GraphTuningStopsWithinTheNetwork) {
  const TemporaryDirectory directory;
  BackgroundProgram tuning(With({"graph-tune", "--default-schedules", "--rounds", "0", "--no-baselines", "-o",
                                 directory.File("plan.jsonl")},
                                kLongRun),
                           {.seconds = kSeconds});
  ASSERT_TRUE(WaitUntilCaught(tuning, SIGTERM));
  tuning.Signal(SIGTERM);
  const ProgramResult result = tuning.Wait();
  EXPECT_EQ(result.exit_code, kInterrupted) << result.err;
  EXPECT_THAT(result.err, testing::HasSubstr("interrupted before the first plan had run"));
}

TEST(InterruptTest, GraphTuningKeepsItsPlan) {
  const TemporaryDirectory directory;
  const std::string plan = directory.File("plan.jsonl");
  BackgroundProgram tuning(
      {TILESMITH_BINARY, "graph-tune", "squeezenet1_1", "--input-shape", "input=1x3x64x64",
       "--default-schedules", "--rounds", "0", "--time", "1s", "-o", plan},
      {.seconds = kSeconds});
  ASSERT_TRUE(WaitForFile(plan));  // now the baselines run, for several seconds each
  tuning.Signal(SIGTERM);
  const ProgramResult result = tuning.Wait();
  EXPECT_EQ(result.exit_code, kInterrupted) << result.err;
  EXPECT_THAT(result.err, testing::HasSubstr("interrupted; the fastest plan so far is in " + plan));
  EXPECT_GT(Lines(ReadFile(plan)), 10);
}

}  // namespace
}  // namespace tilesmith
