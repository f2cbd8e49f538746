// Writing a whole log at once.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "tuner/records/record.h"

namespace tilesmith {

// Puts the lines (without newlines of their own) in place of the file: it holds all of them or is as it was.
// Where the path is no regular file, a pipe say, they are written to it. Throws Error(kEnvironment) naming
// the path and the cause.
void ReplaceLog(const std::string& path, std::span<const std::string_view> lines);
void ReplaceLog(const std::string& path, std::span<const Record* const> records);

}  // namespace tilesmith
