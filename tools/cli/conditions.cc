#include "tools/cli/conditions.h"

namespace tilesmith {

void DeclareConditions(Args& args, std::string* conditions) {
  args.Choice(
      "--conditions", conditions, {"auto", "warm", "cold"},
      "Weights warm in cache or from memory; auto: cold for networks whose weights take more than half of "
      "the last-level cache");
}

bool ColdWeights(const std::string& conditions, const std::vector<ConvTask>& tasks, bool is_network,
                 const Target& cpu) {
  if (conditions != "auto") return conditions == "cold";
  if (!is_network) return false;
  int64_t bytes = 0;
  for (const ConvTask& task : tasks) {
    if (task.workload.product) continue;
    const DataType type = task.workload.bytes ? DataType::kI8 : DataType::kF32;
    bytes += task.count * ElementCount(task.workload.weights_shape()) * ElementBytes(type);
  }
  return bytes > cpu.l3_bytes / 2;
}

bool ColdWeights(const std::string& conditions, const ConvTask& task) {
  return conditions == "auto" ? task.cold_weights : conditions == "cold";
}

void DeclareAccuracy(Args& args, AccuracyLimits* limits) {
  args.Real("--max-error", &limits->max_error,
            "Only schedules whose error, relative to the outputs' root mean square, was at most this");
  args.Texts("--forbid", &limits->forbidden_templates,
             "A template not to use, such as winograd; may be repeated", "NAME");
}

}  // namespace tilesmith
