#include "graph_tuner/plan/default_record.h"

#include "layouts/base/check.h"
#include "templates/base/conv_template.h"

namespace tilesmith {
namespace {

// nullopt where the template does not support the workload, or has none of the style.
std::optional<Config> DefaultOfStyle(const ConvTemplate& conv_template, const ConvWorkload& workload,
                                     const Target& cpu, DefaultStyle style) {
  if (style == DefaultStyle::kBlocks) return conv_template.DefaultIfSupported(workload, cpu);
  return conv_template.RowsDefault(workload, cpu);
}

// nullopt where no template has one.
std::optional<Record> RecordOfStyle(const ConvWorkload& workload, const Target& cpu, DefaultStyle style) {
  // Fewer multiplications cost exactness and memory: they have to be worth it.
  constexpr double kWorthwhile = 1.15;
  Record record;
  std::optional<double> fewest;
  for (const ConvTemplate* conv_template : ConvTemplatesFor(cpu, workload)) {
    const bool is_first = record.template_name.empty();
    if (!is_first && !fewest) break;
    std::optional<Config> config = DefaultOfStyle(*conv_template, workload, cpu, style);
    if (!config) continue;
    const std::optional<double> cycles = conv_template->Cycles(workload, *config, cpu);
    if (!is_first && (!cycles || *cycles * kWorthwhile > *fewest)) continue;
    fewest = cycles;
    record.template_name = conv_template->Name();
    record.layouts = conv_template->Layouts(workload, *config);
    record.config = *std::move(config);
  }
  return record.template_name.empty() ? std::nullopt : std::optional(std::move(record));
}

}  // namespace

Record DefaultRecord(const ConvWorkload& workload, const Target& cpu, int threads, DefaultStyle style) {
  Target team = cpu;
  if (style == DefaultStyle::kRows) team.cores = threads;
  std::optional<Record> found = RecordOfStyle(workload, team, style);
  if (!found) found = RecordOfStyle(workload, cpu, DefaultStyle::kBlocks);
  TILESMITH_CHECK(found.has_value(), "no template supports {}", WorkloadToString(workload));
  Record record = *std::move(found);
  record.target = cpu;
  record.workload = workload;
  record.conditions.threads = threads;
  record.tuner = "default";
  return record;
}

}  // namespace tilesmith
