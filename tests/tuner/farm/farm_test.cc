// A farm with a real Redis: who gets a trial, whose answer counts, what is refused, what survives.
#include "tuner/farm/farm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "layouts/base/error.h"
#include "layouts/measure/clock.h"
#include "tests/support/test_cpu.h"
#include "tests/tuner/support/farm/redis_server.h"
#include "tests/tuner/support/farm/simulated_farm.h"
#include "tests/tuner/support/faulty_config.h"
#include "tuner/measure/pooled_trials.h"
#include "tuner/measure/process_measurer.h"
#include "tuner/measure/protocol.h"
#include "tuner/measure/run_trials.h"

namespace tilesmith {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TrialResult OneMillisecond() {
  TrialResult result;
  result.sample_seconds = {1e-3};
  result.seconds = 1e-3;
  return result;
}

class FarmTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!RedisServer::IsInstalled()) GTEST_SKIP() << "redis-server is not installed";
    redis_ = std::make_unique<RedisServer>();
    farm_ = std::make_unique<Farm>(redis_->address(), QuickTiming(), nullptr);
  }

  // A trial as a coordinator of the test's own asks for it.
  static FarmTrial Trial(int number, const MeasureSession& session = FarmSession()) {
    TrialRequest request{"fake", FakeTemplate().Space(session.workload, session.cpu).At(0)};
    return {FarmTrialId(session, request, number), "test", MessageToText(SessionMessage{session}),
            MessageToText(TrialMessage{static_cast<Ticket>(number), request})};
  }
  std::string Stream() const { return Farm::ClassStream("fast"); }
  // Until it has taken one.
  FarmDelivery TakeOne(const FarmWorker& worker) const {
    for (const double end = NowSeconds() + 20; NowSeconds() < end;) {
      const auto taken = farm_->Take(worker, 0.1);
      if (!taken.empty()) return taken.front();
    }
    ADD_FAILURE() << "nothing to take";
    return {};
  }
  FarmAnswer AnswerBy(const FarmWorker& worker, const FarmTrial& trial) const {
    return {trial.id, worker.id, MessageToText(ReadyMessage{worker.target}),
            MessageToText(ResultMessage{1, OneMillisecond()})};
  }
  // Until the test's coordinator has an answer.
  FarmAnswer AwaitAnswer() {
    for (const double end = NowSeconds() + 20; NowSeconds() < end;) {
      for (const auto& [entry, fields] : farm_->Answers("test", read_, 0.1)) {
        read_ = entry;
        return FarmAnswerFrom(fields);
      }
    }
    ADD_FAILURE() << "no answer";
    return {};
  }
  void AwaitWorkers(size_t count) const {
    for (const double end = NowSeconds() + 20; NowSeconds() < end && Alive() != count;) usleep(10000);
    EXPECT_EQ(Alive(), count);
  }
  size_t Alive() const {
    const auto workers = farm_->Workers();
    return static_cast<size_t>(std::ranges::count(workers, true, &FarmWorker::alive));
  }

  std::unique_ptr<RedisServer> redis_;
  std::unique_ptr<Farm> farm_;
  std::string read_ = "0";
};

// All of a space, each result its config's.
void ExpectAllMeasured(Measurer& measurer, int trials) {
  const FakeTemplate fake;
  const ConfigSpace space = fake.Space(FarmSession().workload, FarmTarget());
  int asked = 0;
  std::map<size_t, int> answers;
  RunTrials(
      measurer,
      [&]() -> std::optional<TrialRequest> {
        if (asked == trials) return std::nullopt;
        return TrialRequest{"fake", space.At(static_cast<uint64_t>(asked++) % space.size())};
      },
      [&](size_t i, const TrialResult& result) {
        ++answers[i];
        EXPECT_EQ(result.status, TrialStatus::kOk) << result.detail;
        EXPECT_EQ(result.seconds, fake.Seconds(space.At(i % space.size())));
        EXPECT_NE(result.worker, "");
      });
  EXPECT_EQ(answers.size(), static_cast<size_t>(trials));
  for (const auto& [i, count] : answers) EXPECT_EQ(count, 1) << i;
}

TEST_F(FarmTest, TheFirstAnswerCountsAndTakesTheTrialAway) {
  const FarmWorker a = FarmWorkerOf("a"), b = FarmWorkerOf("b");
  farm_->Take(a, 0.01);  // makes the group
  EXPECT_TRUE(farm_->Submit(Stream(), Trial(1)));
  EXPECT_TRUE(farm_->IsOpen(Trial(1)));
  const FarmDelivery taken = TakeOne(a);
  EXPECT_EQ(FarmTrialFrom(taken.fields).id, Trial(1).id);
  EXPECT_TRUE(farm_->Take(b, 0.05).empty()) << "one has it";
  EXPECT_TRUE(farm_->Commit(taken, "test", AnswerBy(a, Trial(1))));
  EXPECT_FALSE(farm_->Commit(taken, "test", AnswerBy(b, Trial(1)))) << "the second";
  EXPECT_EQ(AwaitAnswer().worker, "a");
  EXPECT_TRUE(farm_->Answers("test", read_, 0).empty());
  EXPECT_FALSE(farm_->IsOpen(Trial(1)));
  EXPECT_EQ(redis_->Call({"XLEN", Stream()}).integer, 0);
}

