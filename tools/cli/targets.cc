#include "tools/cli/targets.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>
#include <tuple>

#include "layouts/base/error.h"
#include "ops/networks/networks.h"

namespace tilesmith {

void DeclareTargets(Args& args, TargetOptions* options) {
  args.OptionalPositional("MODEL|WORKLOAD", &options->model.model,
                          "A built-in network, an ONNX file, or a convolution such as ic64ih56oc64kh3ph1");
  args.Text("--suite", &options->suite,
            "Instead: a built-in suite, \"all\", or a file of workloads, one a line");
  DeclareInputOptions(args, &options->model);
}

namespace {

std::vector<ConvTask> TasksOf(const std::vector<Suite>& suites) {
  std::vector<ConvTask> tasks;
  std::set<std::tuple<std::string, bool, std::vector<std::string>>> seen;
  for (const Suite& suite : suites) {
    for (const SuiteRow& row : suite.rows) {
      const ConvTask& task = row.task;
      if (seen.emplace(WorkloadToString(task.workload), task.cold_weights, task.forbidden_templates).second) {
        tasks.push_back(task);
      }
    }
  }
  return tasks;
}

}  // namespace

Targets LoadTargets(const TargetOptions& options) {
  const std::string& text = options.model.model;
  if (text.empty() == options.suite.empty()) {
    throw Error(ErrorCode::kUsage, "needs a MODEL, a WORKLOAD, or --suite NAME, and only one of them");
  }
  Targets targets;
  if (!options.suite.empty()) {
    targets.suites = LoadSuites(options.suite);
    targets.tasks = TasksOf(targets.suites);
  } else if (!LooksLikeModel(text) && LooksLikeWorkload(text)) {
    targets.tasks = {{"", ParseWorkload(text), 1}};
  } else {
    for (const ModelOptions& size : SizesOf(options.model)) targets.graphs.push_back(LoadModel(size));
    targets.tasks = TasksOf(targets.graphs);
  }
  return targets;
}

Targets LoadTargetsToTune(const TargetOptions& options) {
  Targets targets = LoadTargets(options);
  if (targets.tasks.empty()) {
    throw Error(ErrorCode::kBadModel,
                fmt::format("{} has no convolutions to tune", targets.graphs.front().name()));
  }
  return targets;
}

std::string LayoutsText(const LayoutPair& layouts) {
  return fmt::format("{} -> {}", layouts.in.ToString(), layouts.out.ToString());
}

}  // namespace tilesmith
