#include "tools/cli/dump_code.h"

#include <vector>

namespace tilesmith {

void DumpConv(const ConvWorkload& workload, const std::string& template_name, const Config& config,
              const CpuInfo& cpu, const std::string& directory) {
  const std::vector<float> weights(size_t(ElementCount(workload.weights_shape())));
  const std::vector<float> bias(size_t(workload.oc));
  const auto kernel =
      FindConvTemplate(template_name)
          .Build(workload, config, cpu, {weights.data(), workload.post.bias ? bias.data() : nullptr});
  WriteCodeDump(directory + "/" + WorkloadToString(workload), kernel->Code());
}

}  // namespace tilesmith
