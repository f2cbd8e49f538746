#include "tuner/records/file_kind.h"

#include <algorithm>
#include <initializer_list>
#include <nlohmann/json.hpp>

namespace tilesmith {
namespace {

struct Kind {
  const char* name;
  std::initializer_list<const char*> members;  // that its lines have
};

const Kind kKinds[] = {
    {"a tuning log", {"tilesmith"}},
    {"a plan", {"tilesmith_plan"}},
    {"a file of costs", {"tilesmith_cost"}},
    {"a measured space", {"tilesmith_space"}},
    {"a cost model", {"checksum", "feature_version"}},
    {"a log of AutoTVM's, which `tilesmith log import` reads", {"input", "config", "result"}},
};

}  // namespace

std::string FileKind(const nlohmann::json& line) {
  const auto found = std::ranges::find_if(kKinds, [&](const Kind& kind) {
    return std::ranges::all_of(kind.members, [&](const char* member) { return line.contains(member); });
  });
  return found == std::end(kKinds) ? "" : found->name;
}

}  // namespace tilesmith
