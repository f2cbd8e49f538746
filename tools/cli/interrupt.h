// Ctrl-C: the first one asks the command to stop where it is and report; the second one ends it.
#pragma once

#include "layouts/base/error.h"
#include "layouts/base/stop_flag.h"

namespace tilesmith {

// SIGINT and SIGTERM set the flag from now on, once.
void CatchInterrupts();
// For work that looks at it by itself: executors, the reference.
const StopFlag& InterruptFlag();
inline bool Interrupted() { return IsStopped(&InterruptFlag()); }

// Calls `work`; false when it was interrupted, with what it did so far in whatever state it left it. Other
// errors go through.
template <typename Work>
bool UnlessInterrupted(const Work& work) {
  try {
    work();
    return true;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kInterrupted) throw;
    return false;
  }
}

// For child processes: Ctrl-C reaches them too, but it is their parent's to act on.
void IgnoreInterrupts();

}  // namespace tilesmith
