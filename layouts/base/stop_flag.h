// How a caller stops long work from another thread or from a signal handler: it sets a flag, which the work
// looks at between its parts.
#pragma once

#include <atomic>

#include "layouts/base/error.h"

namespace tilesmith {

using StopFlag = std::atomic<bool>;

// Without a flag nobody stops the work. Costs a plain load.
inline bool IsStopped(const StopFlag* stop) {
  return stop != nullptr && stop->load(std::memory_order_relaxed);
}

// Throws Error(kInterrupted).
inline void ThrowIfStopped(const StopFlag* stop) {
  if (IsStopped(stop)) throw Error(ErrorCode::kInterrupted, "interrupted");
}

}  // namespace tilesmith
