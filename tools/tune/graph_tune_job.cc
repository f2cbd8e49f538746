#include "tools/tune/graph_tune_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <utility>

#include "layouts/base/text_file.h"
#include "layouts/measure/clock.h"
#include "ops/networks/networks.h"
#include "tools/peers/scratch_folder.h"
#include "tuner/measure/child_process.h"
#include "tuner/records/json_fields.h"

namespace tilesmith {
namespace {

using nlohmann::json;

constexpr const char* kJobOptions[] = {"batch",
                                       "input-shape",
                                       "max-elements",
                                       "max-memory",
                                       "any-machine",
                                       "default-schedules",
                                       "precision",
                                       "solver",
                                       "interpolate-costs",
                                       "no-fusion",
                                       "max-error",
                                       "forbid",
                                       "input-layout",
                                       "output-layout",
                                       "threads",
                                       "wait",
                                       "max-isa",
                                       "time-budget",
                                       "rounds",
                                       "time",
                                       "max-weights",
                                       "variants",
                                       "check",
                                       "nodes",
                                       "no-baselines",
                                       "max-output-error",
                                       "json"};

constexpr double kMaxJobSeconds = 12 * 3600;  // that nobody would ask for
constexpr size_t kMaxWarnings = 20, kMaxTextBytes = 1000;

std::vector<std::string> TextsField(const json& object, const char* name) {
  const json& texts = JsonField(object, name);
  if (!texts.is_array()) throw Error(ErrorCode::kUsage, fmt::format("field \"{}\" is no array", name));
  std::vector<std::string> values;
  for (const json& text : texts) {
    if (!text.is_string()) throw Error(ErrorCode::kUsage, fmt::format("field \"{}\" holds no text", name));
    values.push_back(text.get<std::string>());
  }
  return values;
}

std::string Dump(const json& object) { return object.dump(-1, ' ', false, json::error_handler_t::replace); }

// What a child process has written to its folder, as far as it was not seen yet.
class FolderNews {
 public:
  FolderNews(const ScratchFolder& folder, size_t known_costs) : folder_(folder), costs_at_(known_costs) {}

  FarmJobResult Look() {
    using namespace graph_tune_files;
    FarmJobResult result;
    std::string plan = ReadIfThere(kPlan);
    if (plan != plan_ && !plan.empty()) result.files[kPlan] = plan_ = std::move(plan);
    std::string costs = LinesBehind(kCosts, costs_at_);
    if (!costs.empty()) result.files[kCosts] = std::move(costs);
    std::istringstream lines(LinesBehind(kErrors, errors_at_));
    GraphTuneJobNews news;
    for (std::string line; std::getline(lines, line);) {
      constexpr std::string_view kWarning = "warning: ";
      line.resize(std::min(line.size(), kMaxTextBytes));
      last_line_ = line;
      if (!line.starts_with(kWarning)) {
        stage_ = line;
      } else if (++warnings_ <= kMaxWarnings) {
        news.warnings.push_back(line.substr(kWarning.size()));
      }
    }
    news.stage = stage_;
    result.text = ToText(news);
    return result;
  }

  FarmJobResult Last(const ProcessEnd& end) {
    using namespace graph_tune_files;
    FarmJobResult result = Look();
    GraphTuneJobNews news = GraphTuneJobNewsFromText(result.text);
    news.code = end.signaled ? static_cast<int>(ErrorCode::kEnvironment) : end.value;
    constexpr std::string_view kCommand = "tilesmith graph-tune: ";
    if (end.signaled) {
      news.error = "on the worker graph-tune was " + end.ToString();
    } else if (end.value != 0) {
      news.error = last_line_.starts_with(kCommand) ? last_line_.substr(kCommand.size()) : end.ToString();
    }
    for (const char* name : {kOutput, kSaved, kReport}) {
      std::string text = ReadIfThere(name);
      if (!text.empty()) result.files[name] = std::move(text);
    }
    result.text = ToText(news);
    return result;
  }

 private:
  std::string ReadIfThere(const char* name) const {
    const std::string path = folder_.File(name);
    std::error_code missing;
    return std::filesystem::exists(path, missing) ? ReadTextFile(path) : "";
  }

  // The whole lines of a file that grows.
  std::string LinesBehind(const char* name, size_t& at) const {
    std::string text = ReadIfThere(name);
    const size_t end = text.rfind('\n') + 1;  // 0 without one
    if (end <= at) return "";
    text = text.substr(at, end - at);
    at = end;
    return text;
  }