TEST_F(FarmTest, AWorkersTrialsAreClaimedOnlyWhenItsHeartNoLongerBeats) {
  const FarmWorker a = FarmWorkerOf("a"), b = FarmWorkerOf("b");
  farm_->Take(a, 0.01);
  farm_->Submit(Stream(), Trial(1));
  const FarmDelivery taken = TakeOne(a);
  const double dead = QuickTiming().dead_seconds;
  for (const double end = NowSeconds() + 2 * dead; NowSeconds() < end;) {
    EXPECT_EQ(farm_->Announce(a, {{taken}}), std::nullopt);
    EXPECT_EQ(farm_->Reclaim(b, Stream()), std::nullopt) << "it is slow, not dead";
    usleep(50000);
  }
  usleep(static_cast<useconds_t>((dead + 0.1) * 1e6));
  const auto claimed = farm_->Reclaim(b, Stream());
  ASSERT_TRUE(claimed.has_value());
  EXPECT_EQ(claimed->times, 2);
  EXPECT_EQ(claimed->fields, taken.fields);
  farm_->Announce(a, {{taken}});  // it was not dead, but what is b's stays b's
  EXPECT_EQ(farm_->Reclaim(a, Stream()), std::nullopt);
}

TEST_F(FarmTest, ATrialThatTakesItsWorkersDownIsLostAfterThree) {
  farm_->Submit(Stream(), Trial(1));
  for (const char* name : {"a", "b", "c"}) {
    const FarmWorker worker = FarmWorkerOf(name);
    const auto claimed = farm_->Reclaim(worker, Stream());
    if (claimed) {
      EXPECT_GT(claimed->times, 1);
    } else {
      TakeOne(worker);
    }
    usleep(static_cast<useconds_t>((QuickTiming().dead_seconds + 0.05) * 1e6));
  }
  ThreadedWorker worker(redis_->address(), FarmWorkerOf("d"), 0.001);
  const FarmAnswer answer = AwaitAnswer();
  const auto message = std::get<ResultMessage>(MessageFromText(answer.answer));
  EXPECT_EQ(message.result.status, TrialStatus::kWorkerLost);
  EXPECT_THAT(message.result.detail, HasSubstr("3 workers"));
  worker.Stop();
  EXPECT_EQ(worker.trials(), 0);
}

TEST_F(FarmTest, StreamsAreBounded) {
  for (int i = 0; i < kMaxQueued; ++i) ASSERT_TRUE(farm_->Submit(Stream(), Trial(i)));
  EXPECT_FALSE(farm_->Submit(Stream(), Trial(kMaxQueued)));
  EXPECT_FALSE(farm_->IsOpen(Trial(kMaxQueued)));
  farm_->End("test");
  // What nobody waits for costs a look each.
  ThreadedWorker worker(redis_->address(), FarmWorkerOf("a"), 1);
  for (const double end = NowSeconds() + 30;
       NowSeconds() < end && redis_->Call({"XLEN", Stream()}).integer > 0;)
    usleep(10000);
  EXPECT_EQ(redis_->Call({"XLEN", Stream()}).integer, 0);
  worker.Stop();
  EXPECT_EQ(worker.trials(), 0);
}

