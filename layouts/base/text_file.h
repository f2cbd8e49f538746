// Whole files, read and written in one step.
#pragma once

#include <string>
#include <string_view>

namespace tilesmith {

// Replaces the file by way of a temporary beside it, so that a reader sees the old text or the new one and a
// crash or a full disk leaves the old one. Throws Error(kEnvironment) naming the path and the cause.
void WriteTextFile(const std::string& path, std::string_view text);

// Throws Error(kEnvironment) naming the path and the cause.
std::string ReadTextFile(const std::string& path);

}  // namespace tilesmith
