#include "layouts/base/visible.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace tilesmith {
namespace {

struct Character {
  char32_t point = 0;
  size_t bytes = 0;  // 0: no UTF-8
};

// The first one of a text that is not empty. Source: The Unicode Standard, 3.9, table 3-7.
Character Decode(std::string_view text) {
  constexpr char32_t kMin[] = {0, 0, 0x80, 0x800, 0x10000};
  const auto lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x80) return {lead, 1};
  const size_t bytes = lead < 0xc0 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : lead < 0xf8 ? 4 : 0;
  if (bytes == 0 || bytes > text.size()) return {};
  char32_t point = lead & (0x7fu >> bytes);
  for (const char c : text.substr(1, bytes - 1)) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte & 0xc0) != 0x80) return {};
    point = point << 6 | (byte & 0x3f);
  }
  const bool surrogate = point >= 0xd800 && point <= 0xdfff;
  return point < kMin[bytes] || point > 0x10ffff || surrogate ? Character{} : Character{point, bytes};
}

bool IsHarmless(char32_t point) {
  constexpr struct {
    char32_t first, last;
  } kHarmful[] = {{0, 0x1f},        {0x7f, 0x9f},     {0x61c, 0x61c},  {0x200e, 0x200f},
                  {0x2028, 0x202e}, {0x2066, 0x2069}, {0xfeff, 0xfeff}};
  return std::ranges::none_of(kHarmful,
                              [&](const auto& range) { return point >= range.first && point <= range.last; });
}

std::string Show(std::string_view text, bool one_line) {
  std::string shown;
  shown.reserve(text.size());
  const auto to = std::back_inserter(shown);
  while (!text.empty()) {
    const Character character = Decode(text);
    const std::string_view bytes = text.substr(0, std::max<size_t>(character.bytes, 1));
    if (character.bytes == 0) {
      fmt::format_to(to, "\\x{:02x}", static_cast<unsigned char>(bytes[0]));
    } else if (bytes == "\n" || bytes == "\t") {
      shown += !one_line ? bytes : bytes == "\n" ? "\\n" : "\\t";
    } else if (IsHarmless(character.point)) {
      shown += bytes;
    } else {
      fmt::format_to(to, "\\u{:04x}", static_cast<uint32_t>(character.point));
    }
    text.remove_prefix(bytes.size());
  }
  return shown;
}

}  // namespace

std::string Visible(std::string_view text) { return Show(text, false); }
std::string VisibleLine(std::string_view text) { return Show(text, true); }

std::string_view Shortened(std::string_view text, size_t most) {
  if (text.size() <= most) return text;
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xc0) == 0x80) --most;
  return text.substr(0, most);
}

}  // namespace tilesmith
