#include "templates/base/loop_features.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace tilesmith {
namespace {

constexpr std::array<std::string_view, 17> kNames = {
    "log_flops",    "useful_share", "fma_per_load",  "register_share", "log_code_bytes",   "log_weight_bytes",
    "weight_in_l3", "log_tasks",    "balance",       "log_task_input", "log_task_weights", "log_task_output",
    "task_in_l1",   "task_in_l2",   "output_passes", "log_scratch",    "flops_per_byte"};

double Log(double value) { return std::log2(std::max(value, 1.0)); }

// How much of `bytes` fits a cache: 1 when all does, falling towards 0.
double Fit(double bytes, int64_t cache_bytes) {
  return cache_bytes <= 0 ? 0 : 1 / (1 + bytes / static_cast<double>(cache_bytes));
}

// Even share of the tasks against what the busiest thread gets.
double Balance(double tasks, int threads) {
  if (tasks <= 0) return 0;
  return tasks / (threads * std::ceil(tasks / threads));
}

}  // namespace

double InputBytes(const ConvWorkload& w, int64_t rows, int64_t channels) {
  const int64_t read = std::min(w.ih, (rows - 1) * w.sh + (w.kh - 1) * (w.dh + 1) + 1);
  return static_cast<double>(read * w.iw) * static_cast<double>(channels) * sizeof(float);
}

std::span<const std::string_view> FeatureNames() { return kNames; }

std::vector<float> FeatureVector(const LoopFeatures& f, const ConvWorkload& workload, const Target& cpu,
                                 int threads) {
  const double task_bytes = f.task_input_bytes + f.task_weight_bytes + f.task_output_bytes + f.scratch_bytes;
  const double all_bytes = std::max(f.tasks * task_bytes, 1.0);
  const std::array<double, kNames.size()> values = {Log(f.flops),
                                                    f.flops > 0 ? workload.flops() / f.flops : 0,
                                                    f.fma_per_load,
                                                    f.accumulators / cpu.vector_registers(),
                                                    Log(f.code_bytes),
                                                    Log(f.weight_bytes),
                                                    Fit(f.weight_bytes, cpu.l3_bytes),
                                                    Log(f.tasks),
                                                    Balance(f.tasks, threads),
                                                    Log(f.task_input_bytes),
                                                    Log(f.task_weight_bytes),
                                                    Log(f.task_output_bytes),
                                                    Fit(task_bytes, cpu.l1d_bytes),
                                                    Fit(task_bytes, cpu.l2_bytes),
                                                    f.output_passes,
                                                    Log(f.scratch_bytes),
                                                    f.flops / all_bytes};
  return {values.begin(), values.end()};
}

}  // namespace tilesmith
