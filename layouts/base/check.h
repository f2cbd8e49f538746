// Checks of our own invariants. They stay on in Release: a wrong answer costs more than a branch.
#pragma once

#include <fmt/format.h>

#include "layouts/base/error.h"

namespace tilesmith {

[[noreturn]] inline void CheckFailed(const char* file, int line, const char* condition,
                                     const std::string& detail) {
  throw Error(ErrorCode::kInternal, fmt::format("{}:{}: check failed: {}{}{}", file, line, condition,
                                                detail.empty() ? "" : ": ", detail));
}

}  // namespace tilesmith

// TILESMITH_CHECK(condition) or TILESMITH_CHECK(condition, "format {}", argument).
#define TILESMITH_CHECK(condition, ...)                                                        \
  do {                                                                                         \
    if (!(condition)) [[unlikely]]                                                             \
      ::tilesmith::CheckFailed(__FILE__, __LINE__, #condition, ::fmt::format("" __VA_ARGS__)); \
  } while (false)
