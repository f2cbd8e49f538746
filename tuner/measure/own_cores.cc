#include "tuner/measure/own_cores.h"

#include <chrono>
#include <thread>

#include "layouts/base/core_placement.h"

namespace tilesmith {

void OwnCores::Await() {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kPatience(150), kPause(5);
  const Clock::time_point begin = Clock::now();
  while (!AreKept()) {
    if (Clock::now() - begin > kPatience) least_seconds_ = 0;
    std::this_thread::sleep_for(kPause);
  }
}

bool OwnCores::AreKept() {
  constexpr double kAsFast = 1.5;
  const double seconds = SeePlacement(threads_).arithmetic_seconds;
  if (least_seconds_ == 0 || seconds < least_seconds_) least_seconds_ = seconds;
  return seconds <= kAsFast * least_seconds_;
}

}  // namespace tilesmith
