// The first of many names, as a message has room for them.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>
#include <string>

namespace tilesmith {

// "a, b, c and 5 more".
inline std::string SomeNames(std::span<const std::string> names, size_t most) {
  const size_t more = names.size() - std::min(names.size(), most);
  return fmt::format("{}{}", fmt::join(names.first(names.size() - more), ", "),
                     more > 0 ? fmt::format(" and {} more", more) : "");
}

}  // namespace tilesmith
