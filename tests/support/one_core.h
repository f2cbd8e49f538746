#pragma once

#include <sched.h>

namespace tilesmith {

// While it lives, this thread and the programs it starts have the core it is on and no other. Two tests at a
// time of programs that compute on every core they may use would wait for each other at every barrier.
class OneCore {
 public:
  OneCore() {
    sched_getaffinity(0, sizeof(before_), &before_);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    sched_setaffinity(0, sizeof(one), &one);
  }
  ~OneCore() { sched_setaffinity(0, sizeof(before_), &before_); }
  OneCore(const OneCore&) = delete;
  OneCore& operator=(const OneCore&) = delete;

 private:
  cpu_set_t before_;
};

}  // namespace tilesmith
