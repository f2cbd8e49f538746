// Layout transforms beside memcpy.
#pragma once

#include "tools/cli/machine.h"
#include "tools/cli/report.h"

namespace tilesmith {

// Shapes as they occur in CNNs, for every pair of NCHW, NHWC, NCHW8c and NCHW16c. Precondition: a PinnedTeam
// lives.
Table TransformTable(const DevicePtr& machine);

}  // namespace tilesmith
