// Each way a trial can go wrong, provoked in a real worker process.
#include "tuner/measure/process_measurer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "layouts/base/error.h"
#include "tests/support/test_cpu.h"
#include "tests/tuner/support/faulty_config.h"
#include "tests/tuner/support/simulated_measurer.h"
#include "tuner/measure/estimator.h"

namespace tilesmith {
namespace {

using ::testing::HasSubstr;

MeasureSession SmallSession() {
  MeasureSession session;
  session.workload = ParseWorkload("mb1ic20ih9oc37oh9kh3ph1+bias+sum+relu");
  session.cpu = TestCpu();
  session.conditions.threads = 2;
  session.limits = {.build_seconds = 20, .run_seconds = 20, .memory_bytes = int64_t{16} << 30};
  return session;
}

class ProcessMeasurerTest : public ::testing::Test {
 protected:
  TrialResult Measure(Fault fault, const MeasureSession& session = SmallSession()) {
    measurer_.Begin(session);
    return MeasureOne(measurer_, FaultRequest(fault));
  }
  // The trial fails as expected, and the next one succeeds.
  void ExpectFailure(Fault fault, TrialStatus status, const char* detail,
                     const MeasureSession& session = SmallSession()) {
    const TrialResult result = Measure(fault, session);
    EXPECT_EQ(TrialStatusName(result.status), TrialStatusName(status)) << result.detail;
    EXPECT_THAT(result.detail, HasSubstr(detail));
    EXPECT_EQ(result.seconds, 0);
    const TrialResult next = MeasureOne(measurer_, FaultRequest(Fault::kNone));
    EXPECT_EQ(next.status, TrialStatus::kOk) << next.detail;
  }

