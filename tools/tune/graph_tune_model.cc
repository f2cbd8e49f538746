#include "tools/tune/graph_tune_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "layouts/base/error.h"
#include "layouts/base/settings.h"
#include "tools/quantize/in_place.h"
#include "tools/tune/graph_tune_form.h"
#include "tools/tune/mixed_types.h"
#include "tools/tune/network_types.h"

namespace tilesmith {

GraphTunedModel GraphTuneModel(const GraphTuneModelRequest& request, const WorkSinks& sinks) {
  GraphTuneModelRequest complete = request;
  GraphTuningArguments& arguments = complete.arguments;
  if (request.rounds < 0 || request.rounds > kMaxRounds)
    throw Error(ErrorCode::kUsage, fmt::format("{} must be from 0 to {}, got {}", settings::kRounds,
                                               kMaxRounds, request.rounds));
  if (!complete.machine) complete.machine = OpenMachine(arguments.machine);
  const Precision precision = arguments.machine.precision;
  CheckOutputErrorLimit(request.max_output_error, precision);
  if (!arguments.model.quantization) {
    if (precision == Precision::kMixed && arguments.machine.target == kCpuDevice)
      return GraphTuneMixed(complete, sinks);
    QuantizeInPlace(precision, complete.machine, sinks, &arguments.model);
  }
  constexpr double kForComparing = 0.15;  // of the time
  if (!IsF32(precision)) complete.time_budget *= 1 - kForComparing;
  GraphTunedModel tuned = GraphTuneForm(complete, sinks);
  complete.time_budget = request.time_budget;
  if (!IsF32(precision) && !tuned.stopped) CompareTypes(complete, sinks, &tuned);
  return tuned;
}

void GraphTuneSizes(
    const GraphTuneModelRequest& request, const WorkSinks& sinks,
    const std::function<void(const GraphTuneModelRequest&, const GraphTunedModel&)>& on_tuned) {
  const std::vector<ModelOptions> sizes = SizesOf(request.arguments.model);
  const double end = request.begin + request.time_budget;
  GraphTuneModelRequest each = request;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (i > 0) each.begin = NowSeconds();
    each.time_budget = std::max(0.0, end - each.begin) / static_cast<double>(sizes.size() - i);
    // Which layers are quantised, and how, is decided in the first size: a file's plans are of one model.
    auto quantization = i > 0 ? each.others.front().quantization : request.arguments.model.quantization;
    each.arguments.model = sizes[i];
    each.arguments.model.quantization = std::move(quantization);
    if (i > 0 && each.arguments.model.quantization && each.max_output_error) {
      sinks.Warn(fmt::format("{} was held to in the first size of the inputs, whose types the others have",
                             settings::kMaxOutputError));
      each.max_output_error.reset();
      each.arguments.machine.precision = Precision::kInt8;  // what stays float is f32
    }
    const GraphTunedModel tuned = i == 0 ? GraphTuneModel(each, sinks) : GraphTuneForm(each, sinks);
    each.machine = tuned.machine;
    if (on_tuned) on_tuned(each, tuned);
    if (tuned.stopped) {
      throw Error(ErrorCode::kInterrupted,
                  fmt::format("interrupted; the {} plan so far is in {}",
                              tuned.refined.check.seconds > 0 ? "fastest" : "only", request.plan_path));
    }
    each.others.push_back(tuned.refined.plan);
  }
}

}  // namespace tilesmith
