#include <fmt/format.h>

#include <algorithm>

#include "tools/cli/command.h"
#include "tools/manual/command_tree.h"
#include "tools/manual/manual.h"

namespace tilesmith {
namespace {

// Text as troff prints it: no hyphen becomes typographic, no line is taken for a request.
std::string Troff(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\\') {
      escaped += "\\e";
    } else if (c == '-') {
      escaped += "\\-";
    } else if ((c == '.' || c == '\'') && (escaped.empty() || escaped.back() == '\n')) {
      escaped += std::string("\\&") + c;
    } else {
      escaped += c;
    }
  }
  return escaped;
}

// "log best" -> "tilesmith-log-best"
std::string PageName(const std::string& command) {
  std::string name = command.empty() ? "tilesmith" : "tilesmith-" + command;
  std::ranges::replace(name, ' ', '-');
  return name;
}

std::string Head(const std::string& command, std::string_view purpose) {
  const std::string page = PageName(command);
  return fmt::format(".TH {} 1 \"\" \"tilesmith {}\" \"tilesmith\"\n.SH NAME\n{} \\- {}\n", Troff(page),
                     TILESMITH_VERSION, Troff(page), Troff(purpose));
}

std::string Entry(std::string_view term, std::string_view text) {
  return fmt::format(".TP\n.B {}\n{}\n", Troff(term), Troff(text));
}

std::string CommandPage(const CommandDescription& command) {
  std::string page = Head(command.name, command.purpose);
  page += fmt::format(".SH SYNOPSIS\n.B {}\n", Troff("tilesmith " + command.name));
  if (!command.commands.empty()) page += "COMMAND ...\n";
  std::string options;
  for (const ArgumentDescription& argument : command.arguments) {
    if (argument.positional) page += Troff(argument.names) + "\n";
    options +=
        Entry(argument.value.empty() ? argument.names : argument.names + " " + argument.value, argument.help);
  }
  if (!command.commands.empty()) {
    page += ".SH COMMANDS\n";
    for (const std::string& name : command.commands)
      page += fmt::format(".TP\n.BR {} (1)\n", Troff(PageName(command.name + " " + name)));
  } else {
    page += "[OPTION]...\n.SH OPTIONS\n" + options;
  }
  if (!command.examples.empty()) page += fmt::format(".SH EXAMPLES\n.nf\n{}\n.fi\n", Troff(command.examples));
  return page + ".SH SEE ALSO\n.BR tilesmith (1)\n";
}

std::string OverviewPage(const std::vector<CommandDescription>& commands) {
  std::string page = Head("", "tunes convolutional networks for this machine and runs them");
  page += ".SH SYNOPSIS\n.B tilesmith\nCOMMAND ...\n.SH DESCRIPTION\n" + Troff(kAboutTilesmith) +
          ".SH COMMANDS\n";
  for (const CommandDescription& command : commands)
    page += fmt::format(".TP\n.BR {} (1)\n{}\n", Troff(PageName(command.name)), Troff(command.purpose));
  return page + ".SH EXIT STATUS\n" + Troff(kExitCodes);
}

}  // namespace

std::map<std::string, std::string> ManPages() {
  const std::vector<CommandDescription> commands = DescribeCommands();
  std::map<std::string, std::string> pages{{"tilesmith.1", OverviewPage(commands)}};
  for (const CommandDescription& command : commands)
    pages[PageName(command.name) + ".1"] = CommandPage(command);
  return pages;
}

}  // namespace tilesmith
