#include "tools/cli/tasks.h"

#include "tools/cli/machine.h"
#include "tools/cli/model.h"
#include "tools/cli/report.h"
#include "tools/cli/results_file.h"
#include "tools/commands/commands.h"
#include "tools/quantize/in_place.h"

namespace tilesmith {
namespace {

class TasksCommand : public Command {
 public:
  TasksCommand()
      : Command({.name = "tasks",
                 .purpose = "List a network's distinct convolutions",
                 .examples = "tilesmith tasks resnet50\n"
                             "tilesmith tasks resnet18 --batch 8 --json\n"
                             "tilesmith tasks model.onnx --input-shape input=1x3x256x256"}) {}
  void Declare(Args& args) override {
    DeclareModelOptions(args, &model_);
    args.Choice("--max-isa", &max_isa_, IsaNames(), "Assume no wider instructions");
    DeclareTarget(args, &target_);
    DeclarePrecision(args, &precision_, std::array{Precision::kF32, Precision::kInt8},
                     "int8: of the quantised network (default f32)");
    args.Flag("--no-fusion", &no_fusion_, "Leave out the fused alternatives to pairs of layers");
    args.Flag("--json", &json_, "Print JSON");
  }

  int Run() override {
    // What a task is depends on no values.
    model_.calibration.samples = 1;
    QuantizeInPlace(
        precision_, [] { return OpenMachine({}); }, {}, &model_);
    const Graph graph = LoadModel(model_);
    const Target cpu = ChosenTarget({.max_isa = max_isa_, .target = target_});
    Report report;
    Table& table = report.AddTable({"tasks",
                                    "",
                                    {{"workload", "workload"},
                                     {"fused", "fused", 3},
                                     {"count", "count", 0},
                                     {"gflop", "GFLOP"},
                                     {"templates", "templates", 2}}});
    const auto add_row = [&](const ConvTask& task) {
      table.AddRow({TextCell(WorkloadToString(task.workload)), TextCell(FusionText(task.workload)),
                    CountCell(task.count), GflopCell(task.workload.flops()),
                    NamesCell(SupportingTemplates(task.workload, cpu))});
    };
    double total = 0;
    int64_t convs = 0, products = 0;
    const std::vector<ConvTask> tasks = TasksOf(graph);
    for (const ConvTask& task : tasks) {
      total += task.workload.flops() * static_cast<double>(task.count);
      (task.workload.product ? products : convs) += task.count;
      add_row(task);
    }
    const std::vector<ConvTask> fused = no_fusion_ ? std::vector<ConvTask>() : FusedTasksOf({&graph, 1}, cpu);
    for (const ConvTask& task : fused) add_row(task);
    report.Fact("network", "network", TextCell(graph.name()));
    report.Fact("convs", "convolutions", CountCell(convs));
    report.Fact("products", "products", CountCell(products));
    report.Fact("distinct", "distinct", CountCell(static_cast<int64_t>(tasks.size())));
    report.Fact("fused", "fused alternatives", CountCell(static_cast<int64_t>(fused.size())));
    report.Fact("total_gflop", "total GFLOP", GflopCell(total));
    PrintResults(report, json_, cpu);
    return 0;
  }

 private:
  ModelOptions model_;
  std::string max_isa_, target_ = kCpuDevice;
  Precision precision_ = Precision::kF32;
  bool no_fusion_ = false, json_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeTasksCommand() { return std::make_unique<TasksCommand>(); }

}  // namespace tilesmith
