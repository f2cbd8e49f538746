#include "layouts/base/fork_gate.h"

#include <pthread.h>

#include <atomic>

namespace tilesmith {
namespace {

std::atomic<int> inside{0};   // threads
std::atomic<int> closing{0};  // forks
std::atomic<unsigned> forks{0};
thread_local int depth = 0;

// Either this thread is counted before the fork looks, or it sees that the gate closes: both are in one
// order.
void Enter() {
  inside.fetch_add(1);
  while (const int closed = closing.load()) {
    inside.fetch_sub(1);
    inside.notify_all();
    closing.wait(closed);
    inside.fetch_add(1);
  }
}

void Leave() {
  inside.fetch_sub(1);
  if (closing.load() > 0) inside.notify_all();
}

void BeforeFork() {
  closing.fetch_add(1);
  const int own = depth > 0 ? 1 : 0;
  for (int others = inside.load(); others > own; others = inside.load()) inside.wait(others);
}

void BehindForkInParent() {
  closing.fetch_sub(1);
  closing.notify_all();
}

void BehindForkInChild() {
  inside = depth > 0 ? 1 : 0;
  closing = 0;
  ++forks;
}

[[maybe_unused]] const int registered = pthread_atfork(BeforeFork, BehindForkInParent, BehindForkInChild);

}  // namespace

AwayFromForks::AwayFromForks() {
  if (depth++ == 0) Enter();
}

AwayFromForks::~AwayFromForks() {
  if (--depth == 0) Leave();
}

unsigned ForkCount() { return forks.load(std::memory_order_relaxed); }

}  // namespace tilesmith
