#include "tools/cli/dump_code.h"

#include "templates/base/workload_data.h"

namespace tilesmith {

void DumpConv(const ConvWorkload& workload, const std::string& template_name, const Config& config,
              const Target& cpu, const std::string& directory) {
  const WorkloadData zeros = MakeWorkloadData(workload, 0, [](Tensor&) {});
  const auto kernel = FindConvTemplate(template_name).Build(workload, config, cpu, zeros.operands().weights);
  WriteCodeDump(directory + "/" + WorkloadToString(workload), kernel->Code());
}

}  // namespace tilesmith
