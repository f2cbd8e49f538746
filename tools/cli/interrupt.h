// Ctrl-C: the first one asks the command to stop where it is and report; the second one ends it.
#pragma once

#include "layouts/base/stop_flag.h"

namespace tilesmith {

// SIGINT and SIGTERM set the flag from now on, once.
void CatchInterrupts();
// For work that looks at it by itself: executors, the reference.
const StopFlag& InterruptFlag();
inline bool Interrupted() { return IsStopped(&InterruptFlag()); }

// For child processes: Ctrl-C reaches them too, but it is their parent's to act on.
void IgnoreInterrupts();

}  // namespace tilesmith
