#include "templates/amx_bf16/schedule.h"

namespace tilesmith::amx_bf16 {

Schedule MakeSchedule(const ConvWorkload& workload, const AmxBf16Config& config, const Target& cpu) {
  Schedule s{amx::MakeSchedule(workload, config.common, cpu, kBf16Bytes, config.types.in, config.types.out)};
  s.as_it_is = s.in.type() == DataType::kBf16 && !workload.pre.any() && amx::AreInPlace(s);
  return s;
}

}  // namespace tilesmith::amx_bf16
