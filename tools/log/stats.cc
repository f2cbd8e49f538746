#include <set>

#include "tools/cli/records.h"
#include "tools/cli/results_file.h"
#include "tools/cli/targets.h"
#include "tools/log/log_commands.h"
#include "tools/log/log_tables.h"
#include "tuner/records/log_stats.h"

namespace tilesmith {
namespace {

Cell OptionalCount(const std::optional<int64_t>& count) { return count ? CountCell(*count) : NoCell(); }

class LogStatsCommand : public Command {
 public:
  std::string_view Name() const override { return "stats"; }
  std::string_view Purpose() const override {
    return "How the tuning went: trials, failures, how soon it was good";
  }
  std::string_view Examples() const override {
    return "tilesmith log stats resnet50.jsonl\n"
           "tilesmith log stats monday.jsonl tuesday.jsonl --json";
  }
  void Declare(Args& args) override {
    args.Positionals("LOG", &paths_, "Tuning logs");
    DeclareWorkload(args, &workload_);
    args.Flag("--json", &json_, "Print JSON");
  }

  int Run() override {
    const std::vector<Record> records = OfWorkload(LoadRecords(paths_), workload_);
    const TargetList targets(CountTargets(records));
    const std::vector<TaskStats> all = StatsOf(records);
    Report report;
    Table& table = report.AddTable({"tasks",
                                    "",
                                    {{"workload", "workload"},
                                     {"trials", "trials", 0},
                                     {"ok", "ok", 2},
                                     {"best_seconds", "best ms", 0},
                                     {"gflops", "GFLOP/s", 3},
                                     {"best_template", "by", 2},
                                     {"layouts", "layouts", 3},
                                     {"until_5_percent", "to 5%"},
                                     {"until_2_percent", "to 2%", 2},
                                     {"other_layouts", "other layouts", 3},
                                     {"layouts_purpose", "on purpose", 4},
                                     {"templates", "trials of", 4},
                                     {"failures", "failures"},
                                     {"threads", "threads", 4},
                                     {"weights", "weights", 4},
                                     {"target", "target", 3}}});
    for (const TaskStats& stats : all) AddRow(stats, targets, table);
    targets.AddTable(report);
    if (records.empty()) report.Note("no records");
    AddTotals(records, all, report);
    PrintResults(report, json_, CappedCpu(""));
    return 0;
  }

 private:
  static void AddRow(const TaskStats& stats, const TargetList& targets, Table& table) {
    const std::optional<Record>& best = stats.best;
    table.AddRow(
        {TextCell(WorkloadToString(stats.workload)), CountCell(stats.trials), CountCell(stats.ok),
         best ? MillisecondsCell(best->seconds) : NoCell(),
         best ? RealCell(stats.workload.flops() / best->seconds * 1e-9, 1) : NoCell(),
         best ? TextCell(best->template_name) : NoCell(),
         best ? TextCell(LayoutsText(best->layouts)) : NoCell(), OptionalCount(stats.until_5_percent),
         OptionalCount(stats.until_2_percent),
         best ? PercentCell(static_cast<double>(stats.other_layouts) / static_cast<double>(stats.trials))
              : NoCell(),
         CountCell(stats.layouts_purpose), CountsCell({stats.templates.begin(), stats.templates.end()}),
         FailuresCell(stats.failures), CountCell(stats.conditions.threads),
         TextCell(WeightsText(stats.conditions)), targets.NumberOf(stats.target)});
  }

  static void AddTotals(const std::vector<Record>& records, const std::vector<TaskStats>& all,
                        Report& report) {
    int64_t trials = 0;
    std::map<TrialStatus, int64_t> failures;
    for (const TaskStats& stats : all) {
      trials += stats.trials;
      for (const auto& [status, count] : stats.failures) failures[status] += count;
    }
    std::set<std::string> tuners;
    for (const Record& record : records) tuners.insert(record.tuner);
    const TimeSpan span = SpanOf(records);
    report.Fact("records", "records", CountCell(static_cast<int64_t>(records.size())));
    report.Fact("tasks_count", "tasks", CountCell(static_cast<int64_t>(all.size())));
    report.Fact("trials", "trials", CountCell(trials));
    report.Fact("failures", "failures", FailuresCell(failures));
    report.Fact("tuners", "tuners", NamesCell({tuners.begin(), tuners.end()}));
    report.Fact("first", "first", TextCell(span.first));
    report.Fact("last", "last", TextCell(span.last));
  }

  std::vector<std::string> paths_;
  std::string workload_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeLogStatsCommand() { return std::make_unique<LogStatsCommand>(); }

}  // namespace tilesmith
