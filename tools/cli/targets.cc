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

std::string NoBytes(const std::string& source) {
  return fmt::format(
      "{} in int8: a convolution of bytes has nothing fused in front of it, and no activation "
      "but relu and clip",
      source);
}

// Leaves out what is none of bytes.
void TakeInBytes(std::vector<Suite>& suites) {
  for (Suite& suite : suites) {
    std::erase_if(suite.rows, [](const SuiteRow& row) { return !InBytes(row.task.workload); });
    for (SuiteRow& row : suite.rows) row.task.workload = *InBytes(row.task.workload);
  }
  std::erase_if(suites, [](const Suite& suite) { return suite.rows.empty(); });
}

}  // namespace

bool TargetOptions::is_model() const {
  return suite.empty() && (LooksLikeModel(model.model) || !LooksLikeWorkload(model.model));
}

std::optional<ConvWorkload> InBytes(ConvWorkload w) {
  if (w.bytes) return w;
  const ActivationKind kind = w.post.activation.kind;
  const bool clamps =
      kind == ActivationKind::kNone || kind == ActivationKind::kRelu || kind == ActivationKind::kClip;
  if (!clamps || w.fused() || w.product) return std::nullopt;
  w.post.activation = {};
  w.bytes = ByteTypes{};
  return w;
}

Targets LoadTargets(const TargetOptions& options) {
  const std::string& text = options.model.model;
  if (text.empty() == options.suite.empty()) {
    throw Error(ErrorCode::kUsage, "needs a MODEL, a WORKLOAD, or --suite NAME, and only one of them");
  }
  Targets targets;
  if (!options.suite.empty()) {
    targets.suites = LoadSuites(options.suite);
    if (options.in_bytes) TakeInBytes(targets.suites);
    targets.tasks = TasksOf(targets.suites);
    if (targets.tasks.empty()) throw Error(ErrorCode::kUsage, NoBytes(options.suite));
  } else if (!options.is_model()) {
    const ConvWorkload given = ParseWorkload(text);
    const std::optional<ConvWorkload> workload = options.in_bytes ? InBytes(given) : given;
    if (!workload) throw Error(ErrorCode::kUsage, NoBytes(text));
    targets.tasks = {{"", *workload, 1}};
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
