#include <fmt/format.h>
#include <unistd.h>

#include <limits>
#include <optional>

#include "graph_tuner/planner/network_types.h"
#include "layouts/base/error.h"
#include "layouts/base/sizes.h"
#include "layouts/base/text_file.h"
#include "tools/api/settings.h"
#include "tools/api/tilesmith.h"
#include "tools/cli/args.h"
#include "tools/cli/system_files.h"
#include "tools/quantize/in_place.h"
#include "tools/tune/graph_tune_model.h"
#include "tools/tune/optimize_model.h"
#include "tools/tune/tune_model.h"

namespace tilesmith {
namespace {

// A path is taken as it is, a name is looked for.
std::string WorkerProgram(const std::string& program) {
  const bool is_path = program.find('/') != std::string::npos;
  if (is_path && access(program.c_str(), X_OK) == 0) return program;
  if (const auto found = is_path ? std::nullopt : FindProgram(program)) return *found;
  throw Error(ErrorCode::kEnvironment,
              fmt::format("the program {} is not {}: give the path of tilesmith's own as `program`", program,
                          is_path ? "there or cannot be run" : "on the PATH"));
}

template <typename Settings>
ModelOptions WithSettings(ModelOptions options, const Settings& settings) {
  options.batch = settings.batch;
  options.input_shapes = settings.input_shapes;
  options.calibration.paths = settings.calibrate;
  options.max_elements = settings.max_elements;
  options.max_memory = settings.max_memory;
  return options;
}

template <typename Settings>
MachineOptions MachineOf(const Settings& settings) {
  return {.threads = settings.threads,
          .wait = settings.wait,
          .max_isa = "",
          .target = settings.target,
          .precision = ParsePrecision(settings.precision),
          .reproducible = settings.reproducible};
}

// 0 is no limit in settings.
double LimitOf(double given) { return given > 0 ? given : std::numeric_limits<double>::infinity(); }

template <typename Settings>
AccuracyLimits AccuracyOf(const Settings& settings) {
  return {.max_error = LimitOf(settings.max_error), .forbidden_templates = settings.forbid};
}

// To a request of GraphTuneModel or OptimizeModel.
template <typename Request, typename Settings>
void TakeChoosing(const ModelOptions& model, const Settings& settings, Request& request) {
  GraphTuningArguments& arguments = request.arguments;
  arguments.model = WithSettings(model, settings);
  arguments.machine = MachineOf(settings);
  arguments.tuning.accuracy = AccuracyOf(settings);
  CheckAccuracyLimits(arguments.tuning.accuracy);
  arguments.input_layout = settings.input_layout;
  arguments.output_layout = settings.output_layout;
  request.max_output_error = OutputErrorLimit(LimitOf(settings.max_output_error));
  if (settings.max_weights > 0)
    request.max_weight_bytes = (Checked(settings.max_weights) * (1 << 20)).value();
}

// What all kinds of settings have.
template <typename Settings>
void CheckSettings(const Settings& settings) {
  CheckNumbers(settings);
  for (const auto& [name, layout] :
       {std::pair("input_layout", settings.input_layout), {"output_layout", settings.output_layout}}) {
    if (layout != "NCHW" && layout != "NHWC")
      throw Error(ErrorCode::kUsage, fmt::format("{} is \"{}\" (known: NCHW, NHWC)", name, layout));
  }
}

// The settings, Tune's or GraphTune's, are checked; `seconds` is for all of it.
template <typename Settings>
void PlanByLog(const ModelOptions& model, const std::string& log, const std::string& plan, double seconds,
               const Settings& settings) {
  GraphTuneModelRequest request;
  TakeChoosing(model, settings, request);
  request.arguments.log_path = log;
  request.arguments.tuning.allow_defaults = log.empty();
  request.plan_path = plan;
  request.rounds = settings.rounds;
  request.time_budget = seconds;
  request.baselines = settings.rounds > 0;
  GraphTuneModel(request, SinksOf(settings));
}

void TuneBoth(const ModelOptions& model, const std::string& plan, const TuneSettings& settings) {
  TuneModelRequest request;
  CheckSettings(settings);
  const WorkSinks sinks = SinksOf(settings);
  ModelOptions options = WithSettings(model, settings);
  const std::string log = settings.log.empty() ? plan + ".log.jsonl" : settings.log;
  RequireOwnFile(log, {model.model, plan});

  request.machine = OpenMachine(MachineOf(settings));
  request.precision = ParsePrecision(settings.precision);
  CheckOutputErrorLimit(OutputErrorLimit(LimitOf(settings.max_output_error)), request.precision);
  QuantizeInPlace(
      request.precision, [&] { return request.machine; }, sinks, &options);
  request.targets = LoadTargetsToTune({.model = options, .suite = ""});
  if (request.precision == Precision::kMixed && settings.target == kCpuDevice)
    request.quantized = QuantizedTasks(options, request.machine, sinks);
  request.accuracy = AccuracyOf(settings);
  CheckAccuracyLimits(request.accuracy);
  request.baselines = true;
  request.log_path = log;
  request.existing_log = ExistingLog::kResume;
  request.time_budget = settings.seconds;
  request.use_database = settings.database;
  request.worker = {WorkerProgram(settings.program), "measure-worker"};
  const TunedTasks tuned =
      TuneModel(std::move(request), sinks, [&](std::span<const TuneRow> rows, const NetworkProgress& at) {
        sinks.Stage(fmt::format("{} convolutions, {} trials, about {:.0f} s left", rows.size(),
                                at.trials_measured, at.left_seconds));
      });
  if (tuned.stopped) {
    throw Error(ErrorCode::kInterrupted, fmt::format("interrupted; what was measured is in {}", log));
  }

  PlanByLog(model, log, plan, settings.graph_seconds, settings);
}

void OptimizePlan(const ModelOptions& model, const std::string& plan, const OptimizeSettings& settings) {
  CheckSettings(settings);
  OptimizeModelRequest request;
  TakeChoosing(model, settings, request);
  request.log_path = settings.log;
  request.plan_path = plan;
  request.seconds = settings.seconds;
  request.existing_log = ExistingLog::kResume;
  request.use_database = settings.database;
  request.worker = {WorkerProgram(settings.program), "measure-worker"};
  const WorkSinks sinks = SinksOf(settings);
  const OptimizedModel optimized =
      OptimizeModel(request, sinks, [&](std::span<const TuneRow>, const OptimizeProgress& at) {
        sinks.Stage(fmt::format("{}, {} trials, about {:.0f} s left", ProgressText(at),
                                at.tuning.trials_measured, at.tuning.left_seconds));
      });
  if (optimized.stopped)
    throw Error(ErrorCode::kInterrupted, fmt::format("interrupted; the best plan so far is in {}", plan));
}

}  // namespace

void Tune(const std::string& model, const std::string& plan, const TuneSettings& settings) {
  TuneBoth(OptionsOf(model), plan, settings);
}
void Tune(const ModelMemory& model, const std::string& plan, const TuneSettings& settings) {
  TuneBoth(OptionsOf(model), plan, settings);
}
void Optimize(const std::string& model, const std::string& plan, const OptimizeSettings& settings) {
  OptimizePlan(OptionsOf(model), plan, settings);
}
void Optimize(const ModelMemory& model, const std::string& plan, const OptimizeSettings& settings) {
  OptimizePlan(OptionsOf(model), plan, settings);
}
void GraphTune(const std::string& model, const std::string& log, const std::string& plan,
               const GraphTuneSettings& settings) {
  CheckSettings(settings);
  PlanByLog(OptionsOf(model), log, plan, settings.seconds, settings);
}
void GraphTune(const ModelMemory& model, const std::string& log, const std::string& plan,
               const GraphTuneSettings& settings) {
  CheckSettings(settings);
  PlanByLog(OptionsOf(model), log, plan, settings.seconds, settings);
}

double DurationSeconds(const std::string& name, const std::string& text) { return ParseDuration(name, text); }

}  // namespace tilesmith
