#include "tools/cli/command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <new>

#include "layouts/base/error.h"

namespace tilesmith {
namespace {

void PrintOverview(std::FILE* to, const std::vector<std::unique_ptr<Command>>& commands) {
  fmt::print(to,
             "tilesmith tunes the convolutions of a CNN for this machine, chooses the layouts of the whole\n"
             "network, runs it, and shows it beside oneDNN.\n\n"
             "usage: tilesmith COMMAND ...     (tilesmith COMMAND --help explains one)\n\n");
  for (const auto& command : commands) {
    if (!command->Hidden()) fmt::print(to, "  {:<12} {}\n", command->Name(), command->Purpose());
  }
  fmt::print(
      to,
      "\nExit codes: 0 ok, 1 internal error, 2 usage, 3 bad or unsupported model, 4 no valid candidate,\n"
      "5 wrong answer, 6 slower than --fail-below, 7 environment, 130 interrupted.\n");
}

void PrintHelp(const Command& command, const Args& args) {
  fmt::print("{}\n", command.Purpose());
  fmt::print("{}", args.Help(fmt::format("tilesmith {}", command.Name())));
  fmt::print("\nExamples:\n");
  for (std::string_view rest = command.Examples(); !rest.empty();) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    fmt::print("  {}\n", rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
}

// Messages are one line, whatever a file put into them.
std::string OneLine(std::string_view text) {
  std::string line;
  for (char c : text.substr(0, text.find_last_not_of('\n') + 1)) line += c == '\n' ? "; " : std::string(1, c);
  return line;
}

int RunCommand(Command& command, const std::vector<std::string>& arguments) {
  Args args;
  command.Declare(args);
  args.Parse(arguments);
  if (args.help_asked()) {
    PrintHelp(command, args);
    return 0;
  }
  return command.Run();
}

}  // namespace

int RunCommandLine(const std::vector<std::string>& arguments) {
  const auto commands = MakeCommands();
  if (arguments.empty()) {
    PrintOverview(stderr, commands);
    return int(ErrorCode::kUsage);
  }
  const std::string& name = arguments[0];
  if (name == "--help" || name == "-h" || name == "help") {
    PrintOverview(stdout, commands);
    return 0;
  }
  if (name == "--version") {
    fmt::print("tilesmith {}\n", TILESMITH_VERSION);
    return 0;
  }
  const auto found = std::find_if(commands.begin(), commands.end(),
                                  [&](const auto& command) { return command->Name() == name; });
  if (found == commands.end()) {
    std::vector<std::string_view> known;
    for (const auto& command : commands) {
      if (!command->Hidden()) known.push_back(command->Name());
    }
    fmt::print(stderr, "tilesmith: unknown command {} (known: {})\n", name, fmt::join(known, ", "));
    return int(ErrorCode::kUsage);
  }
  try {
    return RunCommand(**found, {arguments.begin() + 1, arguments.end()});
  } catch (const Error& error) {
    fmt::print(stderr, "tilesmith {}: {}\n", name, OneLine(error.what()));
    return int(error.code());
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "tilesmith {}: out of memory\n", name);
    return int(ErrorCode::kEnvironment);
  } catch (const std::exception& error) {
    fmt::print(stderr, "tilesmith {}: internal error: {}\n", name, OneLine(error.what()));
    return int(ErrorCode::kInternal);
  }
}

}  // namespace tilesmith
