#include <fmt/format.h>

#include <map>

#include "layouts/base/error.h"
#include "tools/cli/output_file.h"
#include "tools/cli/records.h"
#include "tools/cli/results_file.h"
#include "tools/log/log_commands.h"
#include "tools/log/log_tables.h"
#include "tuner/autotvm/autotvm.h"
#include "tuner/records/replace_log.h"

namespace tilesmith {
namespace {

class LogExportCommand : public Command {
 public:
  std::string_view Name() const override { return "export"; }
  std::string_view Purpose() const override { return "Write a log as Apache TVM's AutoTVM would"; }
  std::string_view Examples() const override { return "tilesmith log export resnet50.jsonl -o autotvm.log"; }
  void Declare(Args& args) override {
    args.Positionals("LOG", &paths_, "Tuning logs");
    args.Text("-o,--output", &output_, "AutoTVM log to write, format 0.2; replaced when it exists", "FILE");
    args.Flag("--json", &json_, "Print JSON");
  }

  int Run() override {
    CheckOutput(output_, OutputFormat::kAutoTvmLog, paths_);
    const std::vector<Record> records = LoadRecords(paths_);
    std::vector<std::string> lines;
    std::map<std::string, int64_t> refusals;
    for (const Record& record : records) {
      try {
        lines.push_back(RecordToAutotvm(record));
      } catch (const Error& error) {
        ++refusals[error.what()];
      }
    }
    if (lines.empty() && !refusals.empty())
      throw Error(ErrorCode::kNoCandidate, "no record can be exported: " + refusals.begin()->first);
    ReplaceFile(output_,
                [&] { ReplaceLog(output_, std::vector<std::string_view>(lines.begin(), lines.end())); });
    Report report;
    if (!refusals.empty()) {
      Table& table = report.AddTable({"left_out", "", {{"records", "left out"}, {"reason", "because", 0}}});
      for (const auto& [reason, count] : refusals) table.AddRow({CountCell(count), TextCell(reason)});
    }
    report.Fact("records", "records", CountCell(static_cast<int64_t>(records.size())));
    report.Fact("exported", "exported", CountCell(static_cast<int64_t>(lines.size())));
    report.Fact("log", "log", TextCell(output_));
    PrintResults(report, json_, CappedCpu(""));
    return 0;
  }

 private:
  std::vector<std::string> paths_;
  std::string output_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeLogExportCommand() { return std::make_unique<LogExportCommand>(); }

}  // namespace tilesmith
