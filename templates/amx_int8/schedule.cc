#include "templates/amx_int8/schedule.h"

#include "templates/amx_int8/config.h"

namespace tilesmith::amx_int8 {

Schedule MakeSchedule(const ConvWorkload& workload, const amx::AmxConfig& config, const Target& cpu) {
  Schedule s{amx::MakeSchedule(workload, config, cpu, kNumberBytes, workload.bytes->in, workload.bytes->out)};
  s.as_it_is = amx::AreInPlace(s);
  return s;
}

}  // namespace tilesmith::amx_int8
