// graph-tune on a machine of a farm: what its job says, how a worker does it, and how it is asked for.
//
// The worker runs `graph-tune` itself, as a child process in a folder of its own that holds what the job has
// brought: so it is the same there as here, a network that takes it down costs the job, and the worker goes
// on serving.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "layouts/base/error.h"
#include "tools/cli/farm.h"
#include "tools/cli/graph_tuning.h"
#include "tuner/farm/farm_worker.h"

namespace tilesmith {

inline constexpr const char* kGraphTuneJob = "graph-tune";

// The files of a job, of what its worker tells, and of the folder.
namespace graph_tune_files {
inline constexpr const char* kModel = "model";    // of the job alone: the folder's is called as `model` says
inline constexpr const char* kLog = "log.jsonl";  // of the job
inline constexpr const char* kCosts =
    "costs.jsonl";  // of both: what is known, and what is new since the last time
inline constexpr const char* kPlan = "plan.jsonl";   // the best so far, when it is new
inline constexpr const char* kOutput = "output";     // at last: what was printed,
inline constexpr const char* kSaved = "saved.json";  // what --save and --report wrote
inline constexpr const char* kReport = "report.html";
inline constexpr const char *kErrors = "errors", *kJob = "job.json";  // of the folder
}  // namespace graph_tune_files

struct GraphTuneJob {
  std::string model;                 // a built-in network, or a file called so
  std::vector<std::string> options;  // "--rounds=2": of those that IsJobOption
  bool log = false, save = false, report = false;
  std::string plan_shown, command;  // of the coordinator
  int64_t columns = 0;              // OutputColumns
};
std::string ToText(const GraphTuneJob& job);
// Throws Error(kUsage) for what it is not: a model or an option that no job has, among others.
GraphTuneJob GraphTuneJobFromText(const std::string& text);
// The arguments of graph-tune that do it, in the folder.
std::vector<std::string> ArgumentsOf(const GraphTuneJob& job);

// Whether a worker takes "--name=value": an option of graph-tune that is not about the farm, and names no
// file and no device of this machine.
bool IsJobOption(std::string_view option);
// Whether a file of a job may be called so: "resnet.onnx", and no path.
bool IsModelFileName(std::string_view name);

// What a worker tells of it.
struct GraphTuneJobNews {
  std::string stage;                  // what it does now
  std::vector<std::string> warnings;  // since the last time
  std::optional<int> code;            // exit code, at last
  std::string error;                  // where that is not 0
};
std::string ToText(const GraphTuneJobNews& news);
GraphTuneJobNews GraphTuneJobNewsFromText(const std::string& text);

// FarmJobFunction.
std::optional<FarmJobResult> DoGraphTuneJob(const FarmJobDesk& desk);

struct FarmGraphTuneRequest {
  FarmOptions farm;
  GraphTuningArguments arguments;
  // That were given (Args::GivenOptions), `arguments` among them. Those that are no job's stay here.
  std::vector<std::string> options;
  std::string plan_path, save_path, report_path;
};

struct FarmGraphTuned {
  ErrorCode code{};  // 0: done
  std::string error;
  std::string output;  // what graph-tune prints
};

// One machine of the class measures costs and runs plans. The plan file holds the best plan so far as it
// comes, each checked to be one for the network and the class; costs are added to the file here as they come.
// Throws Error(kUsage) and Error(kEnvironment) where FarmJobRun, ChosenClasses and LoadModel do, and
// Error(kInterrupted) when it is stopped, which says whether there is a plan.
FarmGraphTuned GraphTuneOnFarm(const FarmGraphTuneRequest& request, const WorkSinks& sinks);

}  // namespace tilesmith
