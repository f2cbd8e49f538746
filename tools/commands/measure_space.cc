#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <utility>

#include "layouts/base/error.h"
#include "layouts/base/text_file.h"
#include "layouts/measure/clock.h"
#include "tools/cli/conditions.h"
#include "tools/cli/farm.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/machine.h"
#include "tools/cli/output_file.h"
#include "tools/cli/progress.h"
#include "tools/cli/records.h"
#include "tools/cli/report.h"
#include "tools/cli/results_file.h"
#include "tools/commands/commands.h"
#include "tuner/records/log.h"
#include "tuner/simulation/exhaustive.h"

namespace tilesmith {
namespace {

class MeasureSpaceCommand : public Command {
 public:
  MeasureSpaceCommand()
      : Command(
            {.name = "measure-space",
             .purpose = "Measure every valid config of a space, so that searchers can be compared on it (see "
                        "simulate)",
             .examples =
                 "tilesmith measure-space ic64ih56oc64oh56kh3ph1 --template direct -o direct_64.space \\\n"
                 "  --keep \"ic_block=16 oc_block=16 ic_pass=0 ic_unroll=4,8 prefetch=0\"\n"
                 "tilesmith measure-space ic64ih56oc64oh56kh3ph1 -o direct_64.space --resume"}) {}

  void Declare(Args& args) override {
    args.Positional("WORKLOAD", &workload_, "In benchdnn's form: mb1ic64ih56oc64oh56kh3ph1+bias+relu");
    args.Text("--template", &template_, "Whose space (default direct)", "NAME");
    args.Text("--keep", &keep_, "Only these values of these knobs: \"KNOB=VALUE,VALUE KNOB=VALUE\"", "KNOBS");
    args.Text("-o,--output", &path_, "File to write", "FILE");
    args.Flag("--cold", &cold_, "Weights come from memory");
    args.NonNegative("--seed", &seed_, "Of the order and of the data (default 1)");
    args.Flag("--resume", &resume_, "Go on with what an interrupted run has measured");
    args.Flag("--overwrite", &overwrite_, "Start afresh where a run was interrupted");
    DeclareMachineOptions(args, &machine_options_);
    DeclareFarm(args, &farm_);
    args.Flag("--json", &json_, "Print JSON");
  }

  int Run() override {
    if (path_.empty()) throw Error(ErrorCode::kUsage, "-o FILE is required");
    if (resume_ && overwrite_) throw Error(ErrorCode::kUsage, "--resume and --overwrite exclude each other");
    RequireReplaceable(path_, OutputFormat::kMeasuredSpace);
    const WorkSinks sinks = SinksOf(progress_);
    const auto [machine, measurer] = OpenMeasuring(farm_, machine_options_, sinks);
    ExhaustiveRequest request;
    request.session.workload = ParseWorkload(workload_);
    request.session.cpu = machine->target();
    request.session.conditions = {machine->threads(), true, cold_};
    request.session.seed = static_cast<uint64_t>(seed_);
    request.conv_template = &FindConvTemplate(template_);
    const Support support = request.conv_template->Supports(request.session.workload, machine->target());
    if (!support.ok) {
      throw Error(ErrorCode::kNoCandidate,
                  fmt::format("template {} does not compute {}: {}", template_,
                              WorkloadToString(request.session.workload), support.reason));
    }
    const ConfigSpace whole = request.conv_template->Space(request.session.workload, machine->target());
    request.knobs = Restrict(whole, ParseRestrictions(keep_));
    CheckSize(request.knobs);
    CatchInterrupts();
    const MeasuredSpace measured = Measure(std::move(request), *measurer);
    progress_.Clear();
    ReplaceFile(path_, [&] { WriteMeasuredSpace(measured, path_); });
    std::error_code stays;
    if (keeps_trials()) std::filesystem::remove(LogPathBeside(path_), stays);
    Print(measured);
    return 0;
  }

 private:
  static constexpr size_t kEnough = 20;  // configs, to estimate the time left

  bool keeps_trials() const {
    std::error_code hidden;
    return !FileExists(path_) || std::filesystem::is_regular_file(path_, hidden);
  }

  static void CheckSize(const std::vector<Knob>& knobs) {
    const uint64_t size = ConfigSpace(knobs, nullptr).size();
    if (size <= kMaxSpaceCombinations) return;
    throw Error(ErrorCode::kUsage, fmt::format("{} combinations are too many (at most {}): give --keep, see "
                                               "`tilesmith space` for the knobs",
                                               size, kMaxSpaceCombinations));
  }

  // Trials are kept in a log beside the file until that is whole; beside a device or a pipe there is none.
  MeasuredSpace Measure(ExhaustiveRequest request, Measurer& measurer) {
    if (!keeps_trials()) return MeasureExhaustively(request, measurer, Sinks());
    const std::string log_path = LogPathBeside(path_);
    const ExistingLog existing = resume_      ? ExistingLog::kResume
                                 : overwrite_ ? ExistingLog::kOverwrite
                                              : ExistingLog::kRefuse;
    request.known = KnownRecords(log_path, existing, request.session.cpu);
    for (const Record& record : request.known) {
      const std::string why = WhyForeign(request, record);
      if (why.empty()) continue;
      throw Error(
          ErrorCode::kUsage,
          fmt::format("{} has trials {}: ask for the same again, or give --overwrite", log_path, why));
    }
    LogWriter log(log_path, overwrite_);
    ExhaustiveSinks sinks = Sinks();
    sinks.on_record = [&](const Record& record) { log.Append(record); };
    std::optional<MeasuredSpace> measured;
    if (!UnlessInterrupted([&] { measured = MeasureExhaustively(request, measurer, sinks); })) {
      throw Error(ErrorCode::kInterrupted,
                  fmt::format("interrupted; what was measured is in {}, --resume goes on", log_path));
    }
    return *std::move(measured);
  }

  // The time before the first config, in which all are made ready, tells nothing of the others.
  ExhaustiveSinks Sinks() {
    return {.on_progress =
                [this, first = 0.0](size_t done, size_t of) mutable {
                  if (first == 0) first = NowSeconds();
                  std::string text = fmt::format("{}/{}", done, of);
                  if (done >= kEnough) {
                    const double each = (NowSeconds() - first) / static_cast<double>(done - 1);
                    text += "  left " + DurationText(each * static_cast<double>(of - done));
                  }
                  progress_.Show(text);
                },
            .should_stop = Interrupted};
  }

  void Print(const MeasuredSpace& measured) const {
    int64_t failed = 0;
    for (const auto& [index, seconds] : measured.seconds) failed += !seconds;
    Report report;
    report.Fact("workload", "workload", TextCell(WorkloadToString(measured.workload)));
    report.Fact("template", "template", TextCell(measured.template_name));
    report.Fact("configs", "configs", CountCell(static_cast<int64_t>(measured.seconds.size())));
    report.Fact("failed", "failed", CountCell(failed));
    report.Fact("best_seconds", "best ms", MillisecondsCell(TrueBest(measured)));
    report.Fact("file", "file", TextCell(path_));
    PrintResults(report, json_, ChosenTarget(machine_options_));
  }

  std::string workload_, template_ = "direct", keep_, path_;
  MachineOptions machine_options_;
  FarmOptions farm_;
  int64_t seed_ = 1;
  bool cold_ = false, json_ = false, resume_ = false, overwrite_ = false;
  ProgressLine progress_;
};

}  // namespace

std::unique_ptr<Command> MakeMeasureSpaceCommand() { return std::make_unique<MeasureSpaceCommand>(); }

}  // namespace tilesmith
