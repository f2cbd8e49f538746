// The process that runs inputs, one after the other, until one ends it.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/fuzz/target.h"

namespace tilesmith::fuzz {

constexpr size_t kMaxInputBytes = size_t{1} << 14;

// Memory that outlives the worker: what it was doing when it died.
struct SharedState {
  std::atomic<int64_t> runs;            // begun
  std::atomic<int64_t> began_cpu_ns;    // of the running input, in the worker's CPU time
  std::atomic<int64_t> began_clock_ns;  // likewise, steady clock; 0 between inputs
  std::atomic<int64_t> features, corpus;
  size_t bytes;
  char input[kMaxInputBytes];
  char problem[1024];  // an exception, in words
};

struct WorkerOptions {
  std::vector<std::string> inputs;  // run first, and mutated after that
  int64_t runs = 0;                 // mutated inputs
  double seconds = 0;               // 0: no limit but runs
  uint64_t seed = 1;
  bool say = false;                       // of each input, on stdout, whether it was accepted
  std::filesystem::path new_inputs = {};  // folder for inputs that reached something new; "" for none
};

constexpr int kExitFound = 99;  // an exception: SharedState::problem says which

// Runs the inputs, then mutations of them. Returns the process's exit code.
int RunWorker(const FuzzTarget& target, const WorkerOptions& options, SharedState& state);

// "3f09..." for file names.
std::string HashText(std::string_view bytes);
int64_t SteadyNanoseconds();

}  // namespace tilesmith::fuzz
