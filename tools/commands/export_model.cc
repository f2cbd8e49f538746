#include "layouts/base/error.h"
#include "layouts/base/text_file.h"
#include "tools/cli/model.h"
#include "tools/cli/output_file.h"
#include "tools/commands/commands.h"

namespace tilesmith {
namespace {

class ExportModelCommand : public Command {
 public:
  ExportModelCommand()
      : Command({.name = "export",
                 .purpose = "Write a built-in network as an ONNX file",
                 .examples = "tilesmith export resnet50 -o resnet50.onnx"}) {}
  void Declare(Args& args) override {
    args.Positional("NETWORK", &model_.model, "A built-in network: " + BuiltInText());
    DeclareInputOptions(args, &model_);
    args.Text("-o,--output", &path_, "ONNX file to write", "FILE");
    args.Flag("--external-data", &external_data_, "Keep weights in a second file, FILE.data, beside it");
  }
  int Run() override {
    if (path_.empty()) throw Error(ErrorCode::kUsage, "-o FILE.onnx is required");
    RequireReplaceable(path_, OutputFormat::kOnnx);
    const DataPlacement placement = PlacementBeside(path_, external_data_);
    if (external_data_) RequireWritable(PartPath(path_));
    ReplaceFile(path_, [&] { WriteModel(path_, BuiltInAsOnnx(model_, placement), placement); });
    return 0;
  }

 private:
  ModelOptions model_;
  std::string path_;
  bool external_data_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeExportModelCommand() { return std::make_unique<ExportModelCommand>(); }

}  // namespace tilesmith
