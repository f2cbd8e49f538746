// The CPU that tests of a template are to assume.
#pragma once

#include "templates/portable_winograd/config.h"
#include "tests/support/test_cpu.h"

namespace tilesmith {

// TestCpu(), but a reproducible one without generated code for the template that then takes its place.
inline Target CpuFor(const ConvTemplate& conv_template) {
  return &conv_template == &PortableWinogradTemplate() ? Reproducible(CapIsa(TestCpu(), Isa::kPortable))
                                                       : TestCpu();
}

}  // namespace tilesmith