  ProcessMeasurer measurer_{{TILESMITH_TEST_WORKER}};
};

TEST_F(ProcessMeasurerTest, MeasuresAWorkingConfig) {
  const MeasureSession session = SmallSession();
  const TrialResult result = Measure(Fault::kNone, session);
  ASSERT_EQ(result.status, TrialStatus::kOk) << result.detail;
  EXPECT_GE(static_cast<int>(result.sample_seconds.size()), session.sampling.min_samples);
  EXPECT_LE(static_cast<int>(result.sample_seconds.size()), session.sampling.max_samples);
  for (double sample : result.sample_seconds) EXPECT_GT(sample, 0);
  EXPECT_DOUBLE_EQ(result.seconds, Estimate(result.sample_seconds));
  EXPECT_GT(result.build_seconds, 0);
  EXPECT_FALSE(result.early_stopped);
  ASSERT_TRUE(result.error.has_value()) << "floats round";
  EXPECT_GT(*result.error, 0);
  EXPECT_LT(*result.error, 1e-5);
}

TEST_F(ProcessMeasurerTest, MeasuresColdUnpinnedAndOnCappedIsa) {
  MeasureSession session = SmallSession();
  session.conditions = {.threads = 1, .pinned = false, .cold_weights = true};
  session.cpu = CapIsa(session.cpu, Isa::kPortable);
  measurer_.Begin(session);
  TrialRequest request;
  request.template_name = "portable";
  request.config = FindConvTemplate("portable").Default(session.workload, session.cpu);
  const TrialResult result = MeasureOne(measurer_, request);
  EXPECT_EQ(result.status, TrialStatus::kOk) << result.detail;
}

TEST_F(ProcessMeasurerTest, BuildFailures) {
  ExpectFailure(Fault::kBuildThrows, TrialStatus::kBuildError, "no registers left");
  EXPECT_EQ(measurer_.workers_started(), 1) << "an exception does not cost the worker";
  ExpectFailure(Fault::kBuildCrashes, TrialStatus::kBuildError, kSanitized ? "building" : "SIGILL");
  EXPECT_EQ(measurer_.workers_started(), 2);
}

TEST_F(ProcessMeasurerTest, RunCrashes) {
  ExpectFailure(Fault::kRunCrashes, TrialStatus::kRunCrash, kSanitized ? "running" : "SIGSEGV");
  ExpectFailure(Fault::kRunExits, TrialStatus::kRunCrash, "exited with code 3");
}

TEST_F(ProcessMeasurerTest, Timeouts) {
  MeasureSession session = SmallSession();
  session.limits.build_seconds = 0.5;
  ExpectFailure(Fault::kBuildHangs, TrialStatus::kBuildTimeout, "building took over 0.5 s", session);
  session = SmallSession();
  session.limits.run_seconds = 0.5;
  ExpectFailure(Fault::kRunHangs, TrialStatus::kRunTimeout, "running took over 0.5 s", session);
}

TEST_F(ProcessMeasurerTest, WrongAnswers) {
  ExpectFailure(Fault::kWrongValue, TrialStatus::kWrongAnswer, "output (n=0, c=0, h=0, w=0)");
  ExpectFailure(Fault::kWritesNothing, TrialStatus::kWrongAnswer, "nan");
  ExpectFailure(Fault::kPaddingNotZero, TrialStatus::kWrongAnswer, "padding channel");
  ExpectFailure(Fault::kWritesOutside, TrialStatus::kWrongAnswer, "outside");
  EXPECT_EQ(measurer_.workers_started(), 1);
}

TEST_F(ProcessMeasurerTest, OutOfMemory) {
  if (kSanitized) GTEST_SKIP() << "sanitizers handle huge allocations themselves";
  ExpectFailure(Fault::kBuildNeedsTerabytes, TrialStatus::kOutOfMemory, "out of memory");
}

TEST_F(ProcessMeasurerTest, InvalidConfigs) {
  measurer_.Begin(SmallSession());
  TrialRequest request = FaultRequest(Fault::kNone);
  request.config.Set("fault", 99);
  TrialResult result = MeasureOne(measurer_, request);
  EXPECT_EQ(result.status, TrialStatus::kInvalidConfig);
  EXPECT_THAT(result.detail, HasSubstr("\"fault\" is 99"));
  request.template_name = "nosuch";
  result = MeasureOne(measurer_, request);
  EXPECT_EQ(result.status, TrialStatus::kBuildError);
  EXPECT_THAT(result.detail, HasSubstr("nosuch"));
}

TEST_F(ProcessMeasurerTest, StopsEarlyOnHopelessConfigs) {
  measurer_.Begin(SmallSession());
  TrialRequest request = FaultRequest(Fault::kSlow);
  request.stop_above_seconds = 0.001;  // the check alone is beyond hope
  TrialResult result = MeasureOne(measurer_, request);
  EXPECT_EQ(result.status, TrialStatus::kOk) << result.detail;
  EXPECT_TRUE(result.early_stopped);
  EXPECT_EQ(result.sample_seconds.size(), 1u);
  EXPECT_GE(result.seconds, 0.02);
  request.stop_above_seconds = 0.015;
  result = MeasureOne(measurer_, request);
  EXPECT_TRUE(result.early_stopped);
  EXPECT_LE(result.sample_seconds.size(), 2u);
}

TEST_F(ProcessMeasurerTest, AWorkerKilledBetweenTrialsIsReplacedUnnoticed) {
  EXPECT_EQ(Measure(Fault::kNone).status, TrialStatus::kOk);
  const pid_t first = measurer_.worker_pid();
  ASSERT_EQ(kill(first, SIGKILL), 0);
  EXPECT_EQ(MeasureOne(measurer_, FaultRequest(Fault::kNone)).status, TrialStatus::kOk);
  EXPECT_NE(measurer_.worker_pid(), first);
  ASSERT_EQ(kill(measurer_.worker_pid(), SIGKILL), 0);
  EXPECT_EQ(Measure(Fault::kNone).status, TrialStatus::kOk) << "a new session finds a new worker as well";
}

TEST_F(ProcessMeasurerTest, AWorkerKilledDuringATrialTwiceIsLost) {
  ExpectFailure(Fault::kIsKilled, TrialStatus::kWorkerLost, "killed by SIGKILL");
  EXPECT_EQ(measurer_.workers_started(), 3) << "the first, one more attempt, and the next trial's";
}

TEST(ProcessMeasurer, SaysWhyNoWorkerCanBeStarted) {
  const auto begin = [](const std::vector<std::string>& argv) {
    ProcessMeasurer measurer(argv);
    try {
      measurer.Begin(SmallSession());
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kEnvironment);
      return std::string(error.what());
    }
    return std::string("no error");
  };
  EXPECT_THAT(begin({"/nonexistent/worker"}), HasSubstr("/nonexistent/worker"));
  EXPECT_THAT(begin({"/bin/false"}), HasSubstr("exited with code 1"));
  EXPECT_THAT(begin({"/bin/echo", "hello"}), HasSubstr("says \"hello\""));
  EXPECT_THAT(begin({}), HasSubstr("no program"));
}

}  // namespace
}  // namespace tilesmith
