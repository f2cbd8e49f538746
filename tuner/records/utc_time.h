// Times as records have them: UTC, ISO 8601, whole seconds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace tilesmith {

// "2025-01-02T03:04:05Z" of seconds since 1970.
std::string UtcText(int64_t seconds);
// The inverse; nullopt when the text is no such time.
std::optional<int64_t> UtcSeconds(const std::string& text);
std::string UtcNow();

}  // namespace tilesmith
