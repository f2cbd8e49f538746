#include "tuner/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "layouts/base/error.h"
#include "layouts/measure/clock.h"
#include "tools/cli/farm.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/machine.h"
#include "tools/cli/output_file.h"
#include "tools/cli/progress.h"
#include "tools/cli/records.h"
#include "tools/cli/results_file.h"
#include "tools/cli/targets.h"
#include "tools/log/log_commands.h"
#include "tools/log/log_tables.h"
#include "tuner/records/log.h"

namespace tilesmith {
namespace {

// "10%" or "10" -> 0.1.
double ParsePercent(const std::string& name, const std::string& text) {
  const std::string_view number(text.data(), text.size() - (text.ends_with('%') ? 1 : 0));
  double value = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
  if (error != std::errc() || end != number.data() + number.size() || !(value > 0 && value <= 1000))
    throw Error(ErrorCode::kUsage, fmt::format("{} must be a percentage such as 10%, got {}", name, text));
  return value / 100;
}

class LogVerifyCommand : public Command {
 public:
  LogVerifyCommand()
      : Command({.name = "verify",
                 .purpose = "Measure the best records again, and check their answers",
                 .examples = "tilesmith log verify resnet50.jsonl\n"
                             "tilesmith log verify resnet50.jsonl --top 3 --tolerance 5% --strict\n"
                             "tilesmith log verify imported.jsonl --retarget -o here.jsonl"}) {}
  void Declare(Args& args) override {
    args_ = &args;
    args.Positionals("LOG", &paths_, "Tuning logs");
    DeclareWorkload(args, &workload_);
    args.Positive("--top", &top_, "Fastest configs of each convolution and conditions (default 1)");
    args.Text("--tolerance", &tolerance_text_, "Times may differ by this much (default 10%)", "PERCENT");
    args.Flag("--strict", &strict_, "Exit with 6 when one is slower by more");
    args.Flag("--retarget", &retarget_,
              "Records of other machines too: as new ones of this machine, with --threads threads");
    args.Text("-o,--output", &output_, "Append what was measured to this log", "LOG");
    DeclareMachineOptions(args, &machine_options_);
    DeclareFarm(args, &farm_);
    args.Flag("--json", &json_, "Print JSON");
  }

  int Run() override {
    if (!retarget_)
      args_->RefuseGiven({"--threads"}, "is for --retarget: records are verified with their own");
    tolerance_ = ParsePercent("--tolerance", tolerance_text_);
    RequireFormat(output_, OutputFormat::kLog);
    ProgressLine progress;
    const WorkSinks sinks = SinksOf(progress);
    const auto [machine, measurer] = OpenMeasuring(farm_, machine_options_, sinks);
    const std::vector<Record> best = FastestRecords(OfWorkload(LoadRecords(paths_), workload_), top_);
    VerifyRequest request;
    request.cpu = machine->target();
    request.threads = machine->threads();
    request.retarget = retarget_;
    request.tolerance = tolerance_;
    CatchInterrupts();
    const std::vector<Verification> all = Measure(best, request, *measurer, progress);
    progress.Clear();
    Print(all);
    if (Interrupted())
      throw Error(ErrorCode::kInterrupted, "interrupted; the results say what was measured until then");
    return ExitCode(all.empty());
  }

 private:
  std::vector<Verification> Measure(const std::vector<Record>& records, const VerifyRequest& request,
                                    Measurer& measurer, ProgressLine& progress) const {
    std::optional<LogWriter> log;
    if (!output_.empty()) log.emplace(output_);
    const double begin = NowSeconds();
    VerifySinks sinks;
    sinks.should_stop = Interrupted;
    sinks.on_record = [&](const Record& record) {
      if (log) log->Append(record);
    };
    sinks.on_progress = [&](size_t done, size_t total) {
      const double left =
          (NowSeconds() - begin) * static_cast<double>(total - done) / static_cast<double>(done);
      progress.Show(fmt::format("{}/{} records  left {}", done, total, DurationText(left)));
    };
    return VerifyRecords(records, request, measurer, sinks);
  }

