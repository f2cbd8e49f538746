// Every command, in the order of the overview. A new one is a file in this folder and a line in both lists.
#pragma once

#include <memory>

#include "tools/cli/command.h"

namespace tilesmith {

std::unique_ptr<Command> MakeTasksCommand();
std::unique_ptr<Command> MakeSpaceCommand();
std::unique_ptr<Command> MakeOptimizeCommand();
std::unique_ptr<Command> MakeTuneCommand();
// Whose report names the plan so, if that is not "": it is somebody else's.
std::unique_ptr<Command> MakeGraphTuneCommand(const std::string& plan_shown = "");
std::unique_ptr<Command> MakeExplainCommand();
std::unique_ptr<Command> MakeBenchCommand();
std::unique_ptr<Command> MakeRunCommand();
std::unique_ptr<Command> MakeCompileCommand();
std::unique_ptr<Command> MakeQuantizeCommand();
std::unique_ptr<Command> MakeReportCommand();
std::unique_ptr<Command> MakeExportModelCommand();
std::unique_ptr<Command> MakeMeasureSpaceCommand();
std::unique_ptr<Command> MakeWorkerCommand();
std::unique_ptr<Command> MakeSimulateCommand();
std::unique_ptr<Command> MakeCostModelCommand();
std::unique_ptr<Command> MakeLogCommand();
std::unique_ptr<Command> MakeDoctorCommand();
std::unique_ptr<Command> MakeManualCommand();
std::unique_ptr<Command> MakeMeasureWorkerCommand();
std::unique_ptr<Command> MakeGraphTuneJobCommand();
std::unique_ptr<Command> MakeNetworkWorkerCommand();

}  // namespace tilesmith
