// The CPU that tests are to assume.
#pragma once

#include <cstdlib>
#include <vector>

#include "layouts/base/target.h"

namespace tilesmith {

// Those of this architecture whose code differs in more than how products are rounded.
#ifdef __aarch64__
constexpr Isa kTestIsas[] = {Isa::kPortable, Isa::kNeon, Isa::kSve};
constexpr Isa kCodeIsas[] = {Isa::kNeon, Isa::kSve};  // those that code is generated for
#else
constexpr Isa kTestIsas[] = {Isa::kPortable, Isa::kAvx2, Isa::kAvx512};
constexpr Isa kCodeIsas[] = {Isa::kAvx2, Isa::kAvx512};
#endif

// DetectCpu(), capped by the environment variable TILESMITH_MAX_ISA when it is set: this is how tools/check
// runs the tests for narrower machines. It is found out once: that reads files.
inline Target TestCpu() {
  static const Target cpu = [] {
    const char* cap = std::getenv("TILESMITH_MAX_ISA");
    return cap == nullptr || *cap == '\0' ? DetectCpu() : CapIsa(DetectCpu(), ParseIsa(cap));
  }();
  return cpu;
}

// TestCpu() with each instruction set it has, and the widest once more without AMX, and without any
// extension.
inline std::vector<Target> TestCpus() {
  std::vector<Target> cpus;
  for (const Isa isa : kIsas) {
    if (isa <= TestCpu().isa) cpus.push_back(CapIsa(TestCpu(), isa));
  }
  if (cpus.back().amx) {
    cpus.push_back(cpus.back());
    cpus.back().amx = false;
  }
  if (cpus.back().vnni) {
    cpus.push_back(cpus.back());
    cpus.back().vnni = false;
  }
  return cpus;
}

}  // namespace tilesmith
