#include "tools/log/log_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "layouts/base/check.h"
#include "layouts/base/error.h"
#include "tools/cli/machine.h"
#include "tools/cli/records.h"
#include "tools/cli/results_file.h"
#include "tools/cli/targets.h"
#include "tools/log/log_commands.h"
#include "tuner/records/log_stats.h"

namespace tilesmith {

Cell TargetList::NumberOf(const Target& target) const {
  const auto known = std::find_if(counts_.begin(), counts_.end(), [&](const TargetCount& count) {
    return SameMachine(count.target, target);
  });
  TILESMITH_CHECK(known != counts_.end(), "{} is not in the list", target.model);
  return CountCell(known - counts_.begin() + 1);
}

void TargetList::AddTable(Report& report) const {
  const Target here = CappedCpu("");
  Table& table = report.AddTable({"targets",
                                  "",
                                  {{"target", "target"},
                                   {"cpu", "CPU"},
                                   {"isa", "ISA"},
                                   {"cores", "cores"},
                                   {"version", "measured by"},
                                   {"records", "records"},
                                   {"this_machine", "this machine"}}});
  for (size_t i = 0; i < counts_.size(); ++i) {
    const Target& target = counts_[i].target;
    const bool same = SameMachine(target, here);
    table.AddRow({CountCell(static_cast<int64_t>(i) + 1),
                  TextCell(target.model),
                  TextCell(std::string(IsaName(target.isa))),
                  CountCell(target.cores),
                  TextCell(target.version),
                  CountCell(counts_[i].records),
                  {same, same ? "yes" : "no"}});
  }
}

std::string WeightsText(const MeasureConditions& conditions) {
  return conditions.cold_weights ? "cold" : "warm";
}

Cell FailuresCell(const std::map<TrialStatus, int64_t>& failures) {
  Cell::Named<int64_t> counts;
  for (const auto& [status, count] : failures) counts.emplace_back(TrialStatusName(status), count);
  return CountsCell(std::move(counts));
}

void DeclareWorkload(Args& args, std::string* workload) {
  args.Text("--workload", workload, "Only records of this convolution, such as ic64ih56oc64kh3ph1",
            "WORKLOAD");
}

std::vector<Record> OfWorkload(std::vector<Record> records, const std::string& workload) {
  if (workload.empty()) return records;
  const ConvWorkload wanted = ParseWorkload(workload);
  std::erase_if(records, [&](const Record& record) { return record.workload != wanted; });
  if (records.empty())
    throw Error(ErrorCode::kUsage, fmt::format("no record of {}", WorkloadToString(wanted)));
  return records;
}

void CheckOutput(const std::string& output, OutputFormat format, const std::vector<std::string>& inputs) {
  if (output.empty()) throw Error(ErrorCode::kUsage, "-o OUT is required");
  RequireReplaceable(output, format, inputs);
}

namespace {

class LogBestCommand : public Command {
 public:
  LogBestCommand()
      : Command({.name = "best",
                 .purpose = "The fastest record of each convolution",
                 .examples = "tilesmith log best resnet50.jsonl\n"
                             "tilesmith log best a.jsonl b.jsonl --workload ic64ih56oc64kh3ph1+bias+relu "
                             "--all-layouts"}) {}
  void Declare(Args& args) override {
    args.Positionals("LOG", &paths_, "Tuning logs");
    DeclareWorkload(args, &workload_);
    args.Flag("--all-layouts", &all_layouts_, "The fastest for each pair of layouts, not only of all");
    args.Flag("--json", &json_, "Print JSON");
  }

  int Run() override {
    const std::vector<Record> records = OfWorkload(LoadRecords(paths_), workload_);
    const TargetList targets(CountTargets(records));
    Report report;
    Table& table = report.AddTable({"records",
                                    "",
                                    {{"workload", "workload"},
                                     {"seconds", "ms", 0},
                                     {"gflops", "GFLOP/s", 2},
                                     {"template", "template"},
                                     {"layouts", "layouts"},
                                     {"threads", "threads", 3},
                                     {"weights", "weights", 3},
                                     {"target", "target", 2},
                                     {"config", "config", 4}}});
    for (const RecordGroup& group : GroupRecords(StandingRecords(records))) {
      for (const Record* record : Best(group)) {
        table.AddRow({TextCell(WorkloadToString(record->workload)), MillisecondsCell(record->seconds),
                      RealCell(record->workload.flops() / record->seconds * 1e-9, 1),
                      TextCell(record->template_name), TextCell(LayoutsText(record->layouts)),
                      CountCell(record->conditions.threads), TextCell(WeightsText(record->conditions)),
                      targets.NumberOf(record->target), KnobsCell(record->config)});
      }
    }
    targets.AddTable(report);
    if (records.empty()) report.Note("no records");
    PrintResults(report, json_, CappedCpu(""));
    return 0;
  }

 private:
  // Fastest first.
  std::vector<const Record*> Best(const RecordGroup& group) const {
    std::map<LayoutPair, const Record*> pairs;
    for (const Record* record : group.records) {
      const auto [best, first] = pairs.try_emplace(record->layouts, record);
      if (!first && IsBetterRecord(*record, *best->second)) best->second = record;
    }
    std::vector<const Record*> best;
    best.reserve(pairs.size());
    for (const auto& [layouts, record] : pairs) best.push_back(record);
    std::stable_sort(best.begin(), best.end(),
                     [](const Record* a, const Record* b) { return IsBetterRecord(*a, *b); });
    if (!all_layouts_) best.resize(1);
    return best;
  }

  std::vector<std::string> paths_;
  std::string workload_;
  bool all_layouts_ = false, json_ = false;
};

Cell OptionalCount(const std::optional<int64_t>& count) { return count ? CountCell(*count) : NoCell(); }

class LogStatsCommand : public Command {
 public:
  LogStatsCommand()
      : Command({.name = "stats",
                 .purpose = "How the tuning went: trials, failures, how soon it was good",
                 .examples = "tilesmith log stats resnet50.jsonl\n"
                             "tilesmith log stats monday.jsonl tuesday.jsonl --json"}) {}
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

std::unique_ptr<Command> MakeLogBestCommand() { return std::make_unique<LogBestCommand>(); }

std::unique_ptr<Command> MakeLogStatsCommand() { return std::make_unique<LogStatsCommand>(); }

}  // namespace tilesmith
