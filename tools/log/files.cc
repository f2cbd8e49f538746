#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "layouts/base/error.h"
#include "layouts/base/text_file.h"
#include "tools/cli/machine.h"
#include "tools/cli/model.h"
#include "tools/cli/output_file.h"
#include "tools/cli/progress.h"
#include "tools/cli/records.h"
#include "tools/cli/results_file.h"
#include "tools/cli/tasks.h"
#include "tools/log/log_commands.h"
#include "tools/log/log_tables.h"
#include "tuner/autotvm/autotvm.h"
#include "tuner/records/log.h"
#include "tuner/records/log_scan.h"
#include "tuner/records/record_groups.h"

namespace tilesmith {
namespace {

class LogDistillCommand : public Command {
 public:
  LogDistillCommand()
      : Command({.name = "distill",
                 .purpose = "Keep what a graph tuner needs: the best of each pair of layouts",
                 .examples = "tilesmith log distill resnet50.jsonl -o resnet50.best.jsonl\n"
                             "tilesmith log distill a.jsonl b.jsonl -o best.jsonl --top 3"}) {}
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

class LogMergeCommand : public Command {
 public:
  LogMergeCommand()
      : Command({.name = "merge",
                 .purpose = "Logs of several runs and machines as one, without repetitions",
                 .examples = "tilesmith log merge monday.jsonl tuesday.jsonl -o all.jsonl\n"
                             "tilesmith log merge zen4.jsonl icelake.jsonl -o both.jsonl"}) {}
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

class LogExportCommand : public Command {
 public:
  LogExportCommand()
      : Command({.name = "export",
                 .purpose = "Write a log as Apache TVM's AutoTVM would",
                 .examples = "tilesmith log export resnet50.jsonl -o autotvm.log"}) {}
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

class LogImportCommand : public Command {
 public:
  LogImportCommand()
      : Command({.name = "import",
                 .purpose = "Make a log of one that Apache TVM's AutoTVM wrote",
                 .examples = "tilesmith log import autotvm.log -o imported.jsonl\n"
                             "tilesmith log import autotvm.log -o imported.jsonl --model resnet18\n"
                             "tilesmith log verify imported.jsonl --retarget -o here.jsonl"}) {}
  void Declare(Args& args) override {
    args.Positional("FILE", &path_, "AutoTVM log, format 0.2 (conv2d_NCHWc.x86, depthwise_conv2d_NCHWc.x86)");
    args.Text("-o,--output", &output_, "Log to write; replaced when it exists", "LOG");
    args.Text("--model", &model_.model,
              "Keep what serves this network, as records of its convolutions with what is fused into them",
              "MODEL");
    DeclareInputOptions(args, &model_);
    args.Flag("--json", &json_, "Print JSON");
  }

  int Run() override {
    CheckOutput(output_, OutputFormat::kLog, {path_});
    std::vector<ImportedRecord> imported = Read();
    const auto read = static_cast<int64_t>(imported.size());
    if (!model_.model.empty()) imported = ForModel(imported);
    std::vector<Record> records;
    records.reserve(imported.size());
    for (ImportedRecord& one : imported) records.push_back(std::move(one.record));
    ReplaceFile(output_, [&] { ReplaceLog(output_, PointersTo(records)); });
    const auto same_tiles =
        static_cast<int64_t>(std::ranges::count(imported, true, &ImportedRecord::same_tiles));
    Report report;
    TargetList(CountTargets(records)).AddTable(report);
    report.Fact("read", "read", CountCell(read));
    report.Fact("records", "records", CountCell(static_cast<int64_t>(records.size())));
    report.Fact("exact", "  same tiles", CountCell(same_tiles));
    report.Fact("nearest", "  nearest tiles", CountCell(static_cast<int64_t>(records.size()) - same_tiles));
    report.Fact("skipped", "lines skipped", CountCell(problems_));
    report.Fact("log", "log", TextCell(output_));
    if (!model_.model.empty()) {
      report.Fact("tasks", "tasks", CountCell(tasks_));
      report.Fact("served_tasks", "  served", CountCell(served_tasks_));
    }
    report.Note("Their times are another machine's: log verify --retarget measures them on this one.");
    PrintResults(report, json_, CappedCpu(""));
    return 0;
  }

 private:
  std::vector<ImportedRecord> ForModel(const std::vector<ImportedRecord>& imported) {
    std::vector<ConvWorkload> workloads;
    for (const ConvTask& task : TasksOf(LoadModel(model_))) workloads.push_back(task.workload);
    std::vector<ImportedRecord> adopted;
    std::set<std::string> served;
    for (const auto& [record, same_tiles] : imported) {
      for (Record& one : AdoptPostOps(record, workloads)) {
        served.insert(WorkloadToString(one.workload));
        const bool same = same_tiles && one.config == record.config;
        adopted.push_back({std::move(one), same});
      }
    }
    if (adopted.empty())
      throw Error(ErrorCode::kNoCandidate, fmt::format("{}: none of its {} records is of a convolution of {}",
                                                       path_, imported.size(), model_.model));
    tasks_ = static_cast<int64_t>(workloads.size());
    served_tasks_ = static_cast<int64_t>(served.size());
    return adopted;
  }

  std::vector<ImportedRecord> Read() {
    constexpr int64_t kProblemsShown = 3;
    constexpr int kLongestProblem = 400;  // it quotes what it found
    std::istringstream file(ReadTextFile(path_));
    std::vector<ImportedRecord> records;
    std::vector<std::string> shown;
    std::string line;
    int64_t number = 0;
    while (std::getline(file, line)) {
      ++number;
      if (line.empty() || line[0] == '#') continue;
      try {
        records.push_back(RecordFromAutotvm(line));
      } catch (const Error& error) {
        if (++problems_ <= kProblemsShown)
          shown.push_back(
              fmt::format("{}:{}: skipped: {:.{}}", path_, number, error.what(), kLongestProblem));
      }
    }
    if (records.empty() && problems_ > 0)
      throw Error(ErrorCode::kUsage, shown.front() + " (no line of this file can be imported)");
    ProgressLine progress;
    for (const std::string& problem : shown) progress.Say(problem);
    if (problems_ > kProblemsShown)
      progress.Say(fmt::format("{}: {} more lines skipped", path_, problems_ - kProblemsShown));
    return records;
  }

  ModelOptions model_;
  std::string path_, output_;
  int64_t tasks_ = 0, served_tasks_ = 0;
  bool json_ = false;
  int64_t problems_ = 0;
};

}  // namespace

std::unique_ptr<Command> MakeLogDistillCommand() { return std::make_unique<LogDistillCommand>(); }

std::unique_ptr<Command> MakeLogMergeCommand() { return std::make_unique<LogMergeCommand>(); }

std::unique_ptr<Command> MakeLogExportCommand() { return std::make_unique<LogExportCommand>(); }

std::unique_ptr<Command> MakeLogImportCommand() { return std::make_unique<LogImportCommand>(); }

}  // namespace tilesmith
