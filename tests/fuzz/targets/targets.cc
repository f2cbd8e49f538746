#include "tests/fuzz/targets/targets.h"

#include <array>

namespace tilesmith::fuzz {

std::span<const FuzzTarget> Targets() {
  static const std::array targets{
      OnnxTarget(),    CompiledTarget(), OnnxTensorTarget(), ModelOptionsTarget(), LogLineTarget(),
      LogFileTarget(), AutotvmTarget(),  DatabaseTarget(),   PlanTarget(),         CostsTarget(),
      SpaceTarget(),   SuiteTarget(),    WorkloadTarget(),   ConfigTarget(),       WorkerProtocolTarget(),
      NpyTarget(),     NpzTarget(),      QuantizeTarget(),   FarmTarget(),         ModelPartsTarget(),
  };
  return targets;
}

}  // namespace tilesmith::fuzz