TEST_F(FarmTest, ManyTrialsOnManyWorkersAreAnsweredOnceEach) {
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

TEST_F(FarmTest, TrialsThatAreKeptTogetherAreOneMachines) {
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

TEST_F(FarmTest, WhenTheirMachineIsLostTheyBeginAgainOnAnother) {
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

TEST_F(FarmTest, AnEmptiedRedisCostsOnlyRepeatedTrials) {
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

TEST_F(FarmTest, AKilledRedisThatComesBackIsWaitedFor) {
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

// What the test writes is no message at all, or a message that asks for what it should not.
TEST_F(FarmTest, AHostileMessageCostsAMessage) {
  ThreadedWorker worker(redis_->address(), FarmWorkerOf("a"), 0.001);
  AwaitWorkers(1);
  const auto add = [&](std::vector<std::string> fields) {
    std::vector<std::string> words = {"XADD", Stream(), "*"};
    words.insert(words.end(), fields.begin(), fields.end());
    redis_->Call(words);
  };
  add({"nonsense", "1"});
  add({"id", "1", "from", "../../x", "session", "s", "trial", "t"});
  add({"id", "1", "from", "c", "session", std::string(100000, 'x'), "trial", "t"});
  int expected = 3;
  std::vector<FarmTrial> hostile;
  const auto change = [&](auto edit) {
    MeasureSession session = FarmSession();
    edit(session);
    hostile.push_back(Trial(100 + expected++, session));
  };
  hostile.push_back(Trial(50));
  hostile.back().session = "\xff\xfe{";
  hostile.push_back(Trial(51));
  hostile.back().trial = R"({"trial":{"template":"direct"},"ticket":-1})";
  expected += 2;
  change([](MeasureSession& s) { s.cpu.version = "9.9"; });
  change([](MeasureSession& s) { s.cpu.model = "Other CPU"; });
  change([](MeasureSession& s) { s.conditions.threads = 1000; });
  change([](MeasureSession& s) { s.limits.run_seconds = 1e6; });
  for (const FarmTrial& trial : hostile) farm_->Submit(Stream(), trial);
  std::vector<std::string> answers;
  for (size_t i = 0; i < hostile.size(); ++i) {
    const auto message = MessageFromText(AwaitAnswer().answer);
    const auto* error = std::get_if<ErrorMessage>(&message);
    ASSERT_NE(error, nullptr);
    answers.push_back(error->why);
  }
  EXPECT_THAT(answers, testing::Contains(HasSubstr("tilesmith 9.9")));
  EXPECT_THAT(answers, testing::Contains(HasSubstr("Other CPU")));
  EXPECT_THAT(answers, testing::Contains(HasSubstr("1000 threads")));
  FarmMeasurer measurer(FarmRequestOf(redis_->address()));
  measurer.Begin(FarmSession());
  ExpectAllMeasured(measurer, 20);
  worker.Stop();
  EXPECT_EQ(worker.trials(), 20) << "and it serves on";
}

TEST_F(FarmTest, AnswersThatAreNoneAreAskedForAgainAndThenLost) {
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

TEST_F(FarmTest, AClassIsOfOneKindOfMachine) {
  ThreadedWorker first(redis_->address(), FarmWorkerOf("a"), 0.001);
  AwaitWorkers(1);
  FarmWorker other = FarmWorkerOf("b");
  other.target.version = "9.9";
  ThreadedWorker second(redis_->address(), other, 0.001);
  for (const double end = NowSeconds() + 10; NowSeconds() < end && Alive() < 2;) {
    usleep(20000);
    if (NowSeconds() > end - 9.5) break;
  }
  second.Stop();
  EXPECT_THAT(second.why_ended(), HasSubstr("tilesmith 9.9"));
  EXPECT_THAT(second.why_ended(), HasSubstr("--class"));
  MeasureSession session = FarmSession();
  session.cpu.version = "9.9";
  FarmMeasurer measurer(FarmRequestOf(redis_->address()));
  try {
    measurer.Begin(session);
    ADD_FAILURE() << "begun";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kEnvironment);
    EXPECT_THAT(error.what(), HasSubstr("asked for cpu Farm CPU 3000 (avx2, tilesmith 9.9)"));
  }
  first.Stop();
  ThreadedWorker third(redis_->address(), other, 0.001);
  AwaitWorkers(1);
  EXPECT_EQ(farm_->Workers()[0].target.version, "9.9") << "who is last leaves the class to others";
}

TEST_F(FarmTest, TwoCoordinatorsShareFairly) {
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

TEST_F(FarmTest, PasswordsAreAskedForAndNeverTold) {
  RedisServer closed("pa55-word");
  FarmAddress address = closed.address();
  const auto why = [](const FarmAddress& to) {
    try {
      Farm(to, QuickTiming(), nullptr).Workers();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kEnvironment);
      return std::string(error.what());
    }
    return std::string("no error");
  };
  EXPECT_EQ(why(address), "no error");
  address.password = "wr0ng-word";
  EXPECT_THAT(why(address), HasSubstr("REDISCLI_AUTH"));
  EXPECT_THAT(why(address), Not(HasSubstr("wr0ng-word")));
  address.password = "";
  EXPECT_THAT(why(address), HasSubstr("NOAUTH"));
  address.socket_path += ".none";
  EXPECT_THAT(why(address), HasSubstr(".none"));
}

TEST_F(FarmTest, WithoutWorkersItIsOverWhenThePatienceIs) {
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

// Real trials, in a real child process: a trial's time begins when it begins.
TEST_F(FarmTest, TimeOutsCountFromTheStartOfExecution) {
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
  const FarmWorker listed = farm_->Workers().at(0);
  EXPECT_EQ(listed.trials, 5);
  EXPECT_EQ(listed.failures, 3);
  stop = true;
  worker.join();
}

}  // namespace
}  // namespace tilesmith
