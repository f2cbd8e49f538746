#include "tools/commands/graph_tune_farm.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

#include "graph_tuner/costs/costs_file.h"
#include "graph_tuner/plan/plan_file.h"
#include "layouts/base/text_file.h"
#include "layouts/measure/clock.h"
#include "ops/graph/graph.h"
#include "ops/networks/networks.h"
#include "tools/cli/args.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/output_file.h"
#include "tools/cli/records.h"
#include "tools/cli/results_file.h"
#include "tools/cli/streams.h"
#include "tools/commands/commands.h"
#include "tuner/farm/farm_job.h"
#include "tuner/measure/child_process.h"
#include "tuner/records/json_struct.h"

namespace tilesmith {
namespace {

using nlohmann::json;
using namespace graph_tune_files;

// "time-budget" of "--time-budget,--for".
std::set<std::string> LongNamesOf(const std::vector<ArgumentDescription>& options) {
  std::set<std::string> names;
  for (const ArgumentDescription& option : options) {
    const size_t begin = option.names.find("--");
    if (begin != std::string::npos)
      names.insert(option.names.substr(begin + 2, option.names.find(',', begin) - begin - 2));
  }
  return names;
}

// All of graph-tune's but for the farm's, and what names a file or a device of this machine.
std::set<std::string> JobOptions() {
  Args of_command, of_farm;
  const std::unique_ptr<Command> command = MakeGraphTuneCommand();
  command->Declare(of_command);
  FarmOptions farm;
  DeclareFarm(of_farm, &farm);
  std::vector<ArgumentDescription> options = of_command.Describe();
  std::erase_if(options, [](const ArgumentDescription& option) {
    constexpr std::string_view kOfThisMachine[] = {"FILE", "DIR", "FILE|DIR", "LOG", "PLAN", "DEVICE"};
    return std::ranges::find(kOfThisMachine, option.value) != std::end(kOfThisMachine);
  });
  std::set<std::string> names = LongNamesOf(options);
  for (const std::string& name : LongNamesOf(of_farm.Describe())) names.erase(name);
  return names;
}

constexpr double kMaxJobSeconds = 12 * 3600;  // that nobody would ask for
constexpr size_t kMaxWarnings = 20, kMaxTextBytes = 1000;

// What a child process has written to its folder, as far as it was not seen yet.
class FolderNews {
 public:
  FolderNews(const ScratchFolder& folder, size_t known_costs) : folder_(folder), costs_at_(known_costs) {}

