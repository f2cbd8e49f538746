// What is fuzzed: each target feeds its input to one of the readers of bytes from outside.
//
// A target is one file in targets/ and one line in targets/targets.cc; its seeds are in corpus/<name>/.
// Running an input is a finding when it ends in a signal or a sanitizer's report, in an exception that is no
// Error or one of kInternal, or takes more time or memory than supervisor.h allows.
#pragma once

#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

#include "tests/fuzz/mutation.h"

namespace tilesmith::fuzz {

struct FuzzTarget {
  std::string_view name;
  std::string_view reads;  // for --help
  // Throws Error for input that is refused, anything else for a finding.
  void (*run)(const std::string& input);
  std::string (*mutate)(std::string input, Mutation& mutation);
  std::span<const std::string_view> words = {};  // what the mutator may put into text
  int short_runs = 2000;                         // of the test in the sanitizer build: a few seconds
};

std::span<const FuzzTarget> Targets();

// A property that must hold for every input.
inline void Require(bool holds, const std::string& property) {
  if (!holds) throw std::logic_error("does not hold: " + property);
}

// The input as a file in memory, so that nothing is left behind by a crash.
class InputFile {
 public:
  explicit InputFile(std::string_view bytes);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;
  std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }
  int fd() const { return fd_; }

 private:
  int fd_ = -1;
};

}  // namespace tilesmith::fuzz
