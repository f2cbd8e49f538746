// SIGTERM and SIGINT during long work: it stops where it is, with exit code 130.
#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <sstream>

#include "tests/support/temporary_files.h"
#include "tests/tools/cli.h"

namespace tilesmith {
namespace {

constexpr int kInterrupted = 130;

// A network of many stages, of which one run takes more than a minute of a core.
const std::vector<std::string> kLongRun{"resnet101", "--input-shape", "input=1x3x1792x1792", "--threads", "1",
                                        "--max-isa", "portable"};
constexpr double kMaxCpuSeconds = 25;  // of loading it and of one of its stages
constexpr double kSeconds = 240;       // until a test gives up

std::vector<std::string> With(const std::vector<std::string>& arguments,
                              const std::vector<std::string>& more) {
  std::vector<std::string> all{TILESMITH_BINARY};
  all.insert(all.end(), arguments.begin(), arguments.end());
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

std::string ProcFile(const BackgroundProgram& program, const std::string& name) {
  return ReadFile(fmt::format("/proc/{}/{}", program.pid(), name));
}

// Waits until it is so; false when the program has ended before, or takes longer than it may.
bool WaitUntil(const BackgroundProgram& program, const std::function<bool()>& is_so) {
  for (int i = 0; i < static_cast<int>(kSeconds * 500); ++i) {
    if (is_so()) return true;
    if (ProcFile(program, "status").find("State:\tZ") != std::string::npos) return false;
    usleep(2000);
  }
  return false;
}

bool Exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

// With --perf-map: until the network is ready, and runs.
bool WaitUntilItRuns(const BackgroundProgram& program) {
  const std::string map = fmt::format("/tmp/perf-{}.map", program.pid());
  return WaitUntil(program, [&] { return Exists(map); }) && std::remove(map.c_str()) == 0;
}

// Until it handles the signal rather than dies of it.
bool WaitUntilItCatches(const BackgroundProgram& program, int signal) {
  return WaitUntil(program, [&] {
    const std::string status = ProcFile(program, "status"), key = "SigCgt:";
    const size_t at = status.find(key);
    return at != std::string::npos &&
           (std::stoull(status.substr(at + key.size()), nullptr, 16) >> (signal - 1) & 1) != 0;
  });
}

// Until it has used half a second of a core: hundreds of runs of a small network.
bool WaitUntilItComputed(const BackgroundProgram& program) {
  return WaitUntil(program, [&] {
    const std::string stat = ProcFile(program, "stat");
    std::istringstream fields(stat.substr(std::min(stat.size(), stat.rfind(')') + 1)));
    std::string skipped;
    for (int field = 3; field < 14; ++field) fields >> skipped;
    int64_t ticks = 0;
    return fields >> ticks && ticks >= sysconf(_SC_CLK_TCK) / 2;
  });
}

TEST(InterruptTest, ARunStopsWithinTheNetwork) {
  for (const int signal : {SIGTERM, SIGINT}) {
    BackgroundProgram run(With({"run", "--perf-map"}, kLongRun), {.seconds = kSeconds});
    ASSERT_TRUE(WaitUntilItRuns(run));
    run.Signal(signal);
    const ProgramResult result = run.Wait();
    EXPECT_EQ(result.exit_code, kInterrupted);
    EXPECT_THAT(result.err, testing::EndsWith("tilesmith run: interrupted\n"));
    EXPECT_LT(result.cpu_seconds, kMaxCpuSeconds);
  }
}

TEST(InterruptTest, TimesOfRunsBeforeAreReported) {
  const TemporaryDirectory directory;
  BackgroundProgram run(
      {TILESMITH_BINARY, "run", "squeezenet1_1", "--input-shape", "input=1x3x48x48", "--runs", "1000000000",
       "--profile", "--output", directory.File("out"), "--perf-map"},
      {.seconds = kSeconds});
  ASSERT_TRUE(WaitUntilItRuns(run));
  ASSERT_TRUE(WaitUntilItComputed(run));
  run.Signal(SIGTERM);
  const ProgramResult result = run.Wait();
  EXPECT_EQ(result.exit_code, kInterrupted) << result.err;
  EXPECT_THAT(result.out, testing::HasSubstr("median ms"));
  EXPECT_THAT(result.err, testing::HasSubstr("not made: the profile, " + directory.File("out")));
}

TEST(InterruptTest, BenchStopsWithinAConvolution) {
  BackgroundProgram bench({TILESMITH_BINARY, "bench", "mb16ic64ih56oc64oh56kh3ph1", "--time", "10m",
                           "--threads", "1", "--max-isa", "portable"},
                          {.seconds = kSeconds});
  ASSERT_TRUE(WaitUntilItCatches(bench, SIGTERM));
  bench.Signal(SIGTERM);
  const ProgramResult result = bench.Wait();
  EXPECT_EQ(result.exit_code, kInterrupted) << result.err;
  EXPECT_LT(result.cpu_seconds, kMaxCpuSeconds);
}

TEST(InterruptTest, TrialsOfASpaceAreKeptAndGoneOnWith) {
  const TemporaryDirectory directory;
  const std::string space = directory.File("conv.space"), log = space + ".log.jsonl";
  const auto measure = [&](const std::string& keep, const std::vector<std::string>& more) {
    std::vector<std::string> words = {TILESMITH_BINARY,
                                      "measure-space",
                                      kSmallConv,
                                      "--template",
                                      "portable",
                                      "--keep",
                                      keep,
                                      "-o",
                                      space,
                                      "--threads",
                                      "1",
                                      "--json"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  const std::string few = "rows=1,2 ow_tile=1,2";
  BackgroundProgram measuring(measure("", {}), {.seconds = kSeconds});
  ASSERT_TRUE(WaitUntil(measuring, [&] { return Exists(log) && Lines(ReadFile(log)) > 3; }));
  measuring.Signal(SIGTERM);
  const ProgramResult result = measuring.Wait();
  EXPECT_EQ(result.exit_code, kInterrupted) << result.err;
  EXPECT_THAT(result.err, testing::HasSubstr("interrupted; what was measured is in " + log));
  EXPECT_FALSE(Exists(space));
  const std::string kept = ReadFile(log);
  EXPECT_THAT(RunProgram(measure("", {})).err, testing::HasSubstr("exists: give --resume"));
  EXPECT_THAT(RunProgram(measure(few, {"--resume", "--cold"})).err, testing::HasSubstr("cold or warm"));
  EXPECT_EQ(ReadFile(log), kept);

  ASSERT_EQ(RunProgram(measure(few, {"--overwrite"})).exit_code, 0);
  EXPECT_TRUE(Exists(space));
  EXPECT_FALSE(Exists(log)) << "it was for the time until the file is whole";
}

TEST(InterruptTest, GraphTuningStopsWithinTheNetwork) {
  const TemporaryDirectory directory;
  BackgroundProgram tuning(With({"graph-tune", "--default-schedules", "--rounds", "0", "--no-baselines", "-o",
                                 directory.File("plan.jsonl")},
                                kLongRun),
                           {.seconds = kSeconds});
  ASSERT_TRUE(WaitUntilItCatches(tuning, SIGTERM));
  tuning.Signal(SIGTERM);
  const ProgramResult result = tuning.Wait();
  EXPECT_EQ(result.exit_code, kInterrupted) << result.err;
  EXPECT_THAT(result.err, testing::AnyOf(testing::HasSubstr("interrupted before there was a plan"),
                                         testing::HasSubstr("interrupted; the only plan so far is in ")));
  EXPECT_LT(result.cpu_seconds, kMaxCpuSeconds);
}

TEST(InterruptTest, GraphTuningKeepsItsPlan) {
  const TemporaryDirectory directory;
  const std::string plan = directory.File("plan.jsonl"), log = directory.File("log.jsonl");
  const std::string saved = directory.File("tuned.json"), page = directory.File("page.html");
  const std::string shape = "input=1x3x64x64";
  ASSERT_EQ(
      Tilesmith({"tune", "squeezenet1_1", "--input-shape", shape, "-o", log, "--trials", "8"}).exit_code, 0);
  BackgroundProgram tuning(
      {TILESMITH_BINARY, "graph-tune", "squeezenet1_1", "--input-shape", shape, "--log", log, "--rounds", "0",
       "--time", "1s", "-o", plan, "--save", saved, "--report", page},
      {.seconds = kSeconds});
  ASSERT_TRUE(
      WaitUntil(tuning, [&] { return Exists(plan); }));  // now the baselines run, for several seconds each
  tuning.Signal(SIGTERM);
  const ProgramResult result = tuning.Wait();
  EXPECT_EQ(result.exit_code, kInterrupted) << result.err;
  EXPECT_THAT(result.err,
              testing::ContainsRegex("interrupted; the (only|fastest) plan so far is in " + plan));
  EXPECT_GT(Lines(ReadFile(plan)), 10);
  EXPECT_THAT(result.out, testing::HasSubstr("interrupted: the best plan by then"));
  EXPECT_THAT(ReadFile(saved), testing::HasSubstr(R"("finished": false)"));
  EXPECT_THAT(ReadFile(page), testing::HasSubstr("squeezenet1_1"));
}

}  // namespace
}  // namespace tilesmith
