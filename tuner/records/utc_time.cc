#include "tuner/records/utc_time.h"

#include <ctime>

namespace tilesmith {
namespace {

constexpr const char* kFormat = "%Y-%m-%dT%H:%M:%SZ";

}  // namespace

std::string UtcText(int64_t seconds) {
  const std::time_t time = seconds;
  std::tm parts = {};
  gmtime_r(&time, &parts);
  char text[64];
  return {text, std::strftime(text, sizeof(text), kFormat, &parts)};
}

std::optional<int64_t> UtcSeconds(const std::string& text) {
  std::tm parts = {};
  const char* end = strptime(text.c_str(), kFormat, &parts);
  if (end == nullptr || *end != '\0') return std::nullopt;
  return timegm(&parts);
}

std::string UtcNow() { return UtcText(std::time(nullptr)); }

}  // namespace tilesmith
