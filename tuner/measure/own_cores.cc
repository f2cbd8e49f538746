#include "tuner/measure/own_cores.h"

#include <chrono>
#include <thread>

namespace tilesmith {

void OwnCores::Await() {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kPatience(150), kPause(5);
  const Clock::time_point begin = Clock::now();
  while (!AreKept()) {
    if (Clock::now() - begin > kPatience) fastest_ = {};
    std::this_thread::sleep_for(kPause);
  }
}

bool OwnCores::AreKept() {
  const CorePlacement seen = SeePlacement(threads_);
  if (!fastest_.is_known() || seen.arithmetic_seconds < fastest_.arithmetic_seconds) fastest_ = seen;
  return ComputeAlike(seen, fastest_);
}

}  // namespace tilesmith
