#include "tools/cli/interrupt.h"

#include <csignal>

namespace tilesmith {
namespace {

volatile std::sig_atomic_t interrupted = 0;

void OnSignal(int) { interrupted = 1; }

}  // namespace

void CatchInterrupts() {
  struct sigaction action {};
  action.sa_handler = OnSignal;
  action.sa_flags = int(SA_RESETHAND);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

bool Interrupted() { return interrupted != 0; }

void IgnoreFileSizeSignal() { std::signal(SIGXFSZ, SIG_IGN); }

void IgnoreInterrupts() { std::signal(SIGINT, SIG_IGN); }

}  // namespace tilesmith
