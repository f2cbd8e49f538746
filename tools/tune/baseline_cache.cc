#include "tools/tune/baseline_cache.h"

#include <fmt/format.h>

#include <fstream>
#include <utility>

#include "tuner/records/json_fields.h"

namespace tilesmith {
namespace {

OneDnnAlgorithm ParseAlgorithm(const std::string& name) {
  for (const OneDnnAlgorithm algorithm :
       {OneDnnAlgorithm::kDirect, OneDnnAlgorithm::kAuto, OneDnnAlgorithm::kWinograd})
    if (OneDnnAlgorithmName(algorithm) == name) return algorithm;
  throw Error(ErrorCode::kUsage, fmt::format("no algorithm of oneDNN: {}", name));
}

}  // namespace

std::string BaselineCache::PathFor(const std::string& log_path) {
  const std::string stem = log_path.ends_with(".jsonl") ? log_path.substr(0, log_path.size() - 6) : log_path;
  return stem + ".onednn.jsonl";
}

BaselineCache::BaselineCache(std::string path, const DevicePtr& machine)
    : path_(std::move(path)),
      machine_(fmt::format("{}, {}, {} threads, oneDNN {}", machine->target().model,
                           IsaName(machine->target().isa), machine->threads(), OneDnnVersion())) {
  Read();
}

void BaselineCache::Read() {
  std::ifstream file(path_);
  for (std::string line; std::getline(file, line);) {
    try {
      const nlohmann::json json = ParseJson(line);
      KnownBaseline baseline;
      if (JsonGet<bool>(json, "can")) {
        OneDnnSide& side = baseline.side.emplace();
        side.algorithm = ParseAlgorithm(JsonGet<std::string>(json, "algorithm"));
        side.implementation = JsonGet<std::string>(json, "implementation");
        side.layouts = JsonGet<std::string>(json, "layouts");
        side.seconds = JsonGet<double>(json, "seconds");
        if (!(side.seconds > 0)) continue;
      }
      if (json.contains("disturbed_share"))  // not in older files, which hold none that was
        baseline.disturbed_share = JsonGet<double>(json, "disturbed_share");
      baselines_.insert_or_assign(JsonGet<std::string>(json, "key"), std::move(baseline));
    } catch (const Error&) {
      continue;
    }
  }
}

std::string BaselineCache::KeyOf(const ConvWorkload& workload, bool cold_weights) const {
  return fmt::format("{}; {}; {}", WorkloadToString(workload), cold_weights ? "cold" : "warm", machine_);
}

const KnownBaseline* BaselineCache::Find(const ConvWorkload& workload, bool cold_weights) const {
  const auto found = baselines_.find(KeyOf(workload, cold_weights));
  return found == baselines_.end() ? nullptr : &found->second;
}

void BaselineCache::Add(const ConvWorkload& workload, bool cold_weights, const KnownBaseline& baseline) {
  const std::string key = KeyOf(workload, cold_weights);
  const std::optional<OneDnnSide>& side = baseline.side;
  nlohmann::json json = {
      {"key", key}, {"can", side.has_value()}, {"disturbed_share", baseline.disturbed_share}};
  if (side) {
    json["algorithm"] = OneDnnAlgorithmName(side->algorithm);
    json["implementation"] = side->implementation;
    json["layouts"] = side->layouts;
    json["seconds"] = side->seconds;
  }
  std::ofstream(path_, std::ios::app) << JsonLine(json) << '\n';
  baselines_.insert_or_assign(key, baseline);
}

}  // namespace tilesmith
