#include "tools/cli/command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <new>

#include "layouts/base/close_names.h"
#include "layouts/base/error.h"
#include "tools/cli/results_file.h"
#include "tools/cli/streams.h"

namespace tilesmith {

const std::string_view kAboutTilesmith =
    "tilesmith tunes the convolutions of a CNN for this machine, chooses the layouts of the whole\n"
    "network, runs it, and shows it beside oneDNN.\n";
const std::string_view kExitCodes =
    "0 ok, 1 internal error, 2 usage, 3 bad or unsupported model, 4 no valid candidate,\n"
    "5 wrong answer, 6 slower than --fail-below or, with log verify --strict, than recorded,\n"
    "7 environment, 130 interrupted.\n";

namespace {

// "tilesmith log": what a user typed to get at these commands.
struct Menu {
  std::string prefix;
  const std::vector<std::unique_ptr<Command>>& commands;
};

size_t HelpWidth() {
  constexpr size_t kWidth = 80, kMaxWidth = 110;
  const size_t columns = OutputColumns();
  return columns > 0 ? std::min(columns, kMaxWidth) : kWidth;
}

std::string CommandsText(const Menu& menu) {
  constexpr size_t kIndent = 16;
  std::string text =
      fmt::format("usage: {0} COMMAND ...     ({0} COMMAND --help explains one)\n\n", menu.prefix);
  for (const auto& command : menu.commands) {
    if (command->texts().hidden) continue;
    const std::string purpose = Wrapped(std::string(command->texts().purpose), HelpWidth(), kIndent);
    text += fmt::format("  {:<13} {}\n", command->texts().name, purpose);
  }
  return text;
}

std::string OverviewText(const Menu& menu) {
  const auto paragraph = [](std::string_view text) {
    return Wrapped(std::string(text), HelpWidth(), 0) + "\n";
  };
  return paragraph(kAboutTilesmith) + "\n" + CommandsText(menu) + "\n" +
         paragraph(
             "Every command takes -q, --quiet: neither progress nor warnings; and -v, --verbose: every "
             "step in a line. tilesmith --version tells the version.") +
         paragraph(fmt::format("Exit codes: {}", kExitCodes));
}

// A command line, gone on with behind a backslash where it is wide; an option stays with its value.
std::string ShellLines(std::string_view command) {
  const size_t width = HelpWidth() - 4;  // the indent and the backslash
  std::string text;
  for (size_t column = 0; !command.empty();) {
    const size_t end = std::min(command.find(" -", 1), command.size());
    if (column > 0 && column + end > width) {
      text += " \\\n   ";
      column = 2;
    }
    text += command.substr(0, end);
    column += end;
    command.remove_prefix(end);
  }
  return text;
}

std::string HelpText(const std::string& name, const Command& command, const Args& args) {
  std::string text =
      fmt::format("{}\n{}\nExamples:\n", Wrapped(std::string(command.texts().purpose), HelpWidth(), 0),
                  args.Help(name, HelpWidth()));
  for (std::string_view rest = command.texts().examples; !rest.empty();) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    text += fmt::format("  {}\n", ShellLines(rest.substr(0, end)));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return text;
}

// Messages are one line, whatever a file put into them.
std::string OneLine(std::string_view text) {
  std::string line;
  bool begins = false;  // a line of its own
  for (char c : text.substr(0, text.find_last_not_of('\n') + 1)) {
    if (c == '\n') line += line.ends_with(':') ? " " : "; ";
    if (c != '\n' && !(begins && c == ' ')) line += c;
    begins = c == '\n' || (begins && c == ' ');
  }
  return line;
}

// `name` is what the user typed to get at the command: "tilesmith log best".
int RunCommand(const std::string& name, Command& command, const std::vector<std::string>& arguments) {
  Args args;
  command.Declare(args);
  args.Parse(arguments);
  if (args.help_asked()) {
    PrintOut(HelpText(name, command, args));
    return 0;
  }
  return command.Run();
}

int Guarded(const std::string& name, const std::function<int()>& work) {
  try {
    return work();
  } catch (const Error& error) {
    PrintErr(fmt::format("{}: {}\n", name, OneLine(WithOptionNames(error.what()))));
    return static_cast<int>(error.code());
  } catch (const std::bad_alloc&) {
    PrintErr(name + ": out of memory\n");
    return static_cast<int>(ErrorCode::kEnvironment);
  } catch (const std::exception& error) {
    PrintErr(fmt::format("{}: internal error: {}\n", name, OneLine(error.what())));
    return static_cast<int>(ErrorCode::kInternal);
  }
}

bool AsksForHelp(const std::string& argument) {
  return argument == "--help" || argument == "-h" || argument == "help";
}

// "help tune" as "tune --help".
std::vector<std::string> HelpLast(std::vector<std::string> arguments) {
  if (!AsksForHelp(arguments[0])) return arguments;
  std::ranges::rotate(arguments, arguments.begin() + 1);
  arguments.back() = "--help";
  return arguments;
}

// The menu's own help is asked for before.
int RunFromMenu(const Menu& menu, const std::vector<std::string>& arguments) {
  const std::string& name = arguments[0];
  const auto found = std::find_if(menu.commands.begin(), menu.commands.end(),
                                  [&](const auto& command) { return command->texts().name == name; });
  if (found == menu.commands.end()) {
    std::vector<std::string> known;
    for (const auto& command : menu.commands) {
      if (!command->texts().hidden) known.emplace_back(command->texts().name);
    }
    const bool is_first = menu.prefix == "tilesmith";
    if (name.starts_with("--")) known = {"--help"};
    if (name.starts_with("--") && is_first) known = {"--help", "--version", "--quiet", "--verbose"};
    const std::string meant = MeantText(name, known);
    PrintErr(fmt::format("{}: unknown {} {} ({}known: {})\n", menu.prefix,
                         name.starts_with("--") ? "option" : "command", OneLine(name),
                         meant.empty() ? "" : meant + " ", fmt::join(known, ", ")));
    return static_cast<int>(ErrorCode::kUsage);
  }
  const std::string full_name = menu.prefix + " " + name;
  const std::vector<std::string> rest(arguments.begin() + 1, arguments.end());
  const auto* group = dynamic_cast<const CommandGroup*>(found->get());
  if (group == nullptr) return RunGuarded(full_name, **found, rest);
  const auto commands = group->Commands();
  const bool help = !rest.empty() && AsksForHelp(rest[0]);
  if (rest.size() > 1 || (!rest.empty() && !help)) return RunFromMenu({full_name, commands}, HelpLast(rest));
  const std::string text = fmt::format("{}\n{}", group->texts().purpose, CommandsText({full_name, commands}));
  help ? PrintOut(text) : PrintErr(text);
  return help ? 0 : static_cast<int>(ErrorCode::kUsage);
}

int RunArguments(std::vector<std::string> arguments) {
  SetVerbosity(arguments);
  const auto commands = MakeCommands();
  const Menu menu = {"tilesmith", commands};
  if (arguments.empty()) {
    PrintErr(OverviewText(menu));
    return static_cast<int>(ErrorCode::kUsage);
  }
  if (AsksForHelp(arguments[0]) && arguments.size() > 1) return RunFromMenu(menu, HelpLast(arguments));
  if (AsksForHelp(arguments[0])) {
    PrintOut(OverviewText(menu));
    return 0;
  }
  if (arguments[0] == "--version") {
    return Guarded("tilesmith", [] {
      PrintOut(VersionText());
      return 0;
    });
  }
  return RunFromMenu(menu, arguments);
}

}  // namespace

int RunGuarded(const std::string& name, Command& command, const std::vector<std::string>& arguments) {
  return Guarded(name, [&] { return RunCommand(name, command, arguments); });
}

int RunCommandLine(const std::vector<std::string>& arguments) {
  return ExitCodeAfterPrinting(RunArguments(arguments));
}

}  // namespace tilesmith
