#pragma once

#include <memory>

#include "tools/cli/command.h"

namespace tilesmith {

std::unique_ptr<Command> MakeNetworkWorkerCommand();

}  // namespace tilesmith
