// How many trials a second more workers make, and what the farm adds to a trial. Processes whose trials sleep
// 20 ms, so that two cores are enough for eight workers.
//
// TILESMITH_FARM_CSV: a file to write the figures to, of long runs; without it a short one only shows that it
// works.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>

#include "tests/tuner/support/farm/redis_server.h"
#include "tests/tuner/support/farm/simulated_farm.h"
#include "tuner/records/record.h"

namespace tilesmith {
namespace {

constexpr double kTrialMs = 20;

double SecondsOf(const RedisServer& redis, int workers, double trial_ms, int trials) {
  std::vector<std::unique_ptr<BackgroundProgram>> programs;
  const std::string class_name = fmt::format("c{}-{}", workers, trial_ms);
  for (int i = 0; i < workers; ++i) {
    programs.push_back(std::make_unique<BackgroundProgram>(
        std::vector<std::string>{TILESMITH_FARM_PROCESS, "worker", redis.url(), class_name,
                                 fmt::format("{}", trial_ms), fmt::format("{}w{}", class_name, i)}));
  }
  Farm farm(redis.address(), QuickTiming(), nullptr);
  const auto alive = [&] {
    const auto all = farm.Workers();
    return std::ranges::count_if(
        all, [&](const FarmWorker& worker) { return worker.alive && worker.class_name == class_name; });
  };
  while (alive() < workers) usleep(10000);
  const ProgramResult result =
      RunProgram({TILESMITH_FARM_PROCESS, "measure", redis.url(), class_name, std::to_string(trials)});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  for (const auto& program : programs) program->Signal(SIGTERM);
  for (const auto& program : programs) EXPECT_EQ(program->Wait().exit_code, 0);
  return std::atof(result.out.c_str());
}

TEST(FarmScaling, TrialsASecondOfOneTwoAndEightWorkers) {
  if (!RedisServer::IsInstalled()) GTEST_SKIP() << "redis-server is not installed";
  const RedisServer redis;
  const char* const path = std::getenv("TILESMITH_FARM_CSV");
  const int trials_each = path == nullptr ? 10 : 400;
  std::string csv =
      "workers,trials,trial_seconds,seconds,trials_per_second,share_of_ideal,overhead_seconds\n";
  for (const auto& [workers, trial_ms] : {std::pair(1, kTrialMs), {2, kTrialMs}, {8, kTrialMs}, {1, 0.0}}) {
    const int trials = trials_each * workers;
    const double seconds = SecondsOf(redis, workers, trial_ms, trials);
    ASSERT_GT(seconds, 0);
    const double each = seconds * workers / trials;
    csv += fmt::format("{},{},{},{:.4f},{:.2f},{:.4f},{:.6f}\n", workers, trials, trial_ms * 1e-3, seconds,
                       trials / seconds, trial_ms * 1e-3 / each, each - trial_ms * 1e-3);
  }
  std::printf("%s", csv.c_str());
  if (path != nullptr) {
    WriteFile(path, fmt::format(
                        "# title: Trials a second of a farm\n# machine: {}, {} cores\n# date: {}\n"
                        "# command: TILESMITH_FARM_CSV=farm.csv build/tests/tuner_tests "
                        "--gtest_filter='FarmScaling.*'\n"
                        "# note: Simulated trials, which sleep; workers, coordinator and Redis are processes "
                        "of one machine. Of trials of 0 s all is overhead.\n",
                        DetectCpu().model, DetectCpu().cores, UtcNow().substr(0, 10)) +
                        csv);
  }
}

}  // namespace
}  // namespace tilesmith
