// A schedule explained: its loops, what they touch, its registers and code.
#pragma once

#include <optional>
#include <string>

#include "tools/cli/report.h"
#include "tuner/records/record.h"

namespace tilesmith {

struct ShownSchedule {
  ConvWorkload workload;
  std::string template_name;
  Config config;
  Target cpu;  // it is for
  std::optional<Record> record;
};

// As measured, and for its machine's caches.
ShownSchedule ScheduleOf(const Record& record);

// Throws Error(kUsage) when the template is unknown, does not support the workload, or the config is invalid.
void AddSchedule(const ShownSchedule& schedule, bool json, Report& report);

// The disassembly of everything generated for it. Throws Error(kEnvironment) when it needs instructions that
// this machine lacks.
std::string CodeText(const ShownSchedule& schedule);

}  // namespace tilesmith
