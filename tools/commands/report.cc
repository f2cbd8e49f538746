#include "tools/cli/report.h"

#include <fmt/format.h>

#include "graph_tuner/compiled/compiled_file.h"
#include "layouts/base/error.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/machine.h"
#include "tools/cli/progress.h"
#include "tools/cli/results_file.h"
#include "tools/commands/commands.h"
#include "tools/report/write_report.h"

namespace tilesmith {
namespace {

class ReportCommand : public Command {
 public:
  ReportCommand()
      : Command(
            {.name = "report",
             .purpose =
                 "A page to look at, of a network that was tuned: figures, charts, the plan and why it is so",
             .examples = "tilesmith report resnet50.jsonl resnet50.plan.jsonl -o report.html\n"
                         "tilesmith report model.jsonl model.plan.jsonl bench.json --model model.onnx -o "
                         "report.html"}) {}
  void Declare(Args& args) override {
    args_ = &args;
    args.Positional("LOG", &request_.log_path, "Tuning log, as `tilesmith tune` or `optimize` writes it");
    args.Positional("PLAN", &request_.plan_path, "Plan, as `tilesmith optimize` or `graph-tune` writes it");
    args.OptionalPositional("BENCH.json", &request_.bench_path,
                            "What `tilesmith bench --json` printed for the plan");
    args.Text("-o,--output", &request_.output_path, "Page to write", "FILE");
    args.Texts("--results", &request_.result_paths,
               "What graph-tune, optimize, run or a sweep of bench printed with --json, too; may be repeated",
               "FILE");
    args.Text("--trace", &request_.trace_path, "Timeline of a run, as `tilesmith run --trace` writes it",
              "FILE");
    args.Text("--model", &request_.model.model,
              "The network, an ONNX file or a built-in one (default: the built-in one that the plan names)",
              "MODEL");
    DeclareInputOptions(args, &request_.model);
    args.Text("--costs", &request_.costs_path,
              "Measured costs, as graph-tune keeps them (default: beside the log)", "FILE");
    args.Duration("--explain-time", &request_.explain_seconds,
                  "At most, for why each node is computed as it is (default 30s)");
    args.Flag("--no-explain", &no_explain_, "Without that");
    args.Flag("--json", &json_, "Print JSON");
  }

  int Run() override {
    if (request_.output_path.empty()) throw Error(ErrorCode::kUsage, "-o FILE is required");
    if (no_explain_) args_->RefuseGiven({"--explain-time"}, "and --no-explain exclude each other");
    if (no_explain_) request_.explain_seconds = 0;
    if (IsCompiledFile(request_.plan_path)) {
      throw Error(ErrorCode::kUsage,
                  fmt::format("{} is a compiled network: give the plan that it was compiled by, and with "
                              "--results what `tilesmith bench` or `run` printed of the file with --json",
                              request_.plan_path));
    }
    CatchInterrupts();
    ProgressLine progress;
    const WrittenReport written = WriteReport(request_, SinksOf(progress));
    progress.Clear();
    Report report;
    report.Fact("verdict", "verdict", TextCell(written.verdict));
    report.Fact("report", "report", TextCell(request_.output_path));
    for (const std::string& missing : written.missing) report.Note("not in it: " + missing);
    PrintResults(report, json_, CappedCpu(""));
    return 0;
  }

 private:
  const Args* args_ = nullptr;  // while it runs
  ReportRequest request_;
  bool no_explain_ = false, json_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeReportCommand() { return std::make_unique<ReportCommand>(); }

}  // namespace tilesmith
