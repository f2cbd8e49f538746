#include "layouts/measure/crossing.h"

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "layouts/base/check.h"
#include "layouts/base/thread_team.h"
#include "layouts/measure/cache_eviction.h"
#include "layouts/measure/clock.h"
#include "layouts/measure/quantile.h"

namespace tilesmith {
namespace {

using Piece __attribute__((vector_size(16))) = uint32_t;

struct alignas(64) Line {
  Piece pieces[4];
};

enum PassKind : size_t { kOwn, kReadOther, kWriteOther, kKinds };

// Two buffers of a part for each thread. Pass k reads what pass k - 1 has written and writes the other
// buffer.
class Passes {
 public:
  Passes(int64_t bytes, int threads)
      : lines_(bytes / static_cast<int64_t>(sizeof(Line))),
        threads_(threads),
        buffers_{std::vector<Line>(static_cast<size_t>(lines_ * threads)),
                 std::vector<Line>(static_cast<size_t>(lines_ * threads))} {}

  // Parts wander by one thread every second pass when another thread's are to be written over: then a buffer
  // was last written by the next thread, and what is read is still the thread's own.
  void Run(PassKind kind, int64_t pass, int thread) {
    const auto moved = [&](int64_t at) { return kind == kWriteOther ? at / 2 : 0; };
    const int64_t read = (thread + moved(pass - 1) + (kind == kReadOther ? 1 : 0)) % threads_;
    const int64_t write = (thread + moved(pass)) % threads_;
    const Line* const from = Part((pass - 1) % 2, read);
    Line* const to = Part(pass % 2, write);
    for (int64_t i = 0; i < lines_; ++i)
      for (int piece = 0; piece < 4; ++piece) to[i].pieces[piece] = from[i].pieces[piece] + 1;
  }

 private:
  Line* Part(int64_t buffer, int64_t part) {
    return buffers_[static_cast<size_t>(buffer)].data() + part * lines_;
  }

  const int64_t lines_;
  const int threads_;
  std::array<std::vector<Line>, 2> buffers_;
};

// Seconds of reading `parts`, one for each thread, that are in no cache: of all of them, or of the own one.
double ReadWeights(const std::vector<std::vector<Line>>& parts, bool all) {
  for (const std::vector<Line>& part : parts) EvictFromCaches(std::as_bytes(std::span(part)));
  const auto threads = static_cast<int>(parts.size());
  SpinBarrier barrier(threads);
  double seconds = 0;
  RunOnTeam(threads, [&](int thread) {
    Piece sum = {};
    barrier.Wait();
    const double begin = NowSeconds();
    for (int i = 0; i < (all ? threads : 1); ++i) {
      for (const Line& line : parts[static_cast<size_t>((all ? i : thread))]) sum += line.pieces[0];
    }
    [[maybe_unused]] const volatile uint32_t read = sum[0];
    barrier.Wait();
    if (thread == 0) seconds = NowSeconds() - begin;
  });
  return seconds;
}

double MeasureWeights(int64_t bytes, int threads) {
  constexpr int kRounds = 9;
  const int64_t lines = std::max<int64_t>(1, bytes / static_cast<int64_t>(sizeof(Line)) / (threads - 1));
  const std::vector<std::vector<Line>> parts(static_cast<size_t>(threads),
                                             std::vector<Line>(static_cast<size_t>(lines)));
  std::vector<double> own, all;
  for (int round = 0; round < kRounds; ++round) {
    own.push_back(ReadWeights(parts, false));
    all.push_back(ReadWeights(parts, true));
  }
  return std::max(0.0, LowerQuartile(std::move(all)) - LowerQuartile(std::move(own)));
}

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
  return {{more(kReadOther), more(kWriteOther), MeasureWeights(bytes, threads)}};
}

}  // namespace tilesmith
