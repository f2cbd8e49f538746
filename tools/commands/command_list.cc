// Every command, in the order of the overview.
#include "tools/cli/command.h"
#include "tools/commands/bench.h"
#include "tools/commands/cost_model.h"
#include "tools/commands/doctor.h"
#include "tools/commands/explain.h"
#include "tools/commands/export_model.h"
#include "tools/commands/graph_tune.h"
#include "tools/commands/log.h"
#include "tools/commands/measure_space.h"
#include "tools/commands/measure_worker.h"
#include "tools/commands/network_worker.h"
#include "tools/commands/run.h"
#include "tools/commands/simulate.h"
#include "tools/commands/space.h"
#include "tools/commands/tasks.h"
#include "tools/commands/tune.h"

namespace tilesmith {

std::vector<std::unique_ptr<Command>> MakeCommands() {
  std::vector<std::unique_ptr<Command>> commands;
  commands.push_back(MakeTasksCommand());
  commands.push_back(MakeSpaceCommand());
  commands.push_back(MakeTuneCommand());
  commands.push_back(MakeGraphTuneCommand());
  commands.push_back(MakeExplainCommand());
  commands.push_back(MakeBenchCommand());
  commands.push_back(MakeRunCommand());
  commands.push_back(MakeExportModelCommand());
  commands.push_back(MakeMeasureSpaceCommand());
  commands.push_back(MakeSimulateCommand());
  commands.push_back(MakeCostModelCommand());
  commands.push_back(MakeLogCommand());
  commands.push_back(MakeDoctorCommand());
  commands.push_back(MakeMeasureWorkerCommand());
  commands.push_back(MakeNetworkWorkerCommand());
  return commands;
}

}  // namespace tilesmith
