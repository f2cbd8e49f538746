#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sstream>

#include "tools/manual/command_tree.h"
#include "tools/manual/manual.h"

namespace tilesmith {
namespace {

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
std::string Quoted(const std::string& text) {
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
  if (argument.positional) return fmt::format(" '*:{}:_files'", Quoted(argument.names));
  const std::vector<std::string> names = Names(argument);
  const std::string choices = Choices(argument);
  const std::string value = argument.value.empty() ? ""
                            : choices.empty()      ? ":value:_files"
                                                   : ":value:(" + choices + ")";
  const std::string spelled = names.size() == 1 ? names[0] : fmt::format("'{{{}}}'", fmt::join(names, ","));
  return fmt::format(" '*{}[{}]{}'", spelled, Quoted(argument.help), value);
}

// An array of zsh for _describe.
std::string ZshList(const std::vector<CommandDescription>& commands, size_t prefix) {
  std::string list;
  for (const CommandDescription& command : commands)
    list += fmt::format(" '{}:{}'", command.name.substr(prefix), Quoted(command.purpose));
  return list;
}

}  // namespace

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
