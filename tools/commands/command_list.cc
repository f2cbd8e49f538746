#include "tools/commands/commands.h"

namespace tilesmith {

std::vector<std::unique_ptr<Command>> MakeCommands() {
  std::vector<std::unique_ptr<Command>> commands;
  commands.push_back(MakeTasksCommand());
  commands.push_back(MakeSpaceCommand());
  commands.push_back(MakeOptimizeCommand());
  commands.push_back(MakeTuneCommand());
  commands.push_back(MakeGraphTuneCommand());
  commands.push_back(MakeExplainCommand());
  commands.push_back(MakeBenchCommand());
  commands.push_back(MakeRunCommand());
  commands.push_back(MakeCompileCommand());
  commands.push_back(MakeQuantizeCommand());
  commands.push_back(MakeReportCommand());
  commands.push_back(MakeExportModelCommand());
  commands.push_back(MakeMeasureSpaceCommand());
  commands.push_back(MakeWorkerCommand());
  commands.push_back(MakeSimulateCommand());
  commands.push_back(MakeCostModelCommand());
  commands.push_back(MakeLogCommand());
  commands.push_back(MakeDoctorCommand());
  commands.push_back(MakeManualCommand());
  commands.push_back(MakeMeasureWorkerCommand());
  commands.push_back(MakeNetworkWorkerCommand());
  commands.push_back(MakeGraphTuneJobCommand());
  return commands;
}

}  // namespace tilesmith
