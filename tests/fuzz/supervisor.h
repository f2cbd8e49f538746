// Watches a worker process: notices how it ends, and ends it when an input takes too much.
//
// The input is in memory that both share before it is run, so whatever happens to the worker, the supervisor
// still has it; no signal handlers are needed.
#pragma once

#include <string>

#include "tests/fuzz/worker.h"

namespace tilesmith::fuzz {

struct Limits {
  double seconds = 1;  // CPU time of one input; ten times that by the clock when it waits for something
  int64_t mib = 1024;  // of the worker's resident memory
};

struct Outcome {
  std::string finding;   // "" when the worker came to its end; else one line: what happened
  std::string input;     // that did it
  std::string messages;  // the worker's stderr: a sanitizer's report
  int64_t runs = 0, features = 0, corpus = 0;
};

// Precondition: the calling process has no other threads. Throws std::system_error.
Outcome Supervise(const FuzzTarget& target, const WorkerOptions& options, const Limits& limits);

// The smallest input that removing pieces of a finding's leads to; the finding may change on the way.
std::string Minimized(const FuzzTarget& target, std::string input, const Limits& limits);

}  // namespace tilesmith::fuzz
