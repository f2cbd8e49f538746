#include "tools/cli/interrupt.h"

#include <csignal>

namespace tilesmith {
namespace {

StopFlag interrupted = false;
static_assert(StopFlag::is_always_lock_free, "signal handlers may not lock");

void OnSignal(int) { interrupted.store(true, std::memory_order_relaxed); }

}  // namespace

void CatchInterrupts() {
  struct sigaction action {};
  action.sa_handler = OnSignal;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

const StopFlag& InterruptFlag() { return interrupted; }

void IgnoreInterrupts() { std::signal(SIGINT, SIG_IGN); }

}  // namespace tilesmith
