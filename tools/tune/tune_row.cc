#include "tools/tune/tune_row.h"

#include <algorithm>
#include <map>
#include <string>

namespace tilesmith {
namespace {

// Scale, shift and activation as ops of their own: the tensor is read and written once more.
double InputOpsSeconds(const ConvWorkload& workload) {
  constexpr double kBytesPerSecond = 20e9;
  const auto bytes = static_cast<double>(ElementCount(workload.main_input_shape()) * sizeof(float));
  return workload.pre.any() ? 2 * bytes / kBytesPerSecond : 0;
}

// Sizes alone.
std::string GeometryOf(ConvWorkload workload) {
  workload.post = {};
  workload.bytes.reset();
  return WorkloadToString(workload);
}

// The first row in floats with the same sizes, for one in bytes.
std::vector<size_t> FloatsLike(const ConvWorkload& workload, std::span<const TuneRow> rows) {
  for (size_t i = 0; i < rows.size(); ++i) {
    const ConvWorkload& other = rows[i].task.workload;
    if (!other.bytes && !other.fused() && GeometryOf(other) == GeometryOf(workload)) return {i};
  }
  return {};
}

}  // namespace

std::vector<double> WeightsOf(std::span<const TuneRow> rows, bool is_network) {
  constexpr double kFlopsPerSecond = 1e11;
  std::vector<double> weights;
  for (const TuneRow& row : rows) {
    const double seconds = row.baseline ? row.baseline->seconds : row.task.workload.flops() / kFlopsPerSecond;
    weights.push_back(is_network ? static_cast<double>(row.task.count) : 1 / seconds);
  }
  return weights;
}

void LinkAlternatives(std::span<const TuneRow> rows, std::vector<NetworkTask>& tasks) {
  std::map<std::string, size_t> by_workload;
  for (size_t i = 0; i < rows.size(); ++i) by_workload.emplace(WorkloadToString(rows[i].task.workload), i);
  for (size_t i = 0; i < rows.size(); ++i) {
    const ConvWorkload& workload = rows[i].task.workload;
    if (rows[i].quantized) tasks[i].replaces = FloatsLike(workload, rows);
    const bool other_type = rows[i].factors != DataType::kF32;
    if (!workload.fused() && !other_type) continue;
    std::vector<ConvWorkload> parts = workload.before;
    parts.push_back(workload.fused() ? workload.main_conv() : workload);
    std::vector<size_t> replaces;
    for (const ConvWorkload& part : parts) {
      const auto found = by_workload.find(WorkloadToString(part));
      if (found != by_workload.end() && found->second != i) replaces.push_back(found->second);
    }
    if (replaces.size() < parts.size()) continue;  // tuned for its own sake
    tasks[i].replaces = std::move(replaces);
    tasks[i].replaced_seconds = InputOpsSeconds(workload);
  }
}

double OneDnnSeconds(std::span<const TuneRow> rows) {
  double total = 0;
  for (const TuneRow& row : rows) {
    const ConvWorkload& workload = row.task.workload;
    if (workload.fused() || workload.product || row.factors != DataType::kF32 || row.quantized) continue;
    if (!row.baseline) return 0;
    total += static_cast<double>(row.task.count) * row.baseline->seconds;
  }
  return total;
}

}  // namespace tilesmith
