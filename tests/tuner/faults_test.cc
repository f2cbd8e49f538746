// Tuning a template whose every second config misbehaves, in a real worker: each fault costs its trial, is
// named in the log, and never wins.
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <map>
#include <thread>

#include "tests/support/test_cpu.h"
#include "tests/tuner/support/faulty_config.h"
#include "tests/tuner/support/simulated_measurer.h"
#include "tests/tuner/support/tune_one.h"
#include "tuner/measure/process_measurer.h"

namespace tilesmith {
namespace {

TEST(Faults, EveryFaultCostsItsTrialAndIsNamed) {
  TuneRequest request;
  request.workload = ParseWorkload("mb1ic20ih9oc37oh9kh3ph1+bias+relu");
  request.cpu = TestCpu();
  request.templates = {&FindFaultyTemplate("faulty")};
  const double seconds = kSanitized ? 3 : 0.5;  // sanitizers take their time to report a crash
  request.limits = {.build_seconds = seconds, .run_seconds = seconds, .memory_bytes = int64_t{16} << 30};
  request.options.searcher = "grid";
  std::map<Fault, Record> by_fault;
  NetworkSinks sinks;
  sinks.on_record = [&](const Record& record) {
    by_fault.emplace(static_cast<Fault>(record.config.Get("fault")), record);
  };
  ProcessMeasurer measurer({TILESMITH_TEST_WORKER});
  const TuneResult result = TuneOne(request, 100, measurer, sinks);
  const std::map<Fault, TrialStatus> expected = {{Fault::kNone, TrialStatus::kOk},
                                                 {Fault::kBuildThrows, TrialStatus::kBuildError},
                                                 {Fault::kBuildCrashes, TrialStatus::kBuildError},
                                                 {Fault::kBuildHangs, TrialStatus::kBuildTimeout},
                                                 {Fault::kBuildNeedsTerabytes, TrialStatus::kOutOfMemory},
                                                 {Fault::kBuildNeeds40Gigabytes, TrialStatus::kOutOfMemory},
                                                 {Fault::kRunCrashes, TrialStatus::kRunCrash},
                                                 {Fault::kRunIsIllegal, TrialStatus::kRunCrash},
                                                 {Fault::kRunHangs, TrialStatus::kRunTimeout},
                                                 {Fault::kRunLoops, TrialStatus::kRunTimeout},
                                                 {Fault::kRunExits, TrialStatus::kRunCrash},
                                                 {Fault::kIsKilled, TrialStatus::kWorkerLost},
                                                 {Fault::kWrongValue, TrialStatus::kWrongAnswer},
                                                 {Fault::kPaddingNotZero, TrialStatus::kWrongAnswer},
                                                 {Fault::kWritesOutside, TrialStatus::kWrongAnswer},
                                                 {Fault::kWritesNothing, TrialStatus::kWrongAnswer},
                                                 {Fault::kSlow, TrialStatus::kOk}};
  for (const auto& [fault, status] : expected) {
    const bool memory = status == TrialStatus::kOutOfMemory;
    if (memory && kSanitized) continue;  // sanitizers handle huge allocations themselves
    ASSERT_TRUE(by_fault.contains(fault)) << static_cast<int>(fault);
    EXPECT_EQ(TrialStatusName(by_fault.at(fault).status), TrialStatusName(status))
        << static_cast<int>(fault) << ": " << by_fault.at(fault).detail;
    EXPECT_EQ(by_fault.at(fault).detail.empty(), status == TrialStatus::kOk);
  }
  ASSERT_TRUE(result.best.has_value());
  EXPECT_EQ(result.best->config, FaultConfig(Fault::kNone));
}

TEST(Faults, AWorkerKilledWhileItMeasuresCostsNoTrial) {
  MeasureSession session;
  session.workload = ParseWorkload("mb1ic20ih9oc37oh9kh3ph1");
  session.cpu = TestCpu();
  ProcessMeasurer measurer({TILESMITH_TEST_WORKER});
  measurer.Begin(session);
  ASSERT_EQ(MeasureOne(measurer, FaultRequest(Fault::kNone)).status, TrialStatus::kOk);
  const pid_t first = measurer.worker_pid();
  std::thread killer([first] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // kSlow takes 20 ms a run, several runs
    kill(first, SIGKILL);
  });
  const TrialResult result = MeasureOne(measurer, FaultRequest(Fault::kSlow));
  killer.join();
  EXPECT_EQ(result.status, TrialStatus::kOk) << result.detail;
  EXPECT_NE(measurer.worker_pid(), first) << "repeated in another";
}

TEST(Faults, SessionsAlternateWithoutANewWorker) {
  ProcessMeasurer measurer({TILESMITH_TEST_WORKER});
  MeasureSession a, b;
  a.workload = ParseWorkload("mb1ic20ih9oc37oh9kh3ph1");
  b.workload = ParseWorkload("mb1ic8ih30oc16oh30kh1+sum");
  a.cpu = b.cpu = TestCpu();
  b.conditions.threads = 2;
  for (int turn = 0; turn < 3; ++turn) {
    for (const MeasureSession& session : {a, b}) {
      measurer.Begin(session);
      const TrialResult result = MeasureOne(measurer, FaultRequest(Fault::kNone));
      EXPECT_EQ(result.status, TrialStatus::kOk) << result.detail;
      EXPECT_EQ(MeasureOne(measurer, FaultRequest(Fault::kWrongValue)).status, TrialStatus::kWrongAnswer);
    }
  }
  EXPECT_EQ(measurer.workers_started(), 1);
}

}  // namespace
}  // namespace tilesmith
