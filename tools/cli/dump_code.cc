#include "tools/cli/dump_code.h"

#include "ops/conv/conv_data.h"

namespace tilesmith {

void DumpConv(const ConvWorkload& workload, const std::string& template_name, const Config& config,
              const Target& cpu, const std::string& directory) {
  const ConvData zeros = MakeConvData(workload, [](Tensor&) {});
  const auto kernel =
      FindConvTemplate(template_name).Build(workload, config, cpu, WeightsOf(zeros.tensors()));
  WriteCodeDump(directory + "/" + WorkloadToString(workload), kernel->Code());
}

}  // namespace tilesmith
