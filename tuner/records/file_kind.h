// What a file is that was taken for another one: plans, logs and costs are all lines of JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace tilesmith {

// What writes lines such as this one, "a plan" or "a tuning log"; "" where that is nothing known.
std::string FileKind(const nlohmann::json& line);

}  // namespace tilesmith