  FarmJobResult Look() {
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
  static const std::set<std::string> names = JobOptions();
  return names.contains(std::string(option.substr(2, equals - 2)));
}

bool IsModelFileName(std::string_view name) {
  return IsFarmName(name) && name.ends_with(".onnx") && name[0] != '.' && name[0] != '-';
}

template <>
inline constexpr auto kFields<GraphTuneJob> = std::tuple(
    StructField{"model", &GraphTuneJob::model}, StructField{"options", &GraphTuneJob::options},
    StructField{"log", &GraphTuneJob::log}, StructField{"save", &GraphTuneJob::save},
    StructField{"report", &GraphTuneJob::report}, StructField{"plan_shown", &GraphTuneJob::plan_shown},
    StructField{"command", &GraphTuneJob::command}, StructField{"columns", &GraphTuneJob::columns});

template <>
inline constexpr auto kFields<GraphTuneJobNews> = std::tuple(
    StructField{"stage", &GraphTuneJobNews::stage}, StructField{"warnings", &GraphTuneJobNews::warnings},
    StructField{"error", &GraphTuneJobNews::error},
    StructField{"code", &GraphTuneJobNews::code, Presence::kOptional});

std::string ToText(const GraphTuneJob& job) { return JsonLine(json_struct::ObjectOf(job)); }
std::string ToText(const GraphTuneJobNews& news) { return JsonLine(json_struct::ObjectOf(news)); }

GraphTuneJob GraphTuneJobFromText(const std::string& text) {
  auto job = json_struct::StructOf<GraphTuneJob>(ParseJson(text));
  if (!IsBuiltInNetwork(job.model) && !IsModelFileName(job.model))
    throw Error(ErrorCode::kUsage, "field \"model\" is neither a built-in network nor FILE.onnx");
  for (const std::string& option : job.options) {
    if (!IsJobOption(option))
      throw Error(ErrorCode::kUsage, "does not take " + option.substr(0, option.find('=')));
  }
  return job;
}

GraphTuneJobNews GraphTuneJobNewsFromText(const std::string& text) {
  return json_struct::StructOf<GraphTuneJobNews>(ParseJson(text));
}

std::vector<std::string> ArgumentsOf(const GraphTuneJob& job) {
  std::vector<std::string> arguments = {job.model, fmt::format("--output={}", kPlan),
                                        fmt::format("--costs={}", kCosts)};
  if (job.log) arguments.push_back(fmt::format("--log={}", kLog));
  if (job.save) arguments.push_back(fmt::format("--save={}", kSaved));
  if (job.report) arguments.push_back(fmt::format("--report={}", kReport));
  arguments.insert(arguments.end(), job.options.begin(), job.options.end());
  return arguments;
}

std::optional<FarmJobResult> DoGraphTuneJob(const FarmJobDesk& desk) {
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

namespace {

// With standard input from a worker, whose end is this one's, too.
class GraphTuneJobCommand : public Command {
 public:
  GraphTuneJobCommand()
      : Command({.name = "graph-tune-job",
                 .purpose = "Do a farm's graph-tune, for a worker, which starts this itself",
                 .examples = "tilesmith graph-tune-job FOLDER",
                 .hidden = true}) {}
  void Declare(Args& args) override { args.Positional("FOLDER", &folder_, "What the job has brought"); }

  int Run() override {
    IgnoreInterrupts();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    pollfd worker = {STDIN_FILENO, POLLIN, 0};
    if (poll(&worker, 1, 0) > 0) throw Error(ErrorCode::kEnvironment, "the worker is gone");
    if (chdir(folder_.c_str()) != 0)
      throw Error(ErrorCode::kEnvironment, fmt::format("cannot enter {}: {}", folder_, std::strerror(errno)));
    Redirect(STDOUT_FILENO, kOutput);
    Redirect(STDERR_FILENO, kErrors);
    const GraphTuneJob job = GraphTuneJobFromText(ReadTextFile(kJob));
    WorkForCommand(job.command);
    setenv("COLUMNS", std::to_string(job.columns).c_str(), 1);
    std::vector<std::string> arguments = ArgumentsOf(job);
    arguments.emplace_back("--verbose");  // every stage is to be told
    SetVerbosity(arguments);
    return RunGuarded("tilesmith graph-tune", *MakeGraphTuneCommand(job.plan_shown), arguments);
  }

 private:
  static void Redirect(int fd, const char* name) {
    const int file = open(name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (file < 0 || dup2(file, fd) < 0)
      throw Error(ErrorCode::kEnvironment, fmt::format("cannot write {}: {}", name, std::strerror(errno)));
    close(file);
  }

  std::string folder_;
};

std::string TextIfThere(const std::string& path) {
  std::error_code missing;
  return !path.empty() && std::filesystem::exists(path, missing) ? ReadTextFile(path) : "";
}

class FarmGraphTuner {
 public:
  FarmGraphTuner(const FarmGraphTuneRequest& request, const WorkSinks& sinks)
      : request_(request), sinks_(sinks) {}

  FarmGraphTuned Run() {
    const GraphTuningArguments& arguments = request_.arguments;
    RequireReplaceable(request_.plan_path, OutputFormat::kPlan,
                       {request_.arguments.log_path, request_.arguments.model.model});
    CheckGraphTuning(arguments);
    if (request_.farm.class_name == "all") throw Error(ErrorCode::kUsage, "--class all is for tune");
    const FarmClass chosen = ChosenClasses(request_.farm).front();
    machine_ = OpenFarmMachine(chosen, arguments.machine);
    for (const ModelOptions& size : SizesToTune(arguments.model)) graphs_.push_back(LoadModel(size));
    costs_path_ = arguments.costs_path;
    if (costs_path_.empty() && !arguments.log_path.empty()) costs_path_ = CostsPathFor(arguments.log_path);
    costs_text_ = TextIfThere(costs_path_);
    costs_.emplace(costs_path_, machine_->target(), machine_->threads());

    FarmJobRun run({.address = FarmAddressOf(request_.farm.url),
                    .timing = {},
                    .class_name = chosen.name,
                    .job = {"", "", kGraphTuneJob, chosen.target, ToText(Job())},
                    .on_warning = sinks_.on_warning,
                    .stop = sinks_.stop});
    const std::string& model = arguments.model.model;
    if (!IsBuiltInNetwork(model))
      run.Put(kModel, InOneFile({ReadModelFile(model), FilesBeside(model).get()}, model));
    if (!arguments.log_path.empty()) {
      LoadRecords(arguments.log_path);  // which says what is wrong with it
      run.Put(kLog, ReadTextFile(arguments.log_path));
    }
    run.Put(kCosts, costs_text_);
    try {
      sinks_.Stage("waiting for a machine of class " + chosen.name);
      run.Run([&](const FarmJobNews& news) { Take(news, run); });
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kInterrupted) throw;
      throw Error(error.code(), planned_ ? "interrupted; the best plan so far is in " + request_.plan_path
                                         : "interrupted before there was a plan");
    }
    return std::move(tuned_);
  }

 private:
  GraphTuneJob Job() const {
    const ModelOptions& model = request_.arguments.model;
    GraphTuneJob job;
    const std::string name = std::filesystem::path(model.model).filename();
    job.model = IsBuiltInNetwork(model.model) ? model.model : IsModelFileName(name) ? name : "model.onnx";
    for (const std::string& option : request_.options) {
      if (IsJobOption(option) && !option.starts_with("--threads=")) job.options.push_back(option);
    }
    // Machines of a class may have more cores than others.
    job.options.push_back(fmt::format("--threads={}", machine_->threads()));
    job.log = !request_.arguments.log_path.empty();
    job.save = !request_.save_path.empty();
    job.report = !request_.report_path.empty();
    job.plan_shown = request_.plan_path;
    job.command = OwnCommand();
    job.columns = static_cast<int64_t>(OutputColumns());
    return job;
  }

  void Take(const FarmJobNews& news, FarmJobRun& run) {
    const GraphTuneJobNews told = GraphTuneJobNewsFromText(news.text);
    if (news.last && !told.code) throw Error(ErrorCode::kUsage, "field \"code\" is missing");
    if (const auto plan = news.files.find(kPlan); plan != news.files.end()) KeepPlans(plan->second);
    if (const auto costs = news.files.find(kCosts); costs != news.files.end()) {
      KeepCosts(costs->second);
      costs_text_ += costs->second;
      run.Put(kCosts, costs_text_);
    }
    for (const std::string& warning : told.warnings) sinks_.Warn(fmt::format("{}: {}", news.worker, warning));
    if (!news.last) return sinks_.Stage(fmt::format("{}: {}", news.worker, told.stage));
    tuned_.code = CodeOf(*told.code);
    tuned_.error = fmt::format("{}: {}", news.worker, told.error);
    if (tuned_.code == ErrorCode{} && !planned_) throw Error(ErrorCode::kUsage, "there is no plan");
    tuned_.output = Text(news, kOutput);
    KeepResult(request_.save_path, Text(news, kSaved));
    KeepResult(request_.report_path, Text(news, kReport));
  }

  static std::string Text(const FarmJobNews& news, const char* name) {
    const auto found = news.files.find(name);
    return found == news.files.end() ? "" : found->second;
  }

  static ErrorCode CodeOf(int code) {
    for (const ErrorCode known : {ErrorCode{}, ErrorCode::kUsage, ErrorCode::kBadModel,
                                  ErrorCode::kNoCandidate, ErrorCode::kWrongAnswer, ErrorCode::kInternal}) {
      if (static_cast<int>(known) == code) return known;
    }
    return ErrorCode::kEnvironment;
  }

  std::vector<Graph> QuantizedGraphs(const Plan& plan) const {
    std::vector<Graph> graphs;
    if (!plan.quantization) return graphs;
    for (ModelOptions size : SizesToTune(request_.arguments.model)) {
      size.quantization = plan.quantization;
      graphs.push_back(LoadModel(size));
    }
    return graphs;
  }

  void KeepPlans(const std::string& text) {
    const ScratchFolder folder;
    WriteTextFile(folder.File(kPlan), text);
    std::vector<Plan> plans = ReadPlans(folder.File(kPlan));
    for (Plan& plan : plans) {
      const std::vector<Graph> quantized = QuantizedGraphs(plan);
      const std::vector<Graph>& graphs = plan.quantization ? quantized : graphs_;
      const auto graph =
          std::ranges::find_if(graphs, [&](const Graph& one) { return GraphHash(one) == plan.graph_hash; });
      if (graph == graphs.end()) throw Error(ErrorCode::kUsage, "a plan for another network");
      CheckPlan(plan, *graph, machine_->target(), machine_->threads());
      plan.network = graph->name();
    }
    WritePlans(request_.plan_path, plans);
    planned_ = !plans.empty();
  }

  // Those of this class that are not known yet.
  void KeepCosts(const std::string& text) {
    const ScratchFolder folder;
    WriteTextFile(folder.File(kCosts), text);
    const CostFile measured(folder.File(kCosts), machine_->target(), machine_->threads());
    if (!measured.warnings().empty()) throw Error(ErrorCode::kUsage, measured.warnings().front());
    for (const auto& [key, seconds] : measured.figures()) {
      if (!costs_->Find(key)) costs_->Add(key, seconds);
    }
  }

  static void KeepResult(const std::string& path, const std::string& text) {
    if (!path.empty() && !text.empty()) WriteTextFile(path, text);
  }

  const FarmGraphTuneRequest& request_;
  const WorkSinks& sinks_;
  DevicePtr machine_;
  std::vector<Graph> graphs_;  // for each size of the inputs
  std::string costs_path_, costs_text_;
  std::optional<CostFile> costs_;
  bool planned_ = false;
  FarmGraphTuned tuned_;
};

}  // namespace

std::unique_ptr<Command> MakeGraphTuneJobCommand() { return std::make_unique<GraphTuneJobCommand>(); }

FarmGraphTuned GraphTuneOnFarm(const FarmGraphTuneRequest& request, const WorkSinks& sinks) {
  return FarmGraphTuner(request, sinks).Run();
}

}  // namespace tilesmith
