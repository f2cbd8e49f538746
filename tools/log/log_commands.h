// The commands of `tilesmith log`, one file each.
#pragma once

#include <memory>

#include "tools/cli/command.h"

namespace tilesmith {

std::unique_ptr<Command> MakeLogBestCommand();
std::unique_ptr<Command> MakeLogStatsCommand();
std::unique_ptr<Command> MakeLogShowCommand();
std::unique_ptr<Command> MakeLogVerifyCommand();
std::unique_ptr<Command> MakeLogDistillCommand();
std::unique_ptr<Command> MakeLogMergeCommand();
std::unique_ptr<Command> MakeLogImportCommand();
std::unique_ptr<Command> MakeLogExportCommand();

}  // namespace tilesmith
