// Random records that look like those of a tuner, but for machines and configs that need not exist.
#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

#include "tests/support/random.h"
#include "tests/tuner/support/sample_records.h"

namespace tilesmith {

inline Record RandomRecord(TestRandom& random) {
  const auto once_in = [&](int n) { return random.Integer(1, n) == 1; };
  Record record = SampleRecord(1e-6 * static_cast<double>(random.Integer(1, 50)));
  record.target.model = random.Pick(std::vector<std::string>{"Test CPU 3000", "Test CPU 4000"});
  record.target.isa = once_in(3) ? Isa::kAvx2 : Isa::kAvx512;
  record.workload = ParseWorkload(random.Pick(
      std::vector<std::string>{"ic64ih56oc64kh3ph1+bias+sum+relu", "mb2ic3ih224oc64kh7ph3sh2",
                               "g32ic32ih28oc32kh3ph1+bias+clip:0:6", "scale_shift+relu>ic64ih14oc32kh1"}));
  record.template_name = random.Pick(std::vector<std::string>{"direct", "winograd", "portable"});
  record.config = ConfigOf({{"ic_block", random.Integer(0, 3) * 8}, {"rows", random.Integer(1, 4)}});
  if (once_in(2)) record.config.Set("balance_tiles", random.Integer(0, 1));
  record.layouts.in = Layout::Parse(
      random.Pick(std::vector<const char*>{"NCHW8c", "NHWC", "NCHW", "NHWC:u8", "NCHW16c:bf16"}));
  record.conditions = {static_cast<int>(random.Integer(1, 2)), once_in(2), once_in(2)};
  record.sample_seconds.clear();
  for (int64_t i = random.Integer(0, 5); i > 0; --i)
    record.sample_seconds.push_back(record.seconds * (1 + random.Uniform(0, 1)));
  if (once_in(2)) record.error = random.Uniform(0, 1e-4F);
  record.early_stopped = once_in(5);
  record.seed = random.Next();
  record.time = fmt::format("2025-01-02T03:{:02}:{:02}Z", random.Integer(0, 59), random.Integer(0, 59));
  if (once_in(6)) {
    record.status = random.Pick(std::vector<TrialStatus>{TrialStatus::kRunCrash, TrialStatus::kWrongAnswer,
                                                         TrialStatus::kBuildError, TrialStatus::kWorkerLost});
    record.seconds = 0;
    record.error.reset();
    record.detail = once_in(2) ? "killed by SIGSEGV" : "got \"1e-3\", wanted\t0 \xc3\xa9";
  }
  record.purpose = random.Pick(std::vector<std::string>{"", kPurposeSearch, kPurposeLayouts, kPurposeRetime});
  if (once_in(4)) record.task_trials = static_cast<int>(random.Integer(1, 500));
  if (once_in(20)) record.origin = R"({"input":[]})";
  return record;
}

inline std::vector<Record> RandomRecords(TestRandom& random, int count) {
  std::vector<Record> records;
  for (int i = 0; i < count; ++i) records.push_back(RandomRecord(random));
  return records;
}

}  // namespace tilesmith
