#include "tuner/cost_model/cost_model.h"

#include <set>

#include "layouts/base/error.h"
#include "tools/cli/output_file.h"
#include "tools/cli/records.h"
#include "tools/cli/report.h"
#include "tools/cli/results_file.h"
#include "tools/commands/commands.h"
#include "tuner/cost_model/training_history.h"

namespace tilesmith {
namespace {

constexpr size_t kMaxRowsShown = 20;

class CostModelCommand : public Command {
 public:
  CostModelCommand()
      : Command({.name = "cost-model",
                 .purpose = "Train a cost model on tuning logs, or show a saved one: what it looks at, how "
                            "well it orders",
                 .examples = "tilesmith cost-model --log resnet18.jsonl --log resnet50.jsonl -o model.json\n"
                             "tilesmith cost-model --model model.json --log vgg19.jsonl"}) {}

  void Declare(Args& args) override {
    args.Texts("--log", &logs_, "Tuning log; several times for several", "LOG");
    args.Text("--model", &model_path_, "Show this model instead of training one; --log then judges it",
              "FILE");
    args.Text("-o,--output", &output_path_, "Save the trained model", "FILE");
    args.Choice("--objective", &objective_, {"regression", "pairwise-rank"},
                "What is learnt (default regression)");
    args.Flag("--json", &json_, "Print JSON");
  }

  int Run() override {
    if (logs_.empty() && model_path_.empty())
      throw Error(ErrorCode::kUsage, "--log LOG or --model FILE is required");
    if (!model_path_.empty() && !output_path_.empty()) {
      throw Error(ErrorCode::kUsage, "--model and -o exclude each other");
    }
    if (!model_path_.empty() && !objective_.empty()) {
      throw Error(ErrorCode::kUsage, "--objective is for training: the model of --model has its own");
    }
    RequireReplaceable(output_path_, OutputFormat::kCostModel);
    std::vector<Record> records;
    for (const std::string& path : logs_) {
      for (Record& record : LoadRecords(path)) records.push_back(std::move(record));
    }
    const bool trained_here = model_path_.empty();
    const CostModel model =
        trained_here ? TrainCostModel(HistoryOf(records, ""),
                                      ParseObjective(objective_.empty() ? "regression" : objective_))
                     : LoadCostModel(model_path_);
    Report report;
    report.Fact("objective", "objective", TextCell(std::string(ObjectiveName(model.objective()))));
    if (!logs_.empty()) report.Fact("records", "records", CountCell(static_cast<int64_t>(records.size())));
    if (!records.empty()) AddQuality(records, model, trained_here, report);
    AddImportance(model, report);
    if (!output_path_.empty()) {
      SaveCostModel(model, output_path_);
      report.Fact("saved", "saved", TextCell(output_path_));
    }
    PrintResults(report, json_, CappedCpu(""));
    return 0;
  }

 private:
  // All records but those of one workload.
  static TrainingHistory HistoryOf(const std::vector<Record>& records, const std::string& without) {
    TrainingHistory history;
    for (const Record& record : records) {
      if (without.empty() || WorkloadToString(record.workload) != without) history.Add(record);
    }
    return history;
  }

  // A trained model is judged on each task by one that was trained on all the others.
  void AddQuality(const std::vector<Record>& records, const CostModel& model, bool trained_here,
                  Report& report) const {
    std::set<std::string> workloads;
    for (const Record& record : records) workloads.insert(WorkloadToString(record.workload));
    Table& table = report.AddTable({"tasks",
                                    trained_here ? "Each task as a model of the other tasks orders it:"
                                                 : "How the model orders each task:",
                                    {{"workload", "workload"},
                                     {"records", "records"},
                                     {"pair_accuracy", "pairs in order"},
                                     {"best_of_16", "best of its first 16"}}});
    if (trained_here && workloads.size() < 2) {
      report.Note("A single task: there is no model of other tasks to judge by it.");
      return;
    }
    for (const std::string& workload : workloads) {
      TrainingHistory own;
      for (const Record& record : records) {
        if (WorkloadToString(record.workload) == workload) own.Add(record);
      }
      if (own.size() == 0) continue;
      const CostModel judge =
          trained_here ? TrainCostModel(HistoryOf(records, workload), model.objective()) : model;
      const TrainingSet set = own.ToTrainingSet(judge.schema());
      const std::vector<float> predicted = judge.Predict(set.features);
      constexpr size_t kFirst = 16;
      table.AddRow({TextCell(workload), CountCell(static_cast<int64_t>(own.size())),
                    PercentCell(PairAccuracy(predicted, set.scores)),
                    PercentCell(RecallOfBest(predicted, set.scores, kFirst))});
    }
  }

  static void AddImportance(const CostModel& model, Report& report) {
    Table& table = report.AddTable(
        {"importance", "What it looks at:", {{"feature", "feature"}, {"gain_share", "gain"}, {"", "share"}}});
    for (const CostModel::ColumnGain& gain : model.Importance()) {
      if (table.rows().size() == kMaxRowsShown) break;
      table.AddRow({TextCell(gain.column), PercentCell(gain.share),
                    TextCell(std::string(static_cast<size_t>(60 * gain.share), '#'))});
    }
  }

  std::vector<std::string> logs_;
  std::string model_path_, output_path_, objective_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeCostModelCommand() { return std::make_unique<CostModelCommand>(); }

}  // namespace tilesmith
