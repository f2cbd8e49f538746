#include "tools/commands/commands.h"
#include "tools/log/log_commands.h"

namespace tilesmith {
namespace {

class LogCommand : public CommandGroup {
 public:
  LogCommand()
      : CommandGroup({.name = "log", .purpose = "Sum up, merge, verify, explain and convert tuning logs"}) {}
  std::vector<std::unique_ptr<Command>> Commands() const override {
    std::vector<std::unique_ptr<Command>> commands;
    commands.push_back(MakeLogBestCommand());
    commands.push_back(MakeLogStatsCommand());
    commands.push_back(MakeLogShowCommand());
    commands.push_back(MakeLogVerifyCommand());
    commands.push_back(MakeLogDistillCommand());
    commands.push_back(MakeLogMergeCommand());
    commands.push_back(MakeLogImportCommand());
    commands.push_back(MakeLogExportCommand());
    return commands;
  }
};

}  // namespace

std::unique_ptr<Command> MakeLogCommand() { return std::make_unique<LogCommand>(); }

}  // namespace tilesmith
