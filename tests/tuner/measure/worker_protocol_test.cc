// Both sides of the protocol without a process between them.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "layouts/base/error.h"
#include "layouts/base/thread_team.h"
#include "tests/support/test_cpu.h"
#include "tests/tuner/support/faulty_config.h"
#include "tests/tuner/support/memory_transport.h"
#include "tuner/measure/worker.h"
#include "tuner/measure/worker_link.h"

namespace tilesmith {
namespace {

using ::testing::HasSubstr;
using End = LinkedTrial::End;

MeasureSession Session() {
  MeasureSession session;
  session.workload = ParseWorkload("mb1ic8ih6oc16oh6kh3ph1");
  session.cpu = TestCpu();
  session.conditions.pinned = false;
  return session;
}

TrialRequest PortableTrial() {
  return {"portable", FindConvTemplate("portable").Default(Session().workload, Session().cpu)};
}

// A worker of which all is known beforehand: it says these things and then, unless it hangs, it is gone.
class WorkerProtocolTest : public ::testing::Test {
 protected:
  void Say(const std::vector<Message>& messages) {
    for (const Message& message : messages) from_worker_->Put(MessageToText(message));
  }
  std::string StartError() {
    return ErrorOf([&] { link_.Start(); });
  }
  std::string BeginError(const MeasureSession& session = Session()) {
    return ErrorOf([&] { link_.Begin(session); });
  }
  LinkedTrial Try(const MeasureSession& session = Session()) {
    EXPECT_TRUE(link_.Start());
    EXPECT_TRUE(link_.Begin(session));
    link_.Submit(7, PortableTrial());
    return link_.Wait();
  }
  template <typename Action>
  static std::string ErrorOf(const Action& action) {
    try {
      action();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kEnvironment);
      return error.what();
    }
    return "no error";
  }

