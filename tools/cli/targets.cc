#include "tools/cli/targets.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "layouts/base/error.h"
#include "ops/networks/networks.h"

namespace tilesmith {

void DeclareTargets(Args& args, TargetOptions* options) {
  args.OptionalPositional("MODEL|WORKLOAD", &options->model.model,
                          "A built-in network, an ONNX file, or a convolution such as ic64ih56oc64kh3ph1");
  args.Text("--suite", &options->suite, "A file of workloads, one a line, instead");
  DeclareInputOptions(args, &options->model);
}

Targets LoadTargets(const TargetOptions& options) {
  const std::string& text = options.model.model;
  if (text.empty() == options.suite.empty()) {
    throw Error(ErrorCode::kUsage, "needs a MODEL, a WORKLOAD, or --suite FILE, and only one of them");
  }
  Targets targets;
  if (!options.suite.empty()) {
    targets.tasks = ReadSuite(options.suite);
  } else if (!LooksLikeModel(text) && LooksLikeWorkload(text)) {
    targets.tasks = {{"", ParseWorkload(text), 1}};
  } else {
    targets.graph = LoadModel(options.model);
    targets.tasks = TasksOf(*targets.graph);
    if (targets.tasks.empty()) {
      throw Error(ErrorCode::kBadModel, fmt::format("{} has no convolutions", targets.graph->name()));
    }
  }
  return targets;
}

std::string LayoutsText(const LayoutPair& layouts) {
  return fmt::format("{} -> {}", layouts.in.ToString(), layouts.out.ToString());
}

}  // namespace tilesmith
