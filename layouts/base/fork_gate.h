// Forks of this process: how many there were, and what must not be under way in one of its threads meanwhile.
//
// A child has only the thread that forked. What other threads were about, with locks held and things half
// done, would stay so in it for ever; so a fork waits for that to end, and what would begin waits for the
// fork.
#pragma once

namespace tilesmith {

// While one lives, no thread but its own forks. Costs an atomic addition, in a scope of another nothing.
// Whoever holds one waits for nothing that a thread about to fork may hold.
class AwayFromForks {
 public:
  AwayFromForks();
  ~AwayFromForks();
  AwayFromForks(const AwayFromForks&) = delete;
  AwayFromForks& operator=(const AwayFromForks&) = delete;
};

// Those that led to this process from the one that loaded the library. Threads that were started at another
// count are not there. Processes that are started by exec, or by posix_spawn, are no forks.
unsigned ForkCount();

}  // namespace tilesmith
