// A farm whose processes are killed at random moments: workers, the coordinator and Redis, by SIGKILL, and a
// Redis that loses all it has. Trials are simulated and sleep, so all of it takes next to no core.
//
// TILESMITH_CHAOS_KILLS: how many, in as many tunings as they take (default 8). TILESMITH_CHAOS_SEED: of the
// moments.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <optional>

#include "layouts/measure/clock.h"
#include "tests/support/random.h"
#include "tests/tuner/support/farm/redis_server.h"
#include "tests/tuner/support/farm/simulated_farm.h"
#include "tuner/records/log.h"

namespace tilesmith {
namespace {

constexpr int kWorkers = 4;
constexpr double kMaxSeconds = 120;  // of a tuning, whatever happens to it

int64_t FromEnvironment(const char* name, int64_t fallback) {
  const char* const text = std::getenv(name);
  return text == nullptr ? fallback : std::atoll(text);
}

std::unique_ptr<BackgroundProgram> Start(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), TILESMITH_FARM_PROCESS);
  return std::make_unique<BackgroundProgram>(arguments);
}

bool HasEnded(const BackgroundProgram& program) {
  siginfo_t info = {};
  return waitid(P_PID, static_cast<id_t>(program.pid()), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid == program.pid();
}

void Kill(std::unique_ptr<BackgroundProgram>& program) {
  program->Signal(SIGKILL);
  program->Wait();
  program.reset();
}

struct Tally {
  int workers = 0, coordinators = 0, servers = 0, flushes = 0, tunings = 0, lost = 0;
  int64_t records = 0;
  int kills() const { return workers + coordinators + servers + flushes; }
};

class Chaos {
 public:
  Chaos(uint64_t seed, Tally& tally) : random_(seed), seed_(seed), tally_(tally) {}

  // A tuning of all configs, with at most so many kills.
  void Tune(int kills) {
    for (int i = 0; i < kWorkers; ++i) workers_.push_back(StartWorker());
    coordinator_ = StartCoordinator();
    const double end = NowSeconds() + kMaxSeconds;
    double next = NowSeconds() + Pause();
    for (ProgramResult result;;) {
      ASSERT_LT(NowSeconds(), end) << "it does not end by itself";
      if (HasEnded(*coordinator_)) {
        result = coordinator_->Wait();
        ASSERT_EQ(result.exit_code, 0) << result.err;
        answer_ = result.out;
        // What was lost with its workers is tried once more, as after any --resume.
        if (CountLost() == 0 || ++extra_ > 3) break;
        coordinator_ = StartCoordinator();
      }
      if (kills > 0 && NowSeconds() >= next) {
        KillSomething();
        --kills;
        next = NowSeconds() + Pause();
      }
      usleep(2000);
    }
    ++tally_.tunings;
    Check();
  }

 private:
  std::unique_ptr<BackgroundProgram> StartWorker() {
    return Start({"worker", redis_.url(), "fast", "60", fmt::format("w{}", ++workers_started_)});
  }
  std::unique_ptr<BackgroundProgram> StartCoordinator() {
    return Start({"tune", redis_.url(), "fast", log_path(), std::to_string(seed_)});
  }
  std::string log_path() const { return directory_.File("log.jsonl"); }
  double Pause() { return static_cast<double>(random_.Integer(20, 500)) * 1e-3; }

  void KillSomething() {
    const int64_t what = random_.Integer(0, 9);
    if (what < 5) {
      auto& victim = workers_[static_cast<size_t>(random_.Integer(0, kWorkers - 1))];
      Kill(victim);
      victim = StartWorker();
      ++tally_.workers;
    } else if (what < 7) {
      if (HasEnded(*coordinator_)) return;
      Kill(coordinator_);
      coordinator_ = StartCoordinator();
      ++tally_.coordinators;
    } else if (what < 9) {
      redis_.Kill();
      usleep(static_cast<useconds_t>(random_.Integer(0, 300)) * 1000);
      redis_.Start();
      ++tally_.servers;
    } else {
      redis_.Call({"FLUSHALL"});
      ++tally_.flushes;
    }
  }

  // Configs that have no record but of a lost worker.
  int CountLost() const {
    std::map<std::string, bool> done;
    for (const Record& record : ReadLog(log_path()).records)
      done[record.config.ToString()] |= record.status != TrialStatus::kWorkerLost;
    int lost = 0;
    for (const auto& [config, is_done] : done) lost += !is_done;
    return lost;
  }

  // Each config was measured once, and the best is the one that it would have been.
  void Check() {
    const FakeTemplate fake;
    const ConfigSpace space = fake.Space(FarmSession().workload, FarmTarget());
    std::map<std::string, double> expected;
    std::string best;
    for (uint64_t i = 0; i < space.size(); ++i) {
      const Config config = space.At(i);
      if (!space.WhyInvalid(config).empty()) continue;
      expected[config.ToString()] = fake.Seconds(config);
      if (best.empty() || fake.Seconds(config) < expected[best]) best = config.ToString();
    }
    const LogContents log = ReadLog(log_path());
    EXPECT_TRUE(log.problems.empty());
    std::map<std::string, int> measured;
    for (const Record& record : log.records) {
      if (record.status == TrialStatus::kWorkerLost) {
        ++tally_.lost;
        continue;
      }
      EXPECT_EQ(record.status, TrialStatus::kOk) << record.detail;
      EXPECT_EQ(record.seconds, expected[record.config.ToString()]);
      ++measured[record.config.ToString()];
      ++tally_.records;
    }
    EXPECT_EQ(measured.size(), expected.size()) << "of all configs";
    for (const auto& [config, times] : measured) EXPECT_EQ(times, 1) << config;
    EXPECT_TRUE(answer_.starts_with(best + " ")) << answer_ << " instead of " << best;
  }

  TestRandom random_;
  const uint64_t seed_;
  Tally& tally_;
  RedisServer redis_;
  const TemporaryDirectory directory_;
  std::vector<std::unique_ptr<BackgroundProgram>> workers_;
  std::unique_ptr<BackgroundProgram> coordinator_;
  std::string answer_;
  int workers_started_ = 0, extra_ = 0;
};

TEST(FarmChaos, KillsCostNoTrialAndNoTrialTwice) {
  if (!RedisServer::IsInstalled()) GTEST_SKIP() << "redis-server is not installed";
  const auto kills = static_cast<int>(FromEnvironment("TILESMITH_CHAOS_KILLS", 8));
  const auto seed = static_cast<uint64_t>(FromEnvironment("TILESMITH_CHAOS_SEED", 1));
  Tally tally;
  for (uint64_t round = 0; tally.kills() < kills && !HasFatalFailure(); ++round) {
    SCOPED_TRACE(fmt::format("TILESMITH_CHAOS_SEED={}", seed + round));
    Chaos(seed + round, tally).Tune(kills - tally.kills());
  }
  std::printf(
      "%d kills (%d of workers, %d of coordinators, %d of Redis, %d times emptied) in %d tunings of %lld "
      "trials; %d trials were given up as worker_lost\n",
      tally.kills(), tally.workers, tally.coordinators, tally.servers, tally.flushes, tally.tunings,
      static_cast<long long>(tally.records), tally.lost);
}

// SIGTERM is no kill: what a worker has taken it finishes or gives back.
TEST(FarmChaos, AWorkerThatIsToldToStopLeavesNothingBehind) {
  if (!RedisServer::IsInstalled()) GTEST_SKIP() << "redis-server is not installed";
  RedisServer redis;
  auto first = Start({"worker", redis.url(), "fast", "30", "first"});
  Farm farm(redis.address(), QuickTiming(), nullptr);
  while (farm.Workers().empty()) usleep(10000);
  auto coordinator = Start({"measure", redis.url(), "fast", "30"});
  while (farm.Workers()[0].trials == 0) usleep(10000);
  auto second = Start({"worker", redis.url(), "fast", "1", "second"});
  first->Signal(SIGTERM);
  EXPECT_EQ(first->Wait().exit_code, 0);
  for (const FarmWorker& worker : farm.Workers()) EXPECT_NE(worker.id, "first") << "it has left";
  const ProgramResult result = coordinator->Wait();
  EXPECT_EQ(result.exit_code, 0) << result.err;
  second->Signal(SIGTERM);
  EXPECT_EQ(second->Wait().exit_code, 0);
  EXPECT_TRUE(farm.Workers().empty());
}

}  // namespace
}  // namespace tilesmith
