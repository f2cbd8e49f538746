#include "graph_tuner/planner/plan_network.h"

#include <fmt/format.h>

#include "graph_tuner/planner/network_types.h"
#include "graph_tuner/planner/plan_mixed.h"
#include "layouts/base/error.h"
#include "layouts/base/settings.h"

namespace tilesmith {

PlannedNetwork PlanNetwork(const PlanRequest& request, const WorkSinks& sinks) {
  if (request.rounds < 0 || request.rounds > kMaxRounds)
    throw Error(ErrorCode::kUsage, fmt::format("{} must be from 0 to {}, got {}", settings::kRounds,
                                               kMaxRounds, request.rounds));
  const Precision precision = request.tuning.precision;
  CheckOutputErrorLimit(request.max_output_error, precision);
  const bool on_cpu = request.machine->target().device == kCpuDevice;
  if (precision == Precision::kMixed && on_cpu && !request.quantization) return PlanMixed(request, sinks);
  constexpr double kForComparing = 0.15;  // of the time
  PlanRequest form = request;
  if (!IsF32(precision)) form.time_budget *= 1 - kForComparing;
  PlannedNetwork planned = PlanForm(form, sinks);
  if (!IsF32(precision) && !planned.stopped) CompareTypes(request, sinks, &planned);
  return planned;
}

}  // namespace tilesmith
