// The CPU that tests are to assume.
#pragma once

#include <cstdlib>

#include "layouts/base/target.h"

namespace tilesmith {

// DetectCpu(), capped by the environment variable TILESMITH_MAX_ISA when it is set: this is how tools/check
// runs the tests for narrower machines.
inline Target TestCpu() {
  const char* cap = std::getenv("TILESMITH_MAX_ISA");
  return cap == nullptr || *cap == '\0' ? DetectCpu() : CapIsa(DetectCpu(), ParseIsa(cap));
}

}  // namespace tilesmith
