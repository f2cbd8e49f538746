#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "layouts/base/error.h"
#include "layouts/base/text_file.h"
#include "tools/cli/machine.h"
#include "tools/cli/model.h"
#include "tools/cli/output_file.h"
#include "tools/cli/progress.h"
#include "tools/cli/results_file.h"
#include "tools/cli/tasks.h"
#include "tools/log/log_commands.h"
#include "tools/log/log_tables.h"
#include "tuner/autotvm/adopt_post_ops.h"
#include "tuner/autotvm/autotvm.h"
#include "tuner/records/replace_log.h"

namespace tilesmith {
namespace {

class LogImportCommand : public Command {
 public:
  std::string_view Name() const override { return "import"; }
  std::string_view Purpose() const override { return "Make a log of one that Apache TVM's AutoTVM wrote"; }
  std::string_view Examples() const override {
    return "tilesmith log import autotvm.log -o imported.jsonl\n"
           "tilesmith log import autotvm.log -o imported.jsonl --model resnet18\n"
           "tilesmith log verify imported.jsonl --retarget -o here.jsonl";
  }
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

std::unique_ptr<Command> MakeLogImportCommand() { return std::make_unique<LogImportCommand>(); }

}  // namespace tilesmith
