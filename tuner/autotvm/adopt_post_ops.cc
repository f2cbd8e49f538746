#include "tuner/autotvm/adopt_post_ops.h"

#include <fmt/format.h>

#include <optional>

#include "templates/base/conv_template.h"
#include "tuner/search/nearest_config.h"

namespace tilesmith {
namespace {

bool SameConv(ConvWorkload a, ConvWorkload b) {
  a.post = b.post = {};
  return !a.fused() && a == b;
}

std::optional<Record> AsOf(const ConvWorkload& workload, Record record) {
  if (workload == record.workload) return record;
  const ConvTemplate* conv_template = KnownConvTemplate(record.template_name);
  const Target& cpu = record.target;
  if (conv_template == nullptr || !conv_template->Supports(workload, cpu).ok) return std::nullopt;
  const std::optional<Config> config = NearestConfig(conv_template->Space(workload, cpu),
                                                     conv_template->Default(workload, cpu), record.config);
  if (!config) return std::nullopt;
  if (!record.detail.empty()) record.detail += "; ";
  record.detail += fmt::format("times of {}", WorkloadToString(record.workload));
  record.workload = workload;
  record.config = *config;
  record.layouts = conv_template->Layouts(workload, *config);
  return record;
}

}  // namespace

std::vector<Record> AdoptPostOps(const Record& record, std::span<const ConvWorkload> workloads) {
  std::vector<Record> records;
  for (const ConvWorkload& workload : workloads) {
    if (!SameConv(workload, record.workload)) continue;
    if (std::optional<Record> adopted = AsOf(workload, record)) records.push_back(*std::move(adopted));
  }
  return records;
}

}  // namespace tilesmith
