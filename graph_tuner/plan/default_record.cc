#include "graph_tuner/plan/default_record.h"

#include "layouts/base/check.h"
#include "templates/base/conv_template.h"

namespace tilesmith {

Record DefaultRecord(const ConvWorkload& workload, const Target& cpu, int threads) {
  // Fewer multiplications cost exactness and memory: they have to be worth it.
  constexpr double kWorthwhile = 1.15;
  Record record;
  std::optional<double> fewest;
  for (const ConvTemplate* conv_template : ConvTemplatesFor(cpu)) {
    const bool is_first = record.template_name.empty();
    if ((!is_first && !fewest) || !conv_template->Supports(workload, cpu).ok) continue;
    Config config = conv_template->Default(workload, cpu);
    const std::optional<double> cycles = conv_template->Cycles(workload, config, cpu);
    if (!is_first && (!cycles || *cycles * kWorthwhile > *fewest)) continue;
    fewest = cycles;
    record.template_name = conv_template->Name();
    record.layouts = conv_template->Layouts(workload, config);
    record.config = std::move(config);
  }
  TILESMITH_CHECK(!record.template_name.empty(), "no template supports {}", WorkloadToString(workload));
  record.target = cpu;
  record.workload = workload;
  record.conditions.threads = threads;
  record.tuner = "default";
  return record;
}

}  // namespace tilesmith
