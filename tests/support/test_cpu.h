// The CPU tests run for: this machine's, with its ISA capped by TILESMITH_MAX_ISA when that is set.
#pragma once

#include <cstdlib>

#include "layouts/base/cpu.h"

namespace tilesmith {

inline CpuInfo TestCpu() {
  const char* cap = std::getenv("TILESMITH_MAX_ISA");
  return cap == nullptr ? DetectCpu() : CapIsa(DetectCpu(), ParseIsa(cap));
}

}  // namespace tilesmith
