#include "tools/cli/targets.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>
#include <set>
#include <tuple>

#include "layouts/base/error.h"
#include "ops/networks/networks.h"

namespace tilesmith {

void DeclareTargets(Args& args, TargetOptions* options) {
  args.OptionalPositional("MODEL|WORKLOAD", &options->model.model,
                          "A built-in network, an ONNX file, or a convolution such as ic64ih56oc64kh3ph1");
  args.Text("--suite", &options->suite,
            "Instead: a built-in suite, \"all\", or a file of workloads, one a line", "NAME|FILE");
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

// The workload of bytes in the place of one of floats; none for ops fused in front and other activations.
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

std::string NoBytes(const std::string& source) {
  return fmt::format(
      "{} in int8: convolutions of bytes have nothing fused in front of them, and no activation "
      "but relu and clip; products of two inputs are of floats",
      source);
}

Suite InBytes(const Suite& given) {
  Suite suite = given;
  suite.geomean_goal = 0;
  suite.rows.clear();
  std::set<std::string> seen;
  for (const SuiteRow& row : given.rows) {
    const std::optional<ConvWorkload> workload = InBytes(row.task.workload);
    if (!workload || !seen.insert(WorkloadToString(*workload)).second) continue;
    suite.rows.push_back({.task = row.task});
    suite.rows.back().task.workload = *workload;
  }
  return suite;
}

}  // namespace

bool TargetOptions::of_workloads() const {
  return !suite.empty() || (!LooksLikeModel(model.model) && LooksLikeWorkload(model.model));
}

Targets LoadTargets(const TargetOptions& options) {
  const std::string& text = options.model.model;
  if (text.empty() == options.suite.empty()) {
    throw Error(ErrorCode::kUsage, "needs a MODEL, a WORKLOAD, or --suite NAME, and only one of them");
  }
  const bool has_sizes = options.model.batch > 0 || !options.model.input_shapes.empty();
  if (has_sizes && options.of_workloads())
    throw Error(ErrorCode::kUsage,
                "--batch and --input-shape are for a MODEL: workloads say their own sizes");
  Targets targets;
  if (!options.suite.empty()) {
    targets.suites = LoadSuites(options.suite);
    if (options.in_bytes) {
      for (Suite& suite : targets.suites) suite = InBytes(suite);
      std::erase_if(targets.suites, [](const Suite& suite) { return suite.rows.empty(); });
    }
    targets.tasks = TasksOf(targets.suites);
    if (targets.tasks.empty()) throw Error(ErrorCode::kUsage, NoBytes(options.suite));
  } else if (options.of_workloads()) {
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
