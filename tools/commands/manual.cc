// For the build: what is installed beside the binary.
#include "tools/manual/manual.h"

#include <filesystem>

#include "layouts/base/text_file.h"
#include "tools/commands/commands.h"

namespace tilesmith {
namespace {

class ManualCommand : public Command {
 public:
  ManualCommand()
      : Command({.name = "manual",
                 .purpose = "Write man pages and shell completion into a folder",
                 .examples = "tilesmith manual build/manual",
                 .hidden = true}) {}
  void Declare(Args& args) override { args.Positional("FOLDER", &folder_, "Where to"); }
  int Run() override {
    const std::filesystem::path folder = folder_;
    RequireWritableDirectory((folder / "man1").string());
    for (const auto& [name, text] : ManPages()) WriteTextFile((folder / "man1" / name).string(), text);
    WriteTextFile((folder / "tilesmith").string(), BashCompletion());
    WriteTextFile((folder / "_tilesmith").string(), ZshCompletion());
    return 0;
  }

 private:
  std::string folder_;
};

}  // namespace

std::unique_ptr<Command> MakeManualCommand() { return std::make_unique<ManualCommand>(); }

}  // namespace tilesmith
