#include "tuner/records/distill.h"

#include "tools/cli/output_file.h"
#include "tools/cli/records.h"
#include "tools/cli/results_file.h"
#include "tools/log/log_commands.h"
#include "tools/log/log_tables.h"
#include "tuner/records/replace_log.h"

namespace tilesmith {
namespace {

class LogDistillCommand : public Command {
 public:
  std::string_view Name() const override { return "distill"; }
  std::string_view Purpose() const override {
    return "Keep what a graph tuner needs: the best of each pair of layouts";
  }
  std::string_view Examples() const override {
    return "tilesmith log distill resnet50.jsonl -o resnet50.best.jsonl\n"
           "tilesmith log distill a.jsonl b.jsonl -o best.jsonl --top 3";
  }
  void Declare(Args& args) override {
    args.Positionals("LOG", &paths_, "Tuning logs");
    args.Text("-o,--output", &output_, "Log to write; replaced when it exists", "LOG");
    args.Positive("--top", &top_,
                  "Records of each convolution, conditions, machine and layouts (default 1); those that a "
                  "limit on templates or accuracy makes the best come on top");
    args.Flag("--json", &json_, "Print JSON");
  }

  int Run() override {
    CheckOutput(output_, OutputFormat::kLog, paths_);
    const std::vector<Record> records = LoadRecords(paths_);
    const std::vector<const Record*> kept = Distill(records, {.top = top_});
    ReplaceFile(output_, [&] { ReplaceLog(output_, kept); });
    Report report;
    report.Fact("records", "records", CountCell(static_cast<int64_t>(records.size())));
    report.Fact("kept", "kept", CountCell(static_cast<int64_t>(kept.size())));
    report.Fact("log", "log", TextCell(output_));
    PrintResults(report, json_, CappedCpu(""));
    return 0;
  }

 private:
  std::vector<std::string> paths_;
  std::string output_;
  int64_t top_ = 1;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeLogDistillCommand() { return std::make_unique<LogDistillCommand>(); }

}  // namespace tilesmith
