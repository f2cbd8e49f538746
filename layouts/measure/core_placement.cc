#include "layouts/measure/core_placement.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "layouts/base/thread_team.h"
#include "layouts/measure/clock.h"
#include "layouts/measure/quantile.h"

namespace tilesmith {
namespace {

constexpr int kSamples = 9, kBarriers = 16;

using Vector __attribute__((vector_size(16))) = float;

// As many chains as keep every multiplier of a core busy, so that another thread on the core is felt; all in
// registers, since what passes through memory takes one time or another by where it lies.
float MultiplyMany(float factor) {
  constexpr int kSteps = 1000, kChains = 12;
  std::array<Vector, kChains> values;
  values.fill(Vector{1, 1, 1, 1});
  for (int step = 0; step < kSteps; ++step) {
#pragma GCC unroll 12
    for (int chain = 0; chain < kChains; ++chain) values[chain] *= factor;
  }
  Vector sum = {};
  for (const Vector& value : values) sum += value;
  return sum[0];
}

bool WithinHalfAsMuchAgain(double a, double b) { return std::max(a, b) <= 1.5 * std::min(a, b); }

}  // namespace

CorePlacement SeePlacement(int threads) {
  if (threads == 1) return {};
  std::vector<double> barriers(kSamples), arithmetic(kSamples);
  SpinBarrier barrier(threads);
  RunOnTeam(threads, [&](int thread) {
    const volatile float one = 1;
    [[maybe_unused]] volatile float result = 0;
    for (int sample = 0; sample < kSamples; ++sample) {
      barrier.Wait();  // all of them are here
      double begin = NowSeconds();
      for (int i = 0; i < kBarriers; ++i) barrier.Wait();
      const double barrier_seconds = (NowSeconds() - begin) / kBarriers;
      begin = NowSeconds();
      result = MultiplyMany(one);
      if (thread != 0) continue;
      barriers[static_cast<size_t>(sample)] = barrier_seconds;
      arithmetic[static_cast<size_t>(sample)] = NowSeconds() - begin;
    }
  });
  return {Quantile(std::move(barriers), 0.5), Quantile(std::move(arithmetic), 0.5)};
}

bool ComputeAlike(const CorePlacement& a, const CorePlacement& b) {
  return WithinHalfAsMuchAgain(a.arithmetic_seconds, b.arithmetic_seconds);
}

double DistanceGap(double a, double b) { return std::abs(std::log(a / b)); }

bool AreAlike(const CorePlacement& a, const CorePlacement& b) {
  return WithinHalfAsMuchAgain(a.barrier_seconds, b.barrier_seconds) && ComputeAlike(a, b);
}

bool IsBetter(const CorePlacement& a, const CorePlacement& b) {
  return ComputeAlike(a, b) ? a.barrier_seconds < b.barrier_seconds
                            : a.arithmetic_seconds < b.arithmetic_seconds;
}

CorePlacement BetterOf(const CorePlacement& best, const CorePlacement& seen) {
  return !best.is_known() || IsBetter(seen, best) ? seen : best;
}

}  // namespace tilesmith
