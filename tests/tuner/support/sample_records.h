// Records for tests that need some.
#pragma once

#include <initializer_list>
#include <string>
#include <utility>

#include "tuner/records/record.h"

namespace tilesmith {

inline Config ConfigOf(std::initializer_list<std::pair<const char*, int64_t>> knobs) {
  Config config;
  for (const auto& [name, value] : knobs) config.Set(name, value);
  return config;
}

inline Record SampleRecord(double seconds = 0.25e-3, const char* in = "NCHW16c",
                           const char* out = "NCHW32c") {
  Record record;
  record.target = {.model = "Test CPU 3000", .isa = Isa::kAvx512, .cores = 2, .version = "0.1.0"};
  record.target.l3_bytes = 16777216;
  record.workload = ParseWorkload("mb1ic64ih56oc64oh56kh3ph1+bias+sum+relu");
  record.template_name = "direct";
  record.config = ConfigOf({{"ic_block", 16}, {"oc_block", 32}, {"rows", 2}});
  record.layouts = {Layout::Parse(in), Layout::Parse(out)};
  record.conditions = {2, true, false};
  record.sample_seconds = {seconds, seconds * 1.25, seconds};
  record.seconds = seconds;
  record.tuner = "ga";
  record.seed = 7;
  record.time = "2025-01-02T03:04:05Z";
  return record;
}

}  // namespace tilesmith
