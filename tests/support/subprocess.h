// Running programs from tests.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

namespace tilesmith {

struct ProgramResult {
  int exit_code = -1;  // 128 + signal when killed by one
  std::string out, err;
  double cpu_seconds = 0;  // of all its threads, whatever else the machine was doing
};

struct ProgramOptions {
  std::string directory = {};                 // to run in; empty: the test's own
  std::vector<std::string> environment = {};  // "NAME=value", in addition to the test's
  // What descriptors are instead of /dev/null for 0 and what the result holds for 1 and 2: the test's own, or
  // -1, closed.
  std::map<int, int> descriptors = {};
  double seconds = 240;  // then it is killed, with everything it started
};

// Runs argv to its end, in a process group of its own. argv[0] is looked up in PATH.
ProgramResult RunProgram(const std::vector<std::string>& argv, const ProgramOptions& options = {});

// Started and left running; killed with its whole group on destruction.
class BackgroundProgram {
 public:
  BackgroundProgram(const std::vector<std::string>& argv, const ProgramOptions& options = {});
  ~BackgroundProgram();
  BackgroundProgram(const BackgroundProgram&) = delete;
  BackgroundProgram& operator=(const BackgroundProgram&) = delete;

  pid_t pid() const { return pid_; }
  void Signal(int signal);  // to the program itself, not to what it started
  ProgramResult Wait();     // to its end; killed when the time is over

 private:
  std::string Take(int* fd);

  pid_t pid_ = -1;
  int out_fd_ = -1, err_fd_ = -1;
  double deadline_ = 0;
};

}  // namespace tilesmith
