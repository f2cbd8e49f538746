#include "tools/ort/plugin/options.h"

#include <fmt/format.h>

#include <charconv>
#include <sstream>

#include "layouts/base/error.h"

namespace tilesmith {
namespace {

int ParseThreads(const std::string& text) {
  int threads = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), threads);
  if (error != std::errc() || end != text.data() + text.size() || threads < 0)
    throw Error(ErrorCode::kUsage,
                fmt::format("the option threads must be a number of at least 0, got {}", text));
  return threads;
}

}  // namespace

PluginOptions ParsePluginOptions(const std::map<std::string, std::string>& texts) {
  PluginOptions options;
  for (const auto& [name, text] : texts) {
    if (name == "plan") {
      std::istringstream plans(text);
      for (std::string plan; std::getline(plans, plan, ';');)
        if (!plan.empty()) options.plans.push_back(plan);
    } else if (name == "threads") {
      options.threads = ParseThreads(text);
    } else if (name == "strict") {
      if (text != "0" && text != "1")
        throw Error(ErrorCode::kUsage, fmt::format("the option strict must be 0 or 1, got {}", text));
      options.strict = text == "1";
    } else if (name == "dump") {
      options.dump = text;
    } else {
      throw Error(ErrorCode::kUsage, fmt::format("no option {} (known: dump, plan, strict, threads)", name));
    }
  }
  return options;
}

}  // namespace tilesmith
