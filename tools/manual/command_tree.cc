#include "tools/manual/command_tree.h"

#include "tools/cli/command.h"

namespace tilesmith {
namespace {

void Describe(const std::vector<std::unique_ptr<Command>>& commands, const std::string& prefix,
              std::vector<CommandDescription>& descriptions) {
  for (const auto& command : commands) {
    if (command->Hidden()) continue;
    Args args;
    command->Declare(args);
    CommandDescription description{prefix + std::string(command->Name()),
                                   std::string(command->Purpose()),
                                   std::string(command->Examples()),
                                   args.Describe(),
                                   {}};
    const auto* group = dynamic_cast<const CommandGroup*>(command.get());
    if (group == nullptr) {
      descriptions.push_back(std::move(description));
      continue;
    }
    const auto members = group->Commands();
    for (const auto& member : members) description.commands.emplace_back(member->Name());
    const std::string name = description.name;
    descriptions.push_back(std::move(description));
    Describe(members, name + " ", descriptions);
  }
}

}  // namespace

std::vector<CommandDescription> DescribeCommands() {
  std::vector<CommandDescription> descriptions;
  Describe(MakeCommands(), "", descriptions);
  return descriptions;
}

}  // namespace tilesmith
