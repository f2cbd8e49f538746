#include "layouts/base/task_dealer.h"

#include <chrono>

namespace tilesmith {
namespace {

// A word of Pieces: the stage in the upper half, then the first piece that is left and the one behind the
// last.
constexpr uint64_t Pack(unsigned stage, unsigned first, unsigned end) {
  return uint64_t{stage} << 32 | uint64_t{first} << 16 | end;
}

}  // namespace

TaskDealer::TaskDealer(int threads, WaitPolicy policy)
    : threads_(threads), stage_(policy), pieces_(std::make_unique<Pieces[]>(static_cast<size_t>(threads))) {}

double TaskDealer::Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

int TaskDealer::Take(unsigned number, int owner, int count, Side side) {
  std::atomic<uint64_t>& left = pieces_[owner].left;
  uint64_t seen = left.load(std::memory_order_relaxed);
  while (true) {
    unsigned first = 0, end = static_cast<unsigned>(count);
    // The word is of an earlier stage until somebody takes the first piece of this one.
    const auto stage = static_cast<unsigned>(seen >> 32);
    const auto ahead = static_cast<int>(stage - number - 1);
    if (ahead == 0) {
      first = static_cast<unsigned>(seen >> 16 & 0xffff);
      end = static_cast<unsigned>(seen & 0xffff);
    } else if (ahead > 0) {
      return -1;
    }
    if (first >= end) return -1;
    const unsigned piece = side == Side::kFront ? first++ : --end;
    if (left.compare_exchange_weak(seen, Pack(number + 1, first, end), std::memory_order_acq_rel))
      return static_cast<int>(piece);
  }
}

void TaskDealer::Finish(int work) {
  if (done_.fetch_add(work, std::memory_order_acq_rel) + work != threads_ * kShareWork) return;
  done_.store(0, std::memory_order_relaxed);
  stage_.Advance();
}

}  // namespace tilesmith