  const std::shared_ptr<MemoryQueue> from_worker_ = std::make_shared<MemoryQueue>();
  const std::shared_ptr<MemoryQueue> to_worker_ = std::make_shared<MemoryQueue>();
  MemoryTransport tuner_end_{from_worker_, to_worker_}, worker_end_{to_worker_, from_worker_};
  WorkerLink link_{tuner_end_};
};

TrialResult GoodResult() {
  TrialResult result;
  result.sample_seconds = {2e-3, 1e-3};
  result.seconds = 1e-3;
  result.error = 1e-7;
  result.build_seconds = 0.5;
  return result;
}

TEST(WorkerProtocol, MessagesAreReadAsTheyWereWritten) {
  TrialResult failed;
  failed.status = TrialStatus::kRunCrash;
  failed.detail = "two\nlines, \"quotes\" and \xff";
  TrialRequest trial = PortableTrial();
  trial.stop_above_seconds = 0.25;
  const std::vector<Message> messages = {
      ReadyMessage{TestCpu()},        SessionMessage{Session()}, AcceptedMessage{},
      ErrorMessage{"no memory"},      TrialMessage{3, trial},    RunningMessage{3},
      ResultMessage{3, GoodResult()}, ResultMessage{4, failed}};
  for (const Message& message : messages) {
    const std::string text = MessageToText(message);
    EXPECT_THAT(text, Not(HasSubstr("\n")));
    const Message again = MessageFromText(text);
    EXPECT_EQ(again.index(), message.index()) << text;
    EXPECT_EQ(MessageToText(again), text);
  }
  EXPECT_EQ(MessageToText(RunningMessage{3}), R"({"running":3})");
  EXPECT_EQ(MessageToText(AcceptedMessage{}), R"({"accepted":true})");
}

TEST(WorkerProtocol, HostileMessagesAreRefusedWithTheReason) {
  const auto why = [](const std::string& text) -> std::string {
    try {
      MessageFromText(text);
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_THAT(why(""), HasSubstr("not a JSON object"));
  EXPECT_THAT(why("[1]"), HasSubstr("not a JSON object"));
  EXPECT_THAT(why("{}"), HasSubstr("no message that is known"));
  EXPECT_THAT(why(std::string(100000, '[')), HasSubstr("not a JSON object"));
  EXPECT_THAT(why(R"({"running":-1})"), HasSubstr("\"running\" is -1"));
  EXPECT_THAT(why(R"({"ready":1})"), HasSubstr("not a JSON object"));
  EXPECT_THAT(why(R"({"ready":{"cpu":"x","isa":"avx2","cores":0}})"), HasSubstr("\"l1d_bytes\" is missing"));
  EXPECT_THAT(why(R"({"trial":{"template":"direct"},"ticket":1})"), HasSubstr("\"config\" is missing"));
  EXPECT_THAT(why(R"({"trial":{"template":"direct","config":{}}})"), HasSubstr("\"ticket\" is missing"));
  const auto result = [](const char* seconds, const char* samples, const char* status) {
    return fmt::format(R"({{"ticket":1,"result":{{"status":"{}","detail":"","samples":{},"seconds":{},)"
                       R"("early_stopped":false,"build_seconds":0}}}})",
                       status, samples, seconds);
  };
  EXPECT_EQ(why(result("1e-3", "[1e-3]", "ok")), "accepted");
  EXPECT_THAT(why(result("0", "[1e-3]", "ok")), HasSubstr("\"seconds\" is 0 in a record that is ok"));
  EXPECT_THAT(why(result("-1", "[1e-3]", "ok")), HasSubstr("\"seconds\" is -1"));
  EXPECT_THAT(why(result("1e300", "[1e-3]", "ok")), HasSubstr("\"seconds\" is 1e+300"));
  EXPECT_THAT(why(result("1e-3", "[-1]", "ok")), HasSubstr("\"samples\" is -1"));
  EXPECT_THAT(why(result("1e-3", "{\"a\":\"b\"}", "ok")), HasSubstr("\"samples\" is not a list"));
  EXPECT_THAT(why(result("0", "[]", "splendid")), HasSubstr("unknown trial status \"splendid\""));
}

TEST_F(WorkerProtocolTest, ATrialHasTheWorkersWordForItsMachine) {
  Target worker = TestCpu();
  worker.isa = Isa::kAvx512;
  worker.cores = 96;
  Say({ReadyMessage{worker}, AcceptedMessage{}, RunningMessage{7}, ResultMessage{7, GoodResult()}});
  MeasureSession session = Session();
  session.cpu.isa = Isa::kPortable;
  const LinkedTrial trial = Try(session);
  ASSERT_EQ(trial.end, End::kResult);
  EXPECT_TRUE(trial.running);
  EXPECT_EQ(trial.result.sample_seconds, GoodResult().sample_seconds);
  EXPECT_EQ(trial.result.target, CapIsa(worker, Isa::kPortable)) << "on the instructions it was asked for";
}

TEST_F(WorkerProtocolTest, AnotherMachineIsRefusedByName) {
  Target asked = TestCpu();
  asked.model = "Test CPU 3000";
  asked.isa = Isa::kAvx2;
  MeasureSession session = Session();
  session.cpu = asked;
  const auto why = [&](const Target& target) { return WhyNotMeasuredOn(target, session); };
  EXPECT_EQ(why(asked), "");
  Target other = asked;
  other.cores = 1024;
  EXPECT_EQ(why(other), "") << "threads are the session's";
  other.isa = Isa::kAvx512;
  EXPECT_EQ(why(other), "") << "has what is asked for";
  other.isa = Isa::kPortable;
  EXPECT_THAT(why(other), HasSubstr("Test CPU 3000 (portable,"));
  other = asked;
  other.version = "0.0.1";
  EXPECT_THAT(why(other), HasSubstr("tilesmith 0.0.1"));
  other = asked;
  other.device = "abacus";
  EXPECT_THAT(why(other), HasSubstr("abacus Test CPU 3000"));
  other = asked;
  other.model = "Test CPU 4000";
  Say({ReadyMessage{other}, AcceptedMessage{}});
  ASSERT_TRUE(link_.Start());
  EXPECT_THAT(BeginError(session), HasSubstr("is cpu Test CPU 4000 (avx2, "));
  std::string text;
  EXPECT_EQ(to_worker_->Take(text, 0), Transport::Receipt::kTimeout) << "it is not even asked: " << text;
}

TEST_F(WorkerProtocolTest, WhatIsNoWorkerIsSaid) {
  from_worker_->Put("Segmentation fault");
  EXPECT_THAT(StartError(), HasSubstr("is none, it says \"Segmentation fault\""));
  Say({AcceptedMessage{}});
  EXPECT_THAT(StartError(), HasSubstr("is none, it says \"{\"accepted\":true}\""));
}

TEST_F(WorkerProtocolTest, ARefusedSessionIsSaid) {
  Say({ReadyMessage{TestCpu()}, ErrorMessage{"no memory"}, RunningMessage{1}});
  ASSERT_TRUE(link_.Start());
  EXPECT_THAT(BeginError(), HasSubstr("cannot measure mb1ic8ih6oc16oh6kh3ph1: no memory"));
  EXPECT_THAT(BeginError(), HasSubstr("garbled answer"));
  from_worker_->Put("{");
  EXPECT_THAT(BeginError(), HasSubstr("garbled answer \"{\""));
}

TEST_F(WorkerProtocolTest, ADeadWorkerIsNoticedAtEveryStep) {
  from_worker_->Close();
  EXPECT_FALSE(link_.Start());
  EXPECT_FALSE([&] {
    const auto said = std::make_shared<MemoryQueue>();
    said->Put(MessageToText(ReadyMessage{TestCpu()}));
    said->Close();
    MemoryTransport transport(said, to_worker_);
    WorkerLink link(transport);
    EXPECT_TRUE(link.Start());
    return link.Begin(Session());
  }());
}

TEST_F(WorkerProtocolTest, ADeathWhileBuildingAndOneWhileRunningAreTold) {
  for (const bool running : {false, true}) {
    const auto said = std::make_shared<MemoryQueue>();
    std::vector<Message> messages = {ReadyMessage{TestCpu()}, AcceptedMessage{}};
    if (running) messages.emplace_back(RunningMessage{1});
    for (const Message& message : messages) said->Put(MessageToText(message));
    said->Close();
    MemoryTransport transport(said, to_worker_);
    WorkerLink link(transport);
    ASSERT_TRUE(link.Start() && link.Begin(Session()));
    link.Submit(1, PortableTrial());
    const LinkedTrial trial = link.Wait();
    EXPECT_EQ(trial.end, End::kGone);
    EXPECT_EQ(trial.running, running);
  }
}

TEST_F(WorkerProtocolTest, BuildingAndRunningHaveDeadlinesOfTheirOwn) {
  MeasureSession session = Session();
  session.limits.build_seconds = 0.02;
  session.limits.run_seconds = 0.03;
  Say({ReadyMessage{TestCpu()}, AcceptedMessage{}});
  const LinkedTrial building = Try(session);
  EXPECT_EQ(building.end, End::kTimeout);
  EXPECT_FALSE(building.running);
  link_.Submit(8, PortableTrial());
  Say({RunningMessage{8}});
  const LinkedTrial running = link_.Wait();
  EXPECT_EQ(running.end, End::kTimeout);
  EXPECT_TRUE(running.running);
}

TEST_F(WorkerProtocolTest, WhatDoesNotBelongThereIsGarbled) {
  const std::vector<std::vector<Message>> hostile = {
      {ResultMessage{6, GoodResult()}},        // of another trial
      {RunningMessage{6}},                     //
      {RunningMessage{7}, RunningMessage{7}},  // would put the deadline off for ever
      {RunningMessage{7}, ReadyMessage{TestCpu()}},
      {ErrorMessage{"no"}},
      {SessionMessage{Session()}},
      {TrialMessage{7, PortableTrial()}}};
  Say({ReadyMessage{TestCpu()}, AcceptedMessage{}});
  ASSERT_TRUE(link_.Start() && link_.Begin(Session()));
  for (const auto& messages : hostile) {
    link_.Submit(7, PortableTrial());
    Say(messages);
    const LinkedTrial trial = link_.Wait();
    EXPECT_EQ(trial.end, End::kGarbled);
    EXPECT_EQ(trial.garbled, MessageToText(messages.back()).substr(0, 80));
  }
  link_.Submit(7, PortableTrial());
  from_worker_->Put("\x01garbage");
  EXPECT_EQ(link_.Wait().garbled, "\x01garbage");
}

// The real worker, in a thread.
TEST_F(WorkerProtocolTest, AWorkerServesWhateverCarriesItsMessages) {
  std::thread worker([&] { EXPECT_EQ(ServeTrials(worker_end_, TestCpu(), FindFaultyTemplate), 0); });
  LinkedTrial trial = Try();
  EXPECT_EQ(trial.end, End::kResult) << trial.garbled;
  EXPECT_EQ(trial.result.status, TrialStatus::kOk) << trial.result.detail;
  EXPECT_EQ(trial.result.target, TestCpu());
  link_.Submit(8, FaultRequest(Fault::kWrongValue));
  trial = link_.Wait();
  EXPECT_EQ(trial.result.status, TrialStatus::kWrongAnswer);
  EXPECT_TRUE(link_.Begin(Session())) << "again, between trials";
  link_.Submit(9, PortableTrial());
  EXPECT_EQ(link_.Wait().result.status, TrialStatus::kOk);
  to_worker_->Close();
  worker.join();
}

TEST_F(WorkerProtocolTest, AWorkerAnswersHostileTunersAndGoesOn) {
  std::thread worker([&] { ServeTrials(worker_end_, TestCpu(), FindConvTemplate); });
  ASSERT_TRUE(link_.Start());
  const auto answer = [&](const std::string& text) {
    tuner_end_.Send(text);
    std::string said;
    EXPECT_EQ(tuner_end_.Receive(said, Transport::kNever), Transport::Receipt::kMessage);
    return said;
  };
  EXPECT_THAT(answer(MessageToText(TrialMessage{1, PortableTrial()})),
              HasSubstr("a trial before any session"));
  EXPECT_THAT(answer("rubbish"), HasSubstr("not a JSON object"));
  EXPECT_THAT(answer(MessageToText(AcceptedMessage{})), HasSubstr("neither a session nor a trial"));
  EXPECT_THAT(answer(R"({"session":{"workload":"mb1"}})"), HasSubstr("error"));
  EXPECT_TRUE(link_.Begin(Session()));
  link_.Submit(2, {"sorcery", {}});
  EXPECT_EQ(link_.Wait().result.status, TrialStatus::kBuildError);
  to_worker_->Close();
  worker.join();
}

}  // namespace
}  // namespace tilesmith