  const ScratchFolder& folder_;
  size_t costs_at_, errors_at_ = 0, warnings_ = 0;
  std::string plan_, stage_, last_line_;
};

}  // namespace

bool IsJobOption(std::string_view option) {
  const size_t equals = option.find('=');
  if (!option.starts_with("--") || equals == std::string_view::npos) return false;
  return std::ranges::find(kJobOptions, option.substr(2, equals - 2)) != std::end(kJobOptions);
}

bool IsModelFileName(std::string_view name) {
  return IsFarmName(name) && name.ends_with(".onnx") && name[0] != '.' && name[0] != '-';
}

std::string ToText(const GraphTuneJob& job) {
  return Dump({{"model", job.model},
               {"options", job.options},
               {"log", job.log},
               {"save", job.save},
               {"report", job.report},
               {"plan_shown", job.plan_shown},
               {"command", job.command},
               {"columns", job.columns}});
}

GraphTuneJob GraphTuneJobFromText(const std::string& text) {
  const json object = ParseJson(text);
  GraphTuneJob job;
  job.model = JsonGet<std::string>(object, "model");
  if (!IsBuiltInNetwork(job.model) && !IsModelFileName(job.model))
    throw Error(ErrorCode::kUsage, "field \"model\" is neither a built-in network nor FILE.onnx");
  job.options = TextsField(object, "options");
  for (const std::string& option : job.options) {
    if (!IsJobOption(option))
      throw Error(ErrorCode::kUsage, "does not take " + option.substr(0, option.find('=')));
  }
  job.log = JsonGet<bool>(object, "log");
  job.save = JsonGet<bool>(object, "save");
  job.report = JsonGet<bool>(object, "report");
  job.plan_shown = JsonGet<std::string>(object, "plan_shown");
  job.command = JsonGet<std::string>(object, "command");
  job.columns = JsonGet<int64_t>(object, "columns");
  return job;
}

std::vector<std::string> ArgumentsOf(const GraphTuneJob& job) {
  using namespace graph_tune_files;
  std::vector<std::string> arguments = {job.model, fmt::format("--output={}", kPlan),
                                        fmt::format("--costs={}", kCosts)};
  if (job.log) arguments.push_back(fmt::format("--log={}", kLog));
  if (job.save) arguments.push_back(fmt::format("--save={}", kSaved));
  if (job.report) arguments.push_back(fmt::format("--report={}", kReport));
  arguments.insert(arguments.end(), job.options.begin(), job.options.end());
  return arguments;
}

std::string ToText(const GraphTuneJobNews& news) {
  json object = {{"stage", news.stage}, {"warnings", news.warnings}, {"error", news.error}};
  if (news.code) object["code"] = *news.code;
  return Dump(object);
}

GraphTuneJobNews GraphTuneJobNewsFromText(const std::string& text) {
  const json object = ParseJson(text);
  GraphTuneJobNews news;
  news.stage = JsonGet<std::string>(object, "stage");
  news.warnings = TextsField(object, "warnings");
  news.error = JsonGet<std::string>(object, "error");
  if (object.contains("code")) news.code = JsonGet<int>(object, "code");
  return news;
}

std::optional<FarmJobResult> DoGraphTuneJob(const FarmJobDesk& desk) {
  using namespace graph_tune_files;
  const GraphTuneJob job = GraphTuneJobFromText(desk.job.text);
  const ScratchFolder folder;
  WriteTextFile(folder.File(kJob), desk.job.text);
  if (!IsBuiltInNetwork(job.model)) WriteTextFile(folder.File(job.model), desk.file(kModel));
  if (job.log) WriteTextFile(folder.File(kLog), desk.file(kLog));
  const std::string costs = desk.file(kCosts);
  WriteTextFile(folder.File(kCosts), costs);

  ChildProcess child({"/proc/self/exe", "graph-tune-job", folder.File("")});
  FolderNews news(folder, costs.size());
  const double begin = NowSeconds();
  std::string said;
  while (child.channel().Receive(said, NowSeconds() + desk.report_seconds) != Transport::Receipt::kEnd) {
    if (IsStopped(desk.stop)) throw Error(ErrorCode::kInterrupted, "stopped");
    if (NowSeconds() - begin > kMaxJobSeconds)
      throw Error(ErrorCode::kUsage, fmt::format("takes longer than {:.0f} hours", kMaxJobSeconds / 3600));
    if (!desk.report(news.Look())) return std::nullopt;
  }
  if (IsStopped(desk.stop)) throw Error(ErrorCode::kInterrupted, "stopped");
  return news.Last(child.WaitForEnd());
}

}  // namespace tilesmith
