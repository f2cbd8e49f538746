#include "tools/cli/graph_tuning.h"

#include <fmt/format.h>

#include "layouts/base/error.h"
#include "layouts/measure/clock.h"
#include "tools/cli/conditions.h"
#include "tools/cli/output_file.h"
#include "tools/cli/records.h"

namespace tilesmith {

void DeclareGraphTuning(Args& args, GraphTuningArguments* arguments) {
  const std::string heading = args.Group("Search");
  args.Text("--log", &arguments->log_path, "Tuning log, as `tilesmith tune` writes it", "LOG");
  args.Flag("--any-machine", &arguments->any_machine,
            "Believe the log's times of other machines and thread counts as well");
  args.Flag("--default-schedules", &arguments->tuning.allow_defaults,
            "Convolutions the log lacks get their untuned default schedule");
  DeclarePrecision(
      args, &arguments->machine.precision, kPrecisions,
      "Types that convolutions may be computed and stored in, as far as the log has records of them "
      "(default f32)");
  args.Group(heading);
  DeclarePlanning(args, arguments);
}

void DeclarePlanning(Args& args, GraphTuningArguments* arguments) {
  const std::string heading = args.Group("Search");
  GraphTuneOptions& tuning = arguments->tuning;
  std::vector<std::string> solvers;
  for (const Solver& solver : Solvers()) solvers.emplace_back(solver.name);
  args.Choice("--solver", &tuning.solver, solvers, fmt::format("Default {}", tuning.solver));
  args.Text("--costs", &arguments->costs_path,
            "Measured costs of other ops and of transforms; read and extended (default: beside the log)",
            "FILE");
  args.Flag("--interpolate-costs", &arguments->interpolate_costs,
            "Estimate transforms between two sizes that were measured, instead of measuring them");
  args.Flag("--no-fusion", &arguments->no_fusion,
            "Compute every layer by itself, whatever fused records the log has");
  args.Flag("--no-regions", &arguments->no_regions, "Compute no layers depth first, band by band");
  args.Choice("--input-layout", &arguments->input_layout, {"NCHW", "NHWC"},
              "Of the network's inputs (default NCHW)");
  args.Choice("--output-layout", &arguments->output_layout, {"NCHW", "NHWC"},
              "Wanted of the network's outputs (default NCHW)");
  DeclareAccuracy(args, &tuning.accuracy);
  args.Group(heading);
  DeclareMachineOptions(args, &arguments->machine);
  DeclareReproducible(args, &arguments->machine.reproducible);
}

void CheckGraphTuning(const GraphTuningArguments& arguments) {
  if (!arguments.log_path.empty() || arguments.tuning.allow_defaults) return;
  throw Error(ErrorCode::kUsage, "--log LOG is required (or --default-schedules, to do without tuning)");
}

std::vector<Record> LoadTuningLog(const GraphTuningArguments& arguments, const DevicePtr& machine) {
  if (arguments.log_path.empty()) return {};
  std::vector<Record> records = LoadRecords(arguments.log_path);
  if (arguments.any_machine) BelieveForeignRecords(records, machine);
  DropUseless(records, arguments.log_path, machine->target());
  return records;
}

std::unique_ptr<CostSource> OpenCosts(const GraphTuningArguments& arguments, const DevicePtr& machine,
                                      const WorkSinks& sinks) {
  std::string path = arguments.costs_path;
  if (path.empty() && !arguments.log_path.empty()) path = CostsPathFor(arguments.log_path);
  RequireFormat(path, OutputFormat::kCosts);
  std::vector<std::string> warnings;
  auto costs =
      MeasuredCosts(machine, {path, arguments.interpolate_costs, arguments.machine_costs_path}, &warnings);
  for (const std::string& warning : warnings) sinks.Warn(warning);
  return costs;
}

GraphTuneOptions TuningOptions(const GraphTuningArguments& arguments, const DevicePtr& machine,
                               const WorkSinks& sinks) {
  GraphTuneOptions options = arguments.tuning;
  options.cpu = machine->target();
  options.threads = machine->threads();
  options.model = arguments.model.model;
  options.fusion = !arguments.no_fusion;
  options.regions = !arguments.no_regions && options.cpu.device == kCpuDevice;
  options.precision = arguments.machine.precision;
  options.ends = {Layout::Parse(arguments.input_layout), Layout::Parse(arguments.output_layout)};
  options.progress = [sinks, began = 0.0](size_t done, size_t total) mutable {
    ThrowIfStopped(sinks.stop);
    constexpr double kWorthMentioning = 0.2;  // seconds; costs that are known already take milliseconds
    if (done == 0) began = NowSeconds();
    if (NowSeconds() - began < kWorthMentioning) return;
    sinks.Stage(fmt::format("costs of ops and transforms {}/{}", done, total));
  };
  return options;
}

}  // namespace tilesmith
