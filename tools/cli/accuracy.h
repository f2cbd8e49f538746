// --max-error and --forbid: how much accuracy may be traded for speed.
#pragma once

#include "tools/cli/args.h"
#include "tuner/records/accuracy.h"

namespace tilesmith {

void DeclareAccuracy(Args& args, AccuracyLimits* limits);

}  // namespace tilesmith
