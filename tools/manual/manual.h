// Man pages and shell completion, made from what every command declares about itself (tools/cli/command.h).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tools/cli/args.h"

namespace tilesmith {

// Man pages in troff by their file names: tilesmith.1, tilesmith-tune.1, tilesmith-log-best.1, ...
std::map<std::string, std::string> ManPages();

// A completion script of bash; of zsh, as a function of $fpath.
std::string BashCompletion();
std::string ZshCompletion();

// The commands that people are told of, as plain values.
struct CommandDescription {
  std::string name;  // "log best"
  std::string purpose, examples;
  std::vector<ArgumentDescription> arguments;
  std::vector<std::string> commands;  // of a group: the last words of their names
};

// In the order of the overview, a group before its commands.
std::vector<CommandDescription> DescribeCommands();

}  // namespace tilesmith
