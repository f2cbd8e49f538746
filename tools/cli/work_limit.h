// How long work may go on: until its caller stops it, or until its time is over.
#pragma once

#include <algorithm>
#include <limits>

#include "layouts/base/stop_flag.h"
#include "layouts/measure/clock.h"

namespace tilesmith {

struct WorkLimit {
  const StopFlag* stop = nullptr;
  double end = std::numeric_limits<double>::infinity();  // on the clock of NowSeconds

  double left() const { return std::max(0.0, end - NowSeconds()); }
  bool out_of_time() const { return left() <= 0; }
  // For between two runs. Throws Error(kInterrupted).
  void ThrowIfOver() const {
    ThrowIfStopped(stop);
    if (out_of_time()) throw Error(ErrorCode::kInterrupted, "out of time");
  }
};

}  // namespace tilesmith
