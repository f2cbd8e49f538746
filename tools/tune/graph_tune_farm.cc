#include "tools/tune/graph_tune_farm.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "graph_tuner/costs/costs_file.h"
#include "graph_tuner/plan/plan_file.h"
#include "layouts/base/text_file.h"
#include "ops/graph/graph.h"
#include "ops/networks/networks.h"
#include "tools/cli/output_file.h"
#include "tools/cli/records.h"
#include "tools/cli/results_file.h"
#include "tools/cli/streams.h"
#include "tools/peers/scratch_folder.h"
#include "tools/tune/graph_tune_job.h"
#include "tuner/farm/farm_job.h"
#include "tuner/records/json_fields.h"

namespace tilesmith {
namespace {

using namespace graph_tune_files;

std::string ReadIfThere(const std::string& path) {
  std::error_code missing;
  return !path.empty() && std::filesystem::exists(path, missing) ? ReadTextFile(path) : "";
}

// Those that the job says otherwise, or that are this side's own.
bool StaysHere(const std::string& option) {
  constexpr std::string_view kOwn[] = {"--farm",  "--class", "--output", "--log",
                                       "--costs", "--save",  "--report"};
  return std::ranges::find(kOwn, std::string_view(option).substr(0, option.find('='))) != std::end(kOwn);
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
    for (const ModelOptions& size : SizesOf(arguments.model)) graphs_.push_back(LoadModel(size));
    costs_path_ = arguments.costs_path;
    if (costs_path_.empty() && !arguments.log_path.empty()) costs_path_ = CostsPathFor(arguments.log_path);
    costs_text_ = ReadIfThere(costs_path_);
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
      if (StaysHere(option) || option.starts_with("--threads=")) continue;
      if (!IsJobOption(option))
        throw Error(ErrorCode::kUsage, option.substr(0, option.find('=')) + " is not for --farm");
      job.options.push_back(option);
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
    for (ModelOptions size : SizesOf(request_.arguments.model)) {
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

FarmGraphTuned GraphTuneOnFarm(const FarmGraphTuneRequest& request, const WorkSinks& sinks) {
  return FarmGraphTuner(request, sinks).Run();
}

}  // namespace tilesmith
