#include "tools/manual/manual.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>

#include "tools/cli/command.h"

namespace tilesmith {
namespace {

void Describe(const std::vector<std::unique_ptr<Command>>& commands, const std::string& prefix,
              std::vector<CommandDescription>& descriptions) {
  for (const auto& command : commands) {
    if (command->texts().hidden) continue;
    Args args;
    command->Declare(args);
    CommandDescription description{prefix + std::string(command->texts().name),
                                   std::string(command->texts().purpose),
                                   std::string(command->texts().examples),
                                   args.Describe(),
                                   {}};
    const auto* group = dynamic_cast<const CommandGroup*>(command.get());
    if (group == nullptr) {
      descriptions.push_back(std::move(description));
      continue;
    }
    const auto members = group->Commands();
    for (const auto& member : members) description.commands.emplace_back(member->texts().name);
    const std::string name = description.name;
    descriptions.push_back(std::move(description));
    Describe(members, name + " ", descriptions);
  }
}

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

std::string TermEntry(std::string_view term, std::string_view text) {
  return fmt::format(".TP\n.B {}\n{}\n", Troff(term), Troff(text));
}

std::string CommandPage(const CommandDescription& command) {
  std::string page = Head(command.name, command.purpose);
  page += fmt::format(".SH SYNOPSIS\n.B {}\n", Troff("tilesmith " + command.name));
  if (!command.commands.empty()) page += "COMMAND ...\n";
  std::string options;
  for (const ArgumentDescription& argument : command.arguments) {
    if (argument.positional) page += Troff(argument.names) + "\n";
    options += TermEntry(argument.value.empty() ? argument.names : argument.names + " " + argument.value,
                         argument.help);
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

// "-o,--output" -> {"-o", "--output"}
std::vector<std::string> Names(const ArgumentDescription& argument) {
  std::vector<std::string> names;
  std::istringstream text(argument.names);
  for (std::string name; std::getline(text, name, ',');) names.push_back(name);
  return names;
}

// "{xgb,ga}" -> "xgb ga"; "" for values that are not one of a few.
std::string Choices(const ArgumentDescription& argument) {
  if (!argument.value.starts_with("{")) return "";
  std::string choices = argument.value.substr(1, argument.value.size() - 2);
  for (char& c : choices)
    if (c == ',') c = ' ';
  return choices;
}

// The words that may follow the name of a command, and what may follow each of its options.
struct Words {
  std::vector<std::string> names;                            // of options, or of a group's commands
  std::vector<std::pair<std::string, std::string>> choices;  // "--tuner", "xgb ga"
};

Words WordsOf(const CommandDescription& command) {
  Words words{command.commands, {}};
  for (const ArgumentDescription& argument : command.arguments) {
    if (argument.positional) continue;
    for (const std::string& name : Names(argument)) {
      words.names.push_back(name);
      if (const std::string choices = Choices(argument); !choices.empty())
        words.choices.emplace_back(name, choices);
    }
  }
  return words;
}

// Quotes for a single-quoted word of a shell, and in it for what zsh takes for syntax.
std::string ShellQuoted(const std::string& text) {
  std::string quoted;
  for (const char c : text) {
    if (c == '\'') {
      quoted += "'\\''";
    } else if (c == '[' || c == ']' || c == ':' || c == '\\') {
      quoted += std::string("\\") + c;
    } else {
      quoted += c == '\n' ? ' ' : c;
    }
  }
  return quoted;
}

std::vector<CommandDescription> TopLevel() {
  std::vector<CommandDescription> commands = DescribeCommands();
  std::erase_if(commands, [](const auto& command) { return command.name.find(' ') != std::string::npos; });
  return commands;
}

std::vector<std::string> NamesOf(const std::vector<CommandDescription>& commands) {
  std::vector<std::string> names;
  names.reserve(commands.size());
  for (const CommandDescription& command : commands) names.push_back(command.name);
  return names;
}

std::vector<std::string> Groups() {
  std::vector<std::string> groups;
  for (const CommandDescription& command : TopLevel())
    if (!command.commands.empty()) groups.push_back(command.name);
  return groups;
}

// An option, or the positional arguments, as zsh's _arguments wants it.
std::string ZshArgument(const ArgumentDescription& argument) {
  if (argument.positional) return fmt::format(" '*:{}:_files'", ShellQuoted(argument.names));
  const std::vector<std::string> names = Names(argument);
  const std::string choices = Choices(argument);
  const std::string value = argument.value.empty() ? ""
                            : choices.empty()      ? ":value:_files"
                                                   : ":value:(" + choices + ")";
  const std::string spelled = names.size() == 1 ? names[0] : fmt::format("'{{{}}}'", fmt::join(names, ","));
  return fmt::format(" '*{}[{}]{}'", spelled, ShellQuoted(argument.help), value);
}

// An array of zsh for _describe.
std::string ZshList(const std::vector<CommandDescription>& commands, size_t prefix) {
  std::string list;
  for (const CommandDescription& command : commands)
    list += fmt::format(" '{}:{}'", command.name.substr(prefix), ShellQuoted(command.purpose));
  return list;
}

}  // namespace

std::vector<CommandDescription> DescribeCommands() {
  std::vector<CommandDescription> descriptions;
  Describe(MakeCommands(), "", descriptions);
  return descriptions;
}

std::map<std::string, std::string> ManPages() {
  const std::vector<CommandDescription> commands = DescribeCommands();
  std::map<std::string, std::string> pages{{"tilesmith.1", OverviewPage(commands)}};
  for (const CommandDescription& command : commands)
    pages[PageName(command.name) + ".1"] = CommandPage(command);
  return pages;
}

std::string BashCompletion() {
  std::string words_of, values_of;
  for (const CommandDescription& command : DescribeCommands()) {
    const Words words = WordsOf(command);
    words_of += fmt::format("    '{}') words='{}' ;;\n", command.name, fmt::join(words.names, " "));
    for (const auto& [name, choices] : words.choices)
      values_of += fmt::format("    '{} {}') words='{}' files=no ;;\n", command.name, name, choices);
  }
  return fmt::format(R"(# bash completion of tilesmith
_tilesmith() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD - 1]}}
  local command=${{COMP_WORDS[1]}} words='' files=yes
  if ((COMP_CWORD == 1)); then
    words='{} --help --version' files=no command='' previous=''
  elif ((COMP_CWORD > 2)) && [[ ' {} ' == *" $command "* ]]; then
    command="$command ${{COMP_WORDS[2]}}"
  fi
  case $command in
{}  esac
  case "$command $previous" in
{}  esac
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
  if [[ $files == yes && $current != -* ]]; then
    mapfile -t -O "${{#COMPREPLY[@]}}" COMPREPLY < <(compgen -f -- "$current")
  fi
}}
complete -o filenames -F _tilesmith tilesmith
)",
                     fmt::join(NamesOf(TopLevel()), " "), fmt::join(Groups(), " "), words_of, values_of);
}

std::string ZshCompletion() {
  const std::vector<CommandDescription> commands = DescribeCommands();
  std::string cases;
  for (const CommandDescription& command : commands) {
    cases += fmt::format("    '{}')", command.name);
    if (!command.commands.empty()) {
      std::vector<CommandDescription> members;
      for (const CommandDescription& member : commands)
        if (member.name.starts_with(command.name + " ")) members.push_back(member);
      cases +=
          fmt::format(" list=({}); _describe command list ;;\n", ZshList(members, command.name.size() + 1));
      continue;
    }
    cases += " _arguments -s";
    for (const ArgumentDescription& argument : command.arguments) cases += ZshArgument(argument);
    cases += " ;;\n";
  }
  return fmt::format(R"(#compdef tilesmith
_tilesmith() {{
  local command=$words[2]
  local -a list
  if ((CURRENT == 2)); then
    list=({})
    _describe command list
    return
  fi
  if ((CURRENT > 3)) && [[ ' {} ' == *" $command "* ]]; then command="$command $words[3]"; fi
  case $command in
{}  esac
}}
_tilesmith "$@"
)",
                     ZshList(TopLevel(), 0), fmt::join(Groups(), " "), cases);
}

}  // namespace tilesmith
