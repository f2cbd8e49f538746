#include "tools/cli/version.h"

#include <fmt/format.h>

#include "ops/onnx/onnx_import.h"
#include "tools/cli/machine.h"
#include "tools/cli/results_file.h"
#include "tools/onednn/onednn.h"
#include "tuner/cost_model/boosted_trees.h"

namespace tilesmith {

std::string VersionText() {
  const Target cpu = CappedCpu("");
  return fmt::format(
      "tilesmith {} (commit {})\n"
      "instructions: {}, of {}\n"
      "libraries: oneDNN {}, XGBoost {}, protobuf {}; compiled by GCC {}\n",
      TILESMITH_VERSION, CommitOfBuild(), IsaName(cpu.isa), cpu.model, OneDnnVersion(), XgboostVersion(),
      ProtobufVersion(), __VERSION__);
}

}  // namespace tilesmith
