// A command of the command line: `tilesmith NAME ...`, listed in tools/commands/commands.h, or one of a
// group, `tilesmith GROUP NAME ...`.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tools/cli/args.h"

namespace tilesmith {

struct CommandTexts {
  std::string_view name;
  std::string_view purpose;        // one line
  std::string_view examples = "";  // whole command lines, one a line
  bool hidden = false;             // not in the list: for other programs than people
};

class Command {
 public:
  explicit Command(const CommandTexts& texts) : texts_(texts) {}
  virtual ~Command() = default;
  const CommandTexts& texts() const { return texts_; }
  virtual void Declare(Args& args) = 0;
  // Called after the arguments are parsed. Returns the exit code; throws Error.
  virtual int Run() = 0;

 private:
  const CommandTexts texts_;
};

// A command that only has commands of its own.
class CommandGroup : public Command {
 public:
  using Command::Command;
  virtual std::vector<std::unique_ptr<Command>> Commands() const = 0;
  void Declare(Args&) final {}
  int Run() final { return 0; }
};

std::vector<std::unique_ptr<Command>> MakeCommands();

// What the overview says around the commands.
extern const std::string_view kAboutTilesmith, kExitCodes;

// Parses and runs a command; `name` is what errors begin with. Errors as with RunCommandLine.
int RunGuarded(const std::string& name, Command& command, const std::vector<std::string>& arguments);

// Finds the command, parses, runs, and turns errors into one line on stderr and an exit code: an Error's own
// code, 1 for any other exception, 7 when what was printed did not get to stdout (streams.h).
int RunCommandLine(const std::vector<std::string>& arguments);

}  // namespace tilesmith
