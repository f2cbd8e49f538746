#include "tools/cli/tasks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace tilesmith {

std::string FusionText(const ConvWorkload& workload) {
  return !workload.before.empty() ? "two convs" : workload.pre.any() ? "input ops" : "";
}

std::string ShapeText(const ConvWorkload& w) {
  if (w.product) {
    const auto [left, right] = *w.product;
    return fmt::format("{} products of {}x{}{} and {}x{}{}", w.mb, w.oh, w.ic, left ? "t" : "", w.ic, w.oc,
                       right ? "t" : "");
  }
  std::string text = fmt::format("{}{}x{}x{} -> {}x{}x{}, {}x{}", w.mb > 1 ? fmt::format("{}x", w.mb) : "",
                                 w.ic, w.ih, w.iw, w.oc, w.oh, w.ow, w.kh, w.kw);
  if (w.sh > 1 || w.sw > 1) text += fmt::format(" /{}", w.sh);
  if (w.dh > 0 || w.dw > 0) text += fmt::format(" d{}", w.dh + 1);
  if (w.g > 1) text += fmt::format(" g{}", w.g);
  if (w.post.sum) text += " +sum";
  if (w.pre.any()) text = "input ops > " + text;
  return w.before.empty() ? text : ShapeText(w.before[0]) + " > " + text;
}

namespace {

// A folder or a suffix of letters, which workloads have in names only.
bool LooksLikePath(const std::string& text) {
  if (text.find('"') != std::string::npos) return false;
  const size_t dot = text.rfind('.');
  const bool has_suffix = dot != std::string::npos && dot + 1 < text.size() &&
                          std::isalpha(static_cast<unsigned char>(text[dot + 1])) != 0;
  return has_suffix || text.find('/') != std::string::npos;
}

}  // namespace

bool LooksLikeWorkload(const std::string& whole) {
  if (LooksLikePath(whole)) return false;
  const size_t arrow = whole.rfind('>');
  const std::string text = arrow == std::string::npos ? whole : whole.substr(arrow + 1);
  const size_t letters = static_cast<size_t>(
      std::find_if(text.begin(), text.end(), [](char c) { return c < 'a' || c > 'z'; }) - text.begin());
  if (letters == 1 && text.starts_with("n\"")) return true;
  return letters >= 1 && letters <= 2 && letters < text.size() && text[letters] >= '0' &&
         text[letters] <= '9';
}

}  // namespace tilesmith
