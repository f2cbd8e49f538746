// Programs that never rest, on one core: who computes there has to wait for them.
#pragma once

#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <vector>

namespace tilesmith {

class BusyPrograms {
 public:
  BusyPrograms(int count, int cpu) {
    for (int i = 0; i < count; ++i) {
      programs_.push_back(fork());
      if (programs_.back() != 0) continue;
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      cpu_set_t one;
      CPU_ZERO(&one);
      CPU_SET(cpu, &one);
      sched_setaffinity(0, sizeof(one), &one);
      for (volatile bool over = false; !over;) continue;
    }
  }
  ~BusyPrograms() {
    for (const pid_t program : programs_) {
      kill(program, SIGKILL);
      waitpid(program, nullptr, 0);
    }
  }
  BusyPrograms(const BusyPrograms&) = delete;
  BusyPrograms& operator=(const BusyPrograms&) = delete;

 private:
  std::vector<pid_t> programs_;
};

}  // namespace tilesmith
