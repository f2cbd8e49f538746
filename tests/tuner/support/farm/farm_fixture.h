// A test with a farm: a Redis of its own, and what one does to it by hand.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "layouts/measure/clock.h"
#include "tests/tuner/support/farm/redis_server.h"
#include "tests/tuner/support/farm/simulated_farm.h"
#include "tuner/measure/measurer.h"
#include "tuner/measure/protocol.h"

namespace tilesmith {

inline TrialResult OneMillisecond() {
  TrialResult result;
  result.sample_seconds = {1e-3};
  result.seconds = 1e-3;
  return result;
}

class FarmTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!RedisServer::IsInstalled()) GTEST_SKIP() << "redis-server is not installed";
    signal(SIGPIPE, SIG_IGN);  // as the program does
    redis_ = std::make_unique<RedisServer>();
    farm_ = std::make_unique<Farm>(redis_->address(), Impatient(), nullptr);
  }

  // Where the test itself does the announcing.
  static FarmTiming Impatient() {
    FarmTiming timing = QuickTiming();
    timing.dead_seconds = 0.5;
    return timing;
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
inline void ExpectAllMeasured(Measurer& measurer, int trials) {
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

}  // namespace tilesmith
