// Templates that misbehave on purpose. They exist only in the tests' own measuring worker.
#pragma once

#include "templates/base/conv_template.h"

namespace tilesmith {

// One knob, "fault", whose value is a Fault; the conv itself is the portable template's default.
enum class Fault : int64_t {
  kNone,
  kBuildThrows,
  kBuildCrashes,
  kBuildHangs,
  kBuildNeedsTerabytes,
  kRunCrashes,
  kRunHangs,
  kRunExits,
  kIsKilled,  // by SIGKILL, which only comes from outside
  kWrongValue,
  kPaddingNotZero,
  kWritesOutside,
  kWritesNothing,
  kRunLoops,      // without end, never sleeping
  kRunIsIllegal,  // SIGILL
  kBuildNeeds40Gigabytes,
  kSlow,  // 20 ms a run; the last
};

const ConvTemplate& FindFaultyTemplate(std::string_view name);  // "faulty", else the registered ones
Config FaultConfig(Fault fault);

}  // namespace tilesmith
