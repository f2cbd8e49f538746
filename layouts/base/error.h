// Errors a caller can cause: bad input, a broken environment, nothing to choose from.
//
// Bad input throws Error, whose message names the thing, the value and what was allowed. An unsupported
// workload and a failed trial are values, not errors. A bug of ours is a TILESMITH_CHECK (check.h).
#pragma once

#include <stdexcept>
#include <string>

namespace tilesmith {

// The values are the exit codes of the command line.
enum class ErrorCode {
  kInternal = 1,
  kUsage = 2,
  kBadModel = 3,  // unreadable, malformed or unsupported network
  kNoCandidate = 4,
  kWrongAnswer = 5,
  kTooSlow = 6,
  kEnvironment = 7,  // files, workers, hardware
  kInterrupted = 130,
};

class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ErrorCode code() const { return code_; }

 private:
  ErrorCode code_;
};

// A network that is larger than its SizeLimits (sizes.h) allow.
class LimitError : public Error {
 public:
  explicit LimitError(const std::string& message) : Error(ErrorCode::kBadModel, message) {}
};

}  // namespace tilesmith
