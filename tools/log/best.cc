#include <algorithm>
#include <map>

#include "tools/cli/records.h"
#include "tools/cli/results_file.h"
#include "tools/cli/targets.h"
#include "tools/log/log_commands.h"
#include "tools/log/log_tables.h"

namespace tilesmith {
namespace {

class LogBestCommand : public Command {
 public:
  std::string_view Name() const override { return "best"; }
  std::string_view Purpose() const override { return "The fastest record of each convolution"; }
  std::string_view Examples() const override {
    return "tilesmith log best resnet50.jsonl\n"
           "tilesmith log best a.jsonl b.jsonl --workload ic64ih56oc64kh3ph1+bias+relu --all-layouts";
  }
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

}  // namespace

std::unique_ptr<Command> MakeLogBestCommand() { return std::make_unique<LogBestCommand>(); }

}  // namespace tilesmith
