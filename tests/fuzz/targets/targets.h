// What the files of this folder define; targets.cc lists them.
#pragma once

#include "layouts/base/target.h"
#include "tests/fuzz/target.h"

namespace tilesmith::fuzz {

// A machine that is the same everywhere, so that seeds written for it are accepted.
inline Target FuzzCpu() { return {.model = "fuzz", .isa = Isa::kAvx2, .cores = 2, .l3_bytes = 8 << 20}; }

FuzzTarget AutotvmTarget();
FuzzTarget CompiledTarget();
FuzzTarget ConfigTarget();
FuzzTarget CostsTarget();
FuzzTarget DatabaseTarget();
FuzzTarget FarmTarget();
FuzzTarget LogFileTarget();
FuzzTarget LogLineTarget();
FuzzTarget ModelOptionsTarget();
FuzzTarget ModelPartsTarget();
FuzzTarget NpyTarget();
FuzzTarget NpzTarget();
FuzzTarget OnnxTarget();
FuzzTarget OnnxTensorTarget();
FuzzTarget PlanTarget();
FuzzTarget QuantizeTarget();
FuzzTarget SpaceTarget();
FuzzTarget SuiteTarget();
FuzzTarget WorkerProtocolTarget();
FuzzTarget WorkloadTarget();

}  // namespace tilesmith::fuzz
