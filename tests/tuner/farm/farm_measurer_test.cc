// A coordinator of a farm with a real Redis: every trial answered once, whatever becomes of workers and
// Redis.
#include "tuner/farm/farm_measurer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <thread>

#include "layouts/base/error.h"
#include "tests/support/test_cpu.h"
#include "tests/tuner/support/farm/farm_fixture.h"
#include "tests/tuner/support/faulty_config.h"
#include "tuner/measure/measurer.h"
#include "tuner/measure/process_measurer.h"

namespace tilesmith {
namespace {

using ::testing::HasSubstr;

using FarmMeasurerTest = FarmTest;

TEST_F(FarmMeasurerTest, ManyTrialsOnManyWorkersAreAnsweredOnceEach) {
  ThreadedWorker a(redis_->address(), FarmWorkerOf("a"), 0.002),
      b(redis_->address(), FarmWorkerOf("b"), 0.002), c(redis_->address(), FarmWorkerOf("c"), 0.002);
  AwaitWorkers(3);
  int synced = 0;
  {
    FarmRequest request = FarmRequestOf(redis_->address());
    request.sync = [&] { ++synced; };
    FarmMeasurer measurer(std::move(request));
    measurer.Begin(FarmSession());
    EXPECT_EQ(measurer.Capacity(), 6);
    ExpectAllMeasured(measurer, 300);
  }
  EXPECT_GE(synced, 300 / 64);
  for (ThreadedWorker* worker : {&a, &b, &c}) {
    worker->Stop();
    EXPECT_GT(worker->trials(), 30) << "each has a share";
  }
  EXPECT_EQ(a.trials() + b.trials() + c.trials(), 300);
  for (const RedisReply& key : redis_->Call({"KEYS", "tilesmith:farm1:*"}).elements) {
    const bool of_class = key.text == Stream();
    EXPECT_TRUE(of_class) << "left behind: " << key.text;
  }
  EXPECT_EQ(redis_->Call({"XLEN", Stream()}).integer, 0);
}

TEST_F(FarmMeasurerTest, TrialsThatAreKeptTogetherAreOneMachines) {
  ThreadedWorker a(redis_->address(), FarmWorkerOf("a"), 0.005),
      b(redis_->address(), FarmWorkerOf("b"), 0.005);
  AwaitWorkers(2);
  FarmMeasurer measurer(FarmRequestOf(redis_->address()));
  measurer.Begin(FarmSession());
  const ConfigSpace space = FakeTemplate().Space(FarmSession().workload, FarmTarget());
  std::vector<TrialRequest> requests;
  for (uint64_t i = 0; i < 10; ++i) requests.push_back({"fake", space.At(i)});
  const auto results = MeasureInTurns(requests, 3, measurer, [] { return false; });
  for (const TrialResult& result : results) {
    EXPECT_EQ(result.sample_seconds.size(), 15u);
    EXPECT_EQ(result.worker, results[0].worker);
  }
  a.Stop();
  b.Stop();
  EXPECT_EQ(std::max(a.trials(), b.trials()), 30);
  EXPECT_EQ(std::min(a.trials(), b.trials()), 0);
}

TEST_F(FarmMeasurerTest, WhenTheirMachineIsLostTheyBeginAgainOnAnother) {
  auto a = std::make_unique<ThreadedWorker>(redis_->address(), FarmWorkerOf("a"), 0.05);
  AwaitWorkers(1);
  FarmMeasurer measurer(FarmRequestOf(redis_->address()));
  measurer.Begin(FarmSession());
  const ConfigSpace space = FakeTemplate().Space(FarmSession().workload, FarmTarget());
  std::vector<TrialRequest> requests;
  for (uint64_t i = 0; i < 6; ++i) requests.push_back({"fake", space.At(i)});
  std::unique_ptr<ThreadedWorker> b;
  int asked = 0;
  const auto results = MeasureInTurns(requests, 2, measurer, [&] {
    if (++asked == 8) {  // in the second round
      b = std::make_unique<ThreadedWorker>(redis_->address(), FarmWorkerOf("b"), 0.01);
      a.reset();
    }
    return false;
  });
  ASSERT_NE(b, nullptr);
  for (const TrialResult& result : results) {
    EXPECT_EQ(result.worker, "b");
    EXPECT_EQ(result.sample_seconds.size(), 10u) << "of b alone";
  }
}

TEST_F(FarmMeasurerTest, AnEmptiedRedisCostsOnlyRepeatedTrials) {
  ThreadedWorker a(redis_->address(), FarmWorkerOf("a"), 0.01), b(redis_->address(), FarmWorkerOf("b"), 0.01);
  AwaitWorkers(2);
  FarmMeasurer measurer(FarmRequestOf(redis_->address()));
  measurer.Begin(FarmSession());
  std::thread vandal([&] {
    for (int i = 0; i < 3; ++i) {
      usleep(150000);
      redis_->Call({"FLUSHALL"});
    }
  });
  ExpectAllMeasured(measurer, 150);
  vandal.join();
}

TEST_F(FarmMeasurerTest, AKilledRedisThatComesBackIsWaitedFor) {
  ThreadedWorker a(redis_->address(), FarmWorkerOf("a"), 0.01), b(redis_->address(), FarmWorkerOf("b"), 0.01);
  AwaitWorkers(2);
  FarmMeasurer measurer(FarmRequestOf(redis_->address()));
  measurer.Begin(FarmSession());
  std::thread vandal([&] {
    usleep(200000);
    redis_->Kill();
    usleep(300000);
    redis_->Start();
  });
  ExpectAllMeasured(measurer, 100);
  vandal.join();
}

TEST_F(FarmMeasurerTest, AnswersThatAreNoneAreAskedForAgainAndThenLost) {
  farm_->Announce(FarmWorkerOf("liar"), {});
  std::vector<std::string> warnings;
  FarmRequest request = FarmRequestOf(redis_->address());
  request.on_warning = [&](const std::string& text) { warnings.push_back(text); };
  FarmMeasurer measurer(std::move(request));
  measurer.Begin(FarmSession());
  measurer.Submit({"fake", FakeTemplate().Space(FarmSession().workload, FarmTarget()).At(0)});
  StopFlag stop = false;
  std::thread liar([&] {
    Farm farm(redis_->address(), QuickTiming(), nullptr);
    const FarmWorker self = FarmWorkerOf("liar");
    Target other = self.target;
    other.model = "Other CPU";
    for (int lies = 0; lies < 3 && !stop;) {
      farm.Announce(self, {});
      for (const FarmDelivery& taken : farm.Take(self, 0.05)) {
        const FarmTrial trial = FarmTrialFrom(taken.fields);
        FarmAnswer answer = AnswerBy(self, trial);
        if (lies == 0) answer.answer = "{\"result\":{}}";
        if (lies == 1) answer.ready = MessageToText(ReadyMessage{other});
        if (lies == 2) answer.answer = MessageToText(ResultMessage{999, OneMillisecond()});
        farm.Commit(taken, trial.coordinator, answer);
        ++lies;
      }
    }
  });
  const TrialResult result = measurer.Next().second;
  stop = true;
  liar.join();
  EXPECT_EQ(result.status, TrialStatus::kWorkerLost);
  EXPECT_EQ(warnings.size(), 3u);
  EXPECT_THAT(warnings, testing::Contains(HasSubstr("Other CPU")));
}

TEST_F(FarmMeasurerTest, TwoCoordinatorsShareFairly) {
  ThreadedWorker a(redis_->address(), FarmWorkerOf("a"), 0.004),
      b(redis_->address(), FarmWorkerOf("b"), 0.004);
  AwaitWorkers(2);
  // Both ask without end; when one has all of its answers, how many has the other?
  constexpr int kTrials = 200;
  std::atomic<int> done[2] = {0, 0};
  std::atomic<int> of_other[2] = {0, 0};
  const auto coordinate = [&](int self) {
    FarmMeasurer measurer(FarmRequestOf(redis_->address()));
    MeasureSession session = FarmSession();
    session.seed = static_cast<uint64_t>(self + 1);
    measurer.Begin(session);
    const ConfigSpace space = FakeTemplate().Space(session.workload, session.cpu);
    int asked = 0;
    RunTrials(
        measurer,
        [&]() -> std::optional<TrialRequest> {
          if (asked == kTrials) return std::nullopt;
          return TrialRequest{"fake", space.At(static_cast<uint64_t>(asked++))};
        },
        [&](size_t, const TrialResult&) {
          // From the time on that both have begun.
          if (++done[self] == kTrials) of_other[self] = done[1 - self].load();
        });
  };
  std::thread other([&] { coordinate(1); });
  coordinate(0);
  other.join();
  const int behind = std::min(of_other[0].load(), of_other[1].load());
  EXPECT_GT(behind, kTrials / 2) << "neither starves: when the first was done, the other had so many";
}

TEST_F(FarmMeasurerTest, WithoutWorkersItIsOverWhenThePatienceIs) {
  FarmRequest request = FarmRequestOf(redis_->address());
  request.timing.patience_seconds = 0.3;
  FarmMeasurer measurer(std::move(request));
  try {
    measurer.Begin(FarmSession());
    ADD_FAILURE() << "begun";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kEnvironment);
    EXPECT_THAT(error.what(), HasSubstr("class fast has had no worker"));
  }
  StopFlag stop = true;
  request = FarmRequestOf(redis_->address());
  request.stop = &stop;
  FarmMeasurer stopped(std::move(request));
  EXPECT_THROW(stopped.Begin(FarmSession()), Error) << "and when it is stopped";
}

TEST_F(FarmMeasurerTest, TimeOutsCountFromTheStartOfExecution) {
  StopFlag stop = false;
  FarmService service{redis_->address(), QuickTiming(), FarmWorkerOf("a"), {}, &stop};
  service.worker.target = TestCpu();
  std::thread worker([&] {
    ProcessMeasurer measurer({TILESMITH_TEST_WORKER});
    ServeFarm(service, measurer);
  });
  AwaitWorkers(1);
  FarmMeasurer measurer(FarmRequestOf(redis_->address()));
  MeasureSession session;
  session.workload = ParseWorkload("mb1ic8ih6oc8oh6kh1");
  session.cpu = TestCpu();
  session.sampling = {.min_samples = 2, .max_samples = 4, .seconds = 0.01};
  session.limits.run_seconds = 1;
  measurer.Begin(session);
  // In the queue together for longer than any may run.
  std::map<Ticket, Fault> asked;
  for (const Fault fault :
       {Fault::kRunHangs, Fault::kRunHangs, Fault::kNone, Fault::kRunCrashes, Fault::kNone})
    asked[measurer.Submit(FaultRequest(fault))] = fault;
  for (size_t i = 0; i < asked.size(); ++i) {
    const auto [ticket, result] = measurer.Next();
    const Fault fault = asked.at(ticket);
    const TrialStatus expected = fault == Fault::kRunHangs     ? TrialStatus::kRunTimeout
                                 : fault == Fault::kRunCrashes ? TrialStatus::kRunCrash
                                                               : TrialStatus::kOk;
    EXPECT_EQ(result.status, expected) << result.detail;
  }
  FarmWorker listed = farm_->Workers().at(0);  // by its last heartbeat
  for (const double end = NowSeconds() + 20; NowSeconds() < end && listed.trials < 5;) {
    usleep(20000);
    listed = farm_->Workers().at(0);
  }
  EXPECT_EQ(listed.trials, 5);
  EXPECT_EQ(listed.failures, 3);
  stop = true;
  worker.join();
}

}  // namespace
}  // namespace tilesmith