  void Print(const std::vector<Verification>& all) {
    Report report;
    Table& table = report.AddTable({"records",
                                    "",
                                    {{"workload", "workload"},
                                     {"threads", "threads", 3},
                                     {"weights", "weights", 3},
                                     {"layouts", "layouts", 3},
                                     {"template", "template", 2},
                                     {"old_seconds", "old ms"},
                                     {"new_seconds", "new ms"},
                                     {"ratio", "new/old"},
                                     {"answer", "answer", 0},
                                     {"error", "error", 2},
                                     {"note", "note", 0}}});
    for (const Verification& v : all) AddRow(v, table);
    report.Fact("verified", "right answers", CountCell(right_));
    report.Fact("wrong", "wrong or none", CountCell(wrong_));
    report.Fact("skipped", "skipped", CountCell(static_cast<int64_t>(all.size()) - right_ - wrong_));
    report.Fact("slower", fmt::format("slower by more than {:g}%", tolerance_ * 100), CountCell(slower_));
    report.Fact("faster", fmt::format("faster by more than {:g}%", tolerance_ * 100), CountCell(faster_));
    if (!output_.empty()) report.Fact("log", "log", TextCell(output_));
    PrintResults(report, json_, CappedCpu(""));
  }

  void AddRow(const Verification& v, Table& table) {
    const Record& now = v.now;
    const bool measured = v.measured;
    const bool ok = measured && now.status == TrialStatus::kOk;
    const bool comparable = v.comparable();
    std::string note = v.skipped;
    if (measured) ++(ok ? right_ : wrong_);
    if (measured && !ok) note = now.detail;
    if (measured && v.old.config != now.config) note = "nearest valid config: " + now.config.ToString();
    if (comparable) note = Compare(now.seconds / v.old.seconds);
    const std::string answer = ok          ? "ok"
                               : !measured ? "-"
                               : now.status == TrialStatus::kWrongAnswer
                                   ? "wrong"
                                   : std::string(TrialStatusName(now.status));
    table.AddRow({TextCell(WorkloadToString(now.workload)), CountCell(now.conditions.threads),
                  TextCell(WeightsText(now.conditions)), TextCell(LayoutsText(now.layouts)),
                  TextCell(now.template_name), MillisecondsCell(v.old.seconds),
                  ok ? MillisecondsCell(now.seconds) : NoCell(),
                  comparable ? RatioCell(now.seconds / v.old.seconds) : NoCell(), TextCell(answer),
                  measured && now.error ? Cell{*now.error, fmt::format("{:.1e}", *now.error)} : NoCell(),
                  TextCell(note)});
  }

  std::string Compare(double ratio) {
    if (ratio > 1 + tolerance_) {
      ++slower_;
      return fmt::format("{:.0f}% slower", (ratio - 1) * 100);
    }
    if (ratio < 1 / (1 + tolerance_)) {
      ++faster_;
      return fmt::format("{:.0f}% faster", (1 / ratio - 1) * 100);
    }
    return "";
  }

  int ExitCode(bool empty) const {
    if (wrong_ > 0)
      throw Error(ErrorCode::kWrongAnswer,
                  fmt::format("{} of {} records give no right answer", wrong_, wrong_ + right_));
    if (empty)
      throw Error(ErrorCode::kNoCandidate, paths_.size() == 1 ? paths_[0] + " holds no record to verify"
                                                              : "the logs hold no record to verify");
    if (right_ == 0)
      throw Error(ErrorCode::kNoCandidate, fmt::format("no record could be verified on this machine{}",
                                                       retarget_ ? "" : " (--retarget takes others')"));
    if (strict_ && slower_ > 0)
      throw Error(ErrorCode::kTooSlow,
                  fmt::format("{} {} slower by more than {:g}%", slower_,
                              slower_ == 1 ? "record is" : "records are", tolerance_ * 100));
    return 0;
  }

  std::vector<std::string> paths_;
  std::string workload_, tolerance_text_ = "10%", output_;
  int64_t top_ = 1;
  const Args* args_ = nullptr;  // while it runs
  bool strict_ = false, retarget_ = false, json_ = false;
  MachineOptions machine_options_;
  FarmOptions farm_;

  double tolerance_ = 0;
  int64_t right_ = 0, wrong_ = 0, slower_ = 0, faster_ = 0;
};

}  // namespace

std::unique_ptr<Command> MakeLogVerifyCommand() { return std::make_unique<LogVerifyCommand>(); }

}  // namespace tilesmith
