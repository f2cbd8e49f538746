// The commands that people are told of, as plain values.
#pragma once

#include <string>
#include <vector>

#include "tools/cli/args.h"

namespace tilesmith {

struct CommandDescription {
  std::string name;  // "log best"
  std::string purpose, examples;
  std::vector<ArgumentDescription> arguments;
  std::vector<std::string> commands;  // of a group: the last words of their names
};

// In the order of the overview, a group before its commands.
std::vector<CommandDescription> DescribeCommands();

}  // namespace tilesmith
