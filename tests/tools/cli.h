// Shared by the tests of the command line.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/subprocess.h"

namespace tilesmith {

constexpr const char* kSmallConv = "mb1ic16ih14oc16oh14kh3ph1+bias+relu";  // tuned in a moment

// Tests neither know nor touch the user's database: a tuning has none unless it names one.
inline ProgramResult Tilesmith(std::vector<std::string> arguments, const ProgramOptions& options = {}) {
  const bool tunes = !arguments.empty() && (arguments[0] == "tune" || arguments[0] == "optimize");
  const bool names_one = std::find(arguments.begin(), arguments.end(), "--db") != arguments.end();
  if (tunes && !names_one && options.environment.empty()) arguments.insert(arguments.begin() + 1, "--no-db");
  arguments.insert(arguments.begin(), TILESMITH_BINARY);
  return RunProgram(arguments, options);
}

inline auto Lines(const std::string& text) { return std::count(text.begin(), text.end(), '\n'); }

// Without the warning that other programs run, as other tests do.
inline std::string WithoutDisturbance(const std::string& text) {
  constexpr std::string_view kWarning = "warning: the machine is disturbed";
  return text.starts_with(kWarning) ? text.substr(text.find('\n') + 1) : text;
}

// Nothing on stdout, one line on stderr that names command and problem, and the exit code.
inline void ExpectRefusal(const std::vector<std::string>& arguments, int exit_code,
                          const std::string& mentions, const ProgramOptions& options = {}) {
  const ProgramResult result = Tilesmith(arguments, options);
  SCOPED_TRACE(result.err);
  EXPECT_EQ(result.exit_code, exit_code);
  EXPECT_EQ(result.out, "");
  const std::string error = WithoutDisturbance(result.err);
  EXPECT_EQ(Lines(error), 1);
  const std::string command = arguments[0] == "log" ? "log " + arguments[1] : arguments[0];
  EXPECT_THAT(error, testing::StartsWith("tilesmith " + command + ": "));
  EXPECT_THAT(error, testing::HasSubstr(mentions));
}

}  // namespace tilesmith
