#include "layouts/measure/crossing.h"

#include <algorithm>
#include <array>
#include <vector>

#include "layouts/base/check.h"
#include "layouts/base/thread_team.h"
#include "layouts/measure/clock.h"
#include "layouts/measure/quantile.h"
#include "layouts/tensor.h"

namespace tilesmith {
namespace {

using Piece __attribute__((vector_size(16))) = uint32_t;

enum PassKind : size_t { kOwn, kReadOther, kWriteOther, kKinds };

// Two buffers of a part for each thread. Pass k reads what pass k - 1 has written and writes the other
// buffer.
class Passes {
 public:
  Passes(int64_t bytes, int threads)
      : bytes_(bytes / kLine * kLine),
        threads_(threads),
        buffers_{AlignedBuffer(static_cast<size_t>(bytes_ * threads)),
                 AlignedBuffer(static_cast<size_t>(bytes_ * threads))} {}

  // Parts wander by one thread every second pass when another thread's are to be written over: then a buffer
  // was last written by the next thread, and what is read is still the thread's own.
  void Run(PassKind kind, int64_t pass, int thread) {
    const int64_t moved = kind == kWriteOther ? pass / 2 : 0,
                  moved_before = kind == kWriteOther ? (pass - 1) / 2 : 0;
    const int64_t read = (thread + moved_before + (kind == kReadOther ? 1 : 0)) % threads_;
    const int64_t write = (thread + moved) % threads_;
    const Piece* const from = Part((pass - 1) % 2, read);
    Piece* const to = Part(pass % 2, write);
    const auto count = static_cast<size_t>(bytes_) / sizeof(Piece);
    for (size_t i = 0; i < count; ++i) to[i] = from[i] + 1;
  }

 private:
  static constexpr int64_t kLine = 64;

  Piece* Part(int64_t buffer, int64_t part) {
    return reinterpret_cast<Piece*>(static_cast<std::byte*>(buffers_[static_cast<size_t>(buffer)].data()) +
                                    part * bytes_);
  }

  const int64_t bytes_;
  const int threads_;
  std::array<AlignedBuffer, 2> buffers_;
};

}  // namespace

CrossingTiming MeasureCrossing(int64_t bytes, int threads) {
  TILESMITH_CHECK(bytes >= 64, "{} bytes", bytes);
  if (threads == 1) return {};
  constexpr int kRounds = 9, kWarmUps = 2, kPasses = 4;
  Passes passes(bytes, threads);
  std::array<std::vector<double>, kKinds> seconds;
  for (std::vector<double>& samples : seconds) samples.reserve(kRounds);
  SpinBarrier barrier(threads);
  RunOnTeam(threads, [&](int thread) {
    for (int round = 0; round < kRounds; ++round) {
      for (size_t kind = 0; kind < kKinds; ++kind) {
        double begin = 0;
        for (int64_t pass = 1; pass <= kWarmUps + kPasses; ++pass) {
          if (pass == kWarmUps + 1) begin = NowSeconds();
          passes.Run(static_cast<PassKind>(kind), pass, thread);
          barrier.Wait();
        }
        if (thread == 0) seconds[kind].push_back((NowSeconds() - begin) / kPasses);
      }
    }
  });
  const auto more = [&](PassKind kind) {
    return std::max(0.0, LowerQuartile(seconds[kind]) - LowerQuartile(seconds[kOwn]));
  };
  return {more(kReadOther), more(kWriteOther)};
}

}  // namespace tilesmith
