// A child process that talks over its standard input and output.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "tuner/measure/transport.h"

namespace tilesmith {

// How a process ended.
struct ProcessEnd {
  bool signaled = false;
  int value = 0;  // the signal, or the exit code
  // "killed by SIGSEGV", "exited with code 3".
  std::string ToString() const;
  // Whether the signal is one that others send, rather than one a faulting program gets.
  bool FromOutside() const;
};

// Started by exec, never by a bare fork: of a process's threads only the one that forks goes on. It
// is in a process group of its own, so a Ctrl-C meant for the tuner does not reach it. Killed on destruction.
class ChildProcess {
 public:
  // argv[0] is looked up in PATH. Throws Error(kEnvironment) naming it and the cause.
  explicit ChildProcess(const std::vector<std::string>& argv);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  LineTransport& channel() { return channel_; }
  pid_t pid() const { return pid_; }
  // Kills it if it still runs, and waits for its end.
  ProcessEnd Kill();
  // Waits for a process whose output has ended; kills it if it lingers.
  ProcessEnd WaitForEnd();

 private:
  ProcessEnd Reap();

  pid_t pid_ = -1;
  int fd_ = -1;
  bool reaped_ = false;
  ProcessEnd end_;
  LineTransport channel_;
};

}  // namespace tilesmith
