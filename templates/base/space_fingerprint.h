// What records of configs depend on, as a short text.
#pragma once

#include <string>

#include "layouts/base/target.h"

namespace tilesmith {

// Eight hexadecimal digits that differ as soon as a template comes or goes, or a knob, one of its values, or
// a default changes for any of a few typical workloads on a CPU with `isa`. Derived from the templates
// themselves, so nobody has to count versions; the same on every machine. Worked out once per ISA;
// thread-safe.
std::string SpaceFingerprint(Isa isa);

}  // namespace tilesmith
