// What a piece of code opens, seen from outside of its process.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace tilesmith {

// The paths, as they are given to the system, of all files that `action` opens in a child process, which is
// traced. What it throws is left aside. nullopt where tracing is not allowed, or the processor is not one
// whose registers are known here.
std::optional<std::vector<std::string>> OpenedFiles(const std::function<void()>& action);

}  // namespace tilesmith
