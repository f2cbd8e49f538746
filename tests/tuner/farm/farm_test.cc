// A farm with a real Redis: who gets a trial, whose answer counts, what is refused.
#include "tuner/farm/farm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "layouts/base/error.h"
#include "tests/tuner/support/farm/farm_fixture.h"

namespace tilesmith {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

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
  const double dead = Impatient().dead_seconds;
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
    usleep(static_cast<useconds_t>((Impatient().dead_seconds + 0.05) * 1e6));
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
  EXPECT_THAT(second.why_ended(), HasSubstr("give it another class"));
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

// Real trials, in a real child process: a trial's time begins when it begins.
}  // namespace
}  // namespace tilesmith
