#include "tuner/measure/own_cores.h"

#include <chrono>
#include <thread>

#include "layouts/measure/clock.h"

namespace tilesmith {

void OwnCores::Await() {
  constexpr double kPatienceSeconds = 150e-3;
  constexpr std::chrono::milliseconds kPause(5);
  const double begin = NowSeconds();
  while (!AreKept()) {
    if (NowSeconds() - begin > kPatienceSeconds) fastest_ = {};
    std::this_thread::sleep_for(kPause);
  }
}

bool OwnCores::AreKept() {
  const CorePlacement seen = SeePlacement(threads_);
  if (!fastest_.is_known() || seen.arithmetic_seconds < fastest_.arithmetic_seconds) fastest_ = seen;
  return ComputeAlike(seen, fastest_);
}

}  // namespace tilesmith
