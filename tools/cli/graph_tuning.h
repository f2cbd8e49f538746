// What the commands that plan whole networks are given alike: a model, a tuning log, and how to choose.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "graph_tuner/problem/network_problem.h"
#include "tools/cli/args.h"
#include "tools/cli/machine.h"
#include "tools/cli/model.h"
#include "tools/cli/progress.h"

namespace tilesmith {

struct GraphTuningArguments {
  ModelOptions model;
  MachineOptions machine;
  GraphTuneOptions tuning;  // what arguments say of it; TuningOptions fills in the rest
  std::string log_path, costs_path;
  std::string machine_costs_path = {};  // CostOptions::machine_path
  std::string input_layout = "NCHW", output_layout = "NCHW";
  bool no_fusion = false, no_regions = false, interpolate_costs = false, any_machine = false;
};
void DeclareGraphTuning(Args& args, GraphTuningArguments* arguments);
// The same without what is about the log.
void DeclarePlanning(Args& args, GraphTuningArguments* arguments);

// Throws Error(kUsage) without a log, unless default schedules are allowed.
void CheckGraphTuning(const GraphTuningArguments& arguments);
// The log's records, none without a log; all as if of this machine when the arguments say so. Throws as
// LoadRecords does (records.h).
std::vector<Record> LoadTuningLog(const GraphTuningArguments& arguments, const DevicePtr& machine);
// Measures what the cost file, which lies beside the log when no other was named, does not know; warns of
// lines of it that were skipped. Precondition: a PinnedTeam lives as long.
std::unique_ptr<CostSource> OpenCosts(const GraphTuningArguments& arguments, const DevicePtr& machine,
                                      const WorkSinks& sinks);
// Its progress says how far the measuring of costs is, and throws Error(kInterrupted) when it is stopped.
GraphTuneOptions TuningOptions(const GraphTuningArguments& arguments, const DevicePtr& machine,
                               const WorkSinks& sinks);

}  // namespace tilesmith
