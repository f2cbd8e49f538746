#include "templates/cpu_device/task_dealer.h"

#include "layouts/measure/clock.h"

namespace tilesmith {

std::optional<TaskDealer::Pieces> TaskDealer::Take(int owner, bool own, uint64_t stage, int64_t pieces) {
  if (pieces == 0) return std::nullopt;
  std::atomic<uint64_t>& left = lefts_[static_cast<size_t>(owner)].packed;
  uint64_t seen = left.load(std::memory_order_acquire);
  while (true) {
    // Nobody has taken any of this stage's, or the stage was done while this thread was late.
    const uint64_t seen_stage = seen >> 16;
    if (seen_stage > stage + 1) return std::nullopt;
    const bool untouched = seen_stage <= stage;
    const Pieces now = untouched
                           ? Pieces{0, pieces}
                           : Pieces{static_cast<int64_t>(seen >> 8 & 255), static_cast<int64_t>(seen & 255)};
    if (now.begin == now.end) return std::nullopt;
    const int64_t count = std::max<int64_t>(1, (now.end - now.begin) / 2);
    const Pieces taken = own ? Pieces{now.begin, now.begin + count} : Pieces{now.end - count, now.end};
    const Pieces rest = own ? Pieces{taken.end, now.end} : Pieces{now.begin, taken.begin};
    const uint64_t wanted =
        (stage + 1) << 16 | static_cast<uint64_t>(rest.begin) << 8 | static_cast<uint64_t>(rest.end);
    if (left.compare_exchange_weak(seen, wanted, std::memory_order_acq_rel, std::memory_order_acquire))
      return taken;
  }
}

std::optional<int> TaskDealer::Near(int thread, int hop) const {
  const int distance = (hop + 1) / 2;
  const int near = hop % 2 == 1 ? thread + distance : thread - distance;
  if (near < 0 || near >= threads_) return std::nullopt;
  return near;
}

void TaskDealer::Wait(Generation& generation, unsigned wanted, Seat& seat) {
  constexpr int kMomentPauses = 64;
  if (generation.SpinUntil(wanted, kMomentPauses)) return;
  const double begin = NowSeconds();
  if (!generation.SpinUntil(wanted)) {
    const double late = NowSeconds();
    generation.WaitUntil(wanted);
    seat.waits.late_seconds += NowSeconds() - late;
  }
  seat.waits.seconds += NowSeconds() - begin;
}

}  // namespace tilesmith
