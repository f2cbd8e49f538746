#include "layouts/base/core_distance.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "layouts/base/quantile.h"
#include "layouts/base/thread_team.h"

namespace tilesmith {

double BarrierSeconds(int threads) {
  using Clock = std::chrono::steady_clock;
  if (threads == 1) return 0;
  constexpr int kSamples = 9, kBarriers = 16;
  std::vector<double> seconds(kSamples);
  SpinBarrier barrier(threads);
  RunOnTeam(threads, [&](int thread) {
    barrier.Wait();  // all of them are here
    for (double& sample : seconds) {
      const Clock::time_point begin = Clock::now();
      for (int i = 0; i < kBarriers; ++i) barrier.Wait();
      if (thread == 0) sample = std::chrono::duration<double>(Clock::now() - begin).count() / kBarriers;
    }
  });
  return Quantile(std::move(seconds), 0.5);
}

bool AreAlike(double a, double b) {
  constexpr double kAlike = 1.5;
  return std::max(a, b) <= kAlike * std::min(a, b);
}

}  // namespace tilesmith
