#include "layouts/crossing_benchmark.h"

#include <algorithm>
#include <vector>

#include "layouts/base/sizes.h"
#include "layouts/base/thread_team.h"
#include "layouts/measure/clock.h"
#include "layouts/measure/quantile.h"
#include "layouts/tensor.h"

namespace tilesmith {
namespace {

constexpr int kTurns = 15;

// As a layer does: all of a part is written, all of a part is read.
void WritePart(uint64_t* words, int64_t count, uint64_t value) {
  for (int64_t i = 0; i < count; ++i) words[i] = value;
}
uint64_t ReadPart(const uint64_t* words, int64_t count) {
  uint64_t sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += words[i];
  return sum;
}

}  // namespace

double MeasureCrossing(int64_t bytes, int threads) {
  constexpr int64_t kLineWords = 8;
  if (threads == 1 || bytes <= 0) return 0;
  const int64_t words = RoundUp(CeilDiv(bytes, int64_t{sizeof(uint64_t)}), kLineWords);
  AlignedBuffer buffer(static_cast<size_t>((Checked(words) * threads * int64_t{sizeof(uint64_t)}).value()));
  auto* const parts = static_cast<uint64_t*>(buffer.data());
  std::vector<double> own(kTurns), others(kTurns);
  SpinBarrier barrier(threads);
  RunOnTeam(threads, [&](int thread) {
    [[maybe_unused]] volatile uint64_t read = 0;
    for (int turn = 0; turn < 2 * kTurns; ++turn) {
      const int source = turn % 2 == 0 ? thread : (thread + 1) % threads;
      WritePart(parts + thread * words, words, static_cast<uint64_t>(turn));
      barrier.Wait();
      const double begin = NowSeconds();
      read = ReadPart(parts + source * words, words);
      barrier.Wait();
      if (thread == 0) (turn % 2 == 0 ? own : others)[static_cast<size_t>(turn / 2)] = NowSeconds() - begin;
    }
  });
  return std::max(Quantile(std::move(others), 0.5) - Quantile(std::move(own), 0.5), 0.0);
}

}  // namespace tilesmith
