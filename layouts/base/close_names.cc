#include "layouts/base/close_names.h"

#include <algorithm>
#include <cctype>
#include <numeric>
#include <utility>

namespace tilesmith {
namespace {

constexpr size_t kMinPart = 4;  // letters of a name that count when they are part of the text

std::string Lower(std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

// Letters to insert, drop or replace. Source: V. Levenshtein, Binary codes capable of correcting deletions,
// insertions and reversals, Soviet Physics Doklady 10, 1966.
size_t EditDistance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i + 1);
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, diagonal + 1, row[j] + 1});
    }
  }
  return row[b.size()];
}

}  // namespace

std::vector<std::string> CloseNames(const std::string& text, const std::vector<std::string>& names,
                                    size_t most) {
  const std::string wanted = Lower(text);
  const size_t allowed = wanted.size() <= 3 ? 1 : std::max<size_t>(2, wanted.size() / 3);
  std::vector<std::pair<size_t, std::string>> close;
  for (const std::string& name : names) {
    const std::string lower = Lower(name);
    const bool contains = lower.find(wanted) != std::string::npos;
    const bool is_part = lower.size() >= kMinPart && wanted.find(lower) != std::string::npos;
    const size_t typed = contains ? 0 : EditDistance(wanted, lower);
    const size_t distance = is_part ? std::min(typed, allowed) : typed;
    if (distance <= allowed) close.emplace_back(distance, name);
  }
  std::ranges::stable_sort(close, {}, &std::pair<size_t, std::string>::first);
  close.resize(std::min(close.size(), most));
  std::vector<std::string> result;
  result.reserve(close.size());
  for (auto& [distance, name] : close) result.push_back(std::move(name));
  return result;
}

std::string MeantText(const std::string& text, const std::vector<std::string>& names) {
  const std::vector<std::string> close = CloseNames(text, names, 1);
  return close.empty() ? "" : "did you mean " + close.front() + "?";
}

}  // namespace tilesmith
