#include <fmt/format.h>

#include "layouts/base/error.h"
#include "tools/cli/machine.h"
#include "tools/cli/output_file.h"
#include "tools/cli/progress.h"
#include "tools/cli/results_file.h"
#include "tools/log/log_commands.h"
#include "tools/log/log_tables.h"
#include "tuner/records/log_scan.h"
#include "tuner/records/merge_logs.h"
#include "tuner/records/replace_log.h"

namespace tilesmith {
namespace {

class LogMergeCommand : public Command {
 public:
  std::string_view Name() const override { return "merge"; }
  std::string_view Purpose() const override {
    return "Logs of several runs and machines as one, without repetitions";
  }
  std::string_view Examples() const override {
    return "tilesmith log merge monday.jsonl tuesday.jsonl -o all.jsonl\n"
           "tilesmith log merge zen4.jsonl icelake.jsonl -o both.jsonl";
  }
  void Declare(Args& args) override {
    args.Positionals("LOG", &paths_, "Tuning logs");
    args.Text("-o,--output", &output_, "Log to write; replaced when it exists", "LOG");
    args.Flag("--json", &json_, "Print JSON");
  }

  int Run() override {
    CheckOutput(output_, OutputFormat::kLog, paths_);
    LogMerger merger;
    Report report;
    Table& logs = report.AddTable({"logs",
                                   "",
                                   {{"log", "log"},
                                    {"records", "records"},
                                    {"duplicates", "known before"},
                                    {"skipped", "lines skipped"}}});
    for (const std::string& path : paths_) AddLog(path, merger, logs);
    const std::vector<std::string_view> lines = merger.Sorted();
    ReplaceFile(output_, [&] { ReplaceLog(output_, lines); });
    TargetList(merger.targets()).AddTable(report);
    report.Fact("records", "records", CountCell(static_cast<int64_t>(lines.size())));
    report.Fact("log", "log", TextCell(output_));
    PrintResults(report, json_, CappedCpu(""));
    return 0;
  }

 private:
  void AddLog(const std::string& path, LogMerger& merger, Table& logs) {
    constexpr int64_t kProblemsShown = 3, kShowEvery = 10'000;
    int64_t records = 0, problems = 0;
    const int64_t duplicates_before = merger.duplicates();
    std::vector<std::string> shown;
    ScanLog(path, [&](LogLine& line) {
      if (line.problem.empty()) {
        merger.Add(line.text, line.record);
        if (++records % kShowEvery == 0) progress_.Show(fmt::format("{}: {} records", path, records));
      } else if (++problems <= kProblemsShown) {
        shown.push_back(fmt::format("{}:{}: skipped: {}", path, line.number, line.problem));
      }
    });
    progress_.Clear();
    if (records == 0 && problems > 0)
      throw Error(ErrorCode::kUsage, shown.front() + " (no line of this file is a tuning record)");
    for (const std::string& problem : shown) progress_.Say(problem);
    if (problems > kProblemsShown)
      progress_.Say(fmt::format("{}: {} more lines skipped", path, problems - kProblemsShown));
    logs.AddRow({TextCell(path), CountCell(records), CountCell(merger.duplicates() - duplicates_before),
                 CountCell(problems)});
  }

  std::vector<std::string> paths_;
  std::string output_;
  bool json_ = false;
  ProgressLine progress_;
};

}  // namespace

std::unique_ptr<Command> MakeLogMergeCommand() { return std::make_unique<LogMergeCommand>(); }

}  // namespace tilesmith
