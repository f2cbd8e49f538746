#include "tools/api/setting_names.h"

#include <algorithm>
#include <cctype>
#include <string_view>
#include <utility>

namespace tilesmith {
namespace {

// Settings that are called otherwise than their options.
constexpr std::pair<std::string_view, std::string_view> kRenamed[] = {
    {"input-shape", "input_shapes"}, {"for", "seconds"}, {"time-budget", "seconds"}};

bool IsOfAWord(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_'; }

std::string SettingOf(std::string_view option) {
  for (const auto& [name, setting] : kRenamed) {
    if (name == option) return std::string(setting);
  }
  std::string setting(option);
  std::ranges::replace(setting, '-', '_');
  return setting;
}

}  // namespace

std::string WithSettingNames(const std::string& message) {
  std::string text;
  for (size_t at = 0; at < message.size();) {
    const bool begins_word = at == 0 || message[at - 1] == ' ' || message[at - 1] == '(';
    const bool is_option = begins_word && message.compare(at, 2, "--") == 0 && at + 2 < message.size() &&
                           std::islower(static_cast<unsigned char>(message[at + 2])) != 0;
    if (!is_option) {
      text += message[at++];
      continue;
    }
    const size_t begin = at + 2;
    at = static_cast<size_t>(
        std::find_if_not(message.begin() + static_cast<std::ptrdiff_t>(begin), message.end(), IsOfAWord) -
        message.begin());
    text += SettingOf(std::string_view(message).substr(begin, at - begin));
  }
  return text;
}

void ThrowWithSettingNames(const Error& error) { throw Error(error.code(), WithSettingNames(error.what())); }

}  // namespace tilesmith
