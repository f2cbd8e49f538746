// Man pages and shell completion, made from what every command declares about itself (tools/cli/command.h).
#pragma once

#include <map>
#include <string>

namespace tilesmith {

// Man pages in troff by their file names: tilesmith.1, tilesmith-tune.1, tilesmith-log-best.1, ...
std::map<std::string, std::string> ManPages();

// A completion script of bash; of zsh, as a function of $fpath.
std::string BashCompletion();
std::string ZshCompletion();

}  // namespace tilesmith
