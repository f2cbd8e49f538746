#include "graph_tuner/plan/default_record.h"

#include "layouts/base/check.h"
#include "templates/base/conv_template.h"

namespace tilesmith {

Record DefaultRecord(const ConvWorkload& workload, const Target& cpu, int threads) {
  for (const ConvTemplate* conv_template : ConvTemplatesFor(cpu)) {
    if (!conv_template->Supports(workload, cpu).ok) continue;
    Record record;
    record.target = cpu;
    record.workload = workload;
    record.template_name = conv_template->Name();
    record.config = conv_template->Default(workload, cpu);
    record.layouts = conv_template->Layouts(workload, record.config);
    record.conditions.threads = threads;
    record.tuner = "default";
    return record;
  }
  TILESMITH_CHECK(false, "no template supports {}", WorkloadToString(workload));
}

}  // namespace tilesmith
