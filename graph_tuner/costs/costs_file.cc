#include "graph_tuner/costs/costs_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <sstream>

#include "layouts/base/error.h"
#include "layouts/base/settings.h"
#include "layouts/base/text_file.h"
#include "tuner/records/json_fields.h"
#include "tuner/records/record.h"

namespace tilesmith {
namespace {

constexpr int kCostFormat = 2;
constexpr const char* kCostFormatField = "tilesmith_cost";

[[noreturn]] void ThrowErrno(const std::string& path, const char* what) {
  throw Error(ErrorCode::kEnvironment, fmt::format("{}: cannot {}: {}", path, what, std::strerror(errno)));
}

// Whatever else may come between.
bool MayWrite(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  const char* const written = FileExists(path) ? path.c_str() : folder.empty() ? "." : folder.c_str();
  return access(written, W_OK) == 0 || (errno != EACCES && errno != EROFS);
}

// Format 1 has only what tells machines apart. nullopt: a machine whose instructions have no name here.
std::optional<Target> TargetOfLine(const nlohmann::json& json, int format) {
  if (format > 1) return TargetFromJson(JsonField(json, "target"));
  Target target;
  target.model = JsonGet<std::string>(json, "cpu");
  target.version = JsonGet<std::string>(json, "tool");
  const auto isa = JsonGet<std::string>(json, "isa");
  for (const Isa known : kAllIsas) {
    if (isa != IsaName(known)) continue;
    target.isa = known;
    return target;
  }
  return std::nullopt;
}

}  // namespace

CostFile::CostFile(std::string path, const Target& cpu, int threads)
    : path_(std::move(path)), target_(cpu), threads_(threads) {
  if (path_.empty()) return;
  keeps_ = MayWrite(path_);
  if (!keeps_) {
    warnings_.push_back(
        fmt::format("{} may not be written to: costs that it lacks are not kept ({} names another file)",
                    path_, settings::kCosts));
  }
  if (!FileExists(path_)) return;
  constexpr int64_t kProblemsNamed = 10;
  int64_t problems = 0;
  std::istringstream in(ReadTextFile(path_));
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    torn_ = in.eof();
    if (line.empty()) continue;
    try {
      ReadLine(line);
    } catch (const Error& error) {
      if (++problems <= kProblemsNamed)
        warnings_.push_back(fmt::format("{}:{}: skipped: {}", path_, number, error.what()));
    }
  }
  if (problems > kProblemsNamed)
    warnings_.push_back(fmt::format("{}: {} more lines skipped", path_, problems - kProblemsNamed));
}

void CostFile::ReadLine(const std::string& line) {
  const nlohmann::json json = ParseJson(line);
  if (json.is_discarded()) throw Error(ErrorCode::kUsage, "not JSON (a torn line, or not a file of costs)");
  const int format = JsonGetOr<int>(json, kCostFormatField, 0);
  if (format < 1 || format > kCostFormat)
    throw Error(ErrorCode::kUsage, fmt::format("not a cost of format {}", kCostFormat));
  const auto seconds = JsonGet<double>(json, "seconds");
  if (!IsPlausibleTime(seconds)) {
    throw Error(ErrorCode::kUsage, fmt::format("field \"seconds\" is {} (allowed: 0, and {:g} to {:g})",
                                               seconds, kMinSeconds, kMaxSeconds));
  }
  const std::optional<Target> target = TargetOfLine(json, format);
  const bool ours = target && SameMachine(*target, target_) && target->version == target_.version &&
                    JsonGet<int>(json, "threads") == threads_;
  if (!ours) return;
  JsonGet<std::string>(json, "kind");
  CostKey key;
  for (const auto& [name, value] : json.items()) {
    if (name != "cpu" && name != "isa" && name != "tool" && value.is_string())
      key[name] = value.get<std::string>();
  }
  seconds_[key] = seconds;
}

std::optional<double> CostFile::Find(const CostKey& key) const {
  const auto found = seconds_.find(key);
  if (found == seconds_.end()) return std::nullopt;
  return found->second;
}

void CostFile::Add(const CostKey& key, double seconds) {
  seconds_[key] = seconds;
  if (!keeps_) return;
  nlohmann::ordered_json json;
  json[kCostFormatField] = kCostFormat;
  json["target"] = TargetToJson(target_);
  json["threads"] = threads_;
  for (const auto& [name, value] : key) json[name] = value;
  json["seconds"] = seconds;
  const std::string text = json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  Append((torn_ ? "\n" : "") + text + "\n");
  torn_ = false;
}

void CostFile::Append(const std::string& line) {
  const int file = open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file < 0) ThrowErrno(path_, "open the cost cache");
  const ssize_t written = write(file, line.data(), line.size());
  close(file);
  if (written != ssize_t(line.size())) ThrowErrno(path_, "write the cost cache");
}

}  // namespace tilesmith
