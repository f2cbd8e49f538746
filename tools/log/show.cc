#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "layouts/base/error.h"
#include "layouts/base/text_file.h"
#include "tools/cli/machine.h"
#include "tools/cli/records.h"
#include "tools/cli/results_file.h"
#include "tools/cli/tasks.h"
#include "tools/log/log_commands.h"
#include "tools/log/log_tables.h"
#include "tools/log/shown_schedule.h"
#include "tuner/records/log_scan.h"

namespace tilesmith {
namespace {

class LogShowCommand : public Command {
 public:
  std::string_view Name() const override { return "show"; }
  std::string_view Purpose() const override {
    return "A record's schedule as loops, bytes touched, registers and code";
  }
  std::string_view Examples() const override {
    return "tilesmith log show resnet50.jsonl --workload ic64ih56oc64kh3ph1+bias+relu\n"
           "tilesmith log show resnet50.jsonl --line 12 --asm\n"
           "tilesmith log show ic64ih56oc64kh3ph1 --template winograd --config tile=6,tile_block=16";
  }
  void Declare(Args& args) override {
    args.Positional("LOG|WORKLOAD", &source_, "A tuning log, or a convolution such as ic64ih56oc64kh3ph1");
    DeclareWorkload(args, &workload_);
    args.Positive("--line", &line_, "Of the log, the record in this line (default: the fastest)");
    args.Text("--template", &template_, "Of a log, its fastest record; of a WORKLOAD, instead of the first",
              "NAME");
    args.Text("--config", &config_, "Of a WORKLOAD, knobs other than the default's: K=V,K=V", "K=V,...");
    args.Choice("--max-isa", &max_isa_, {"portable", "avx2", "avx512"},
                "Of a WORKLOAD, no wider instructions");
    DeclareTarget(args, &target_);
    args.Flag("--asm", &asm_, "The machine code too");
    args.Flag("--json", &json_, "Print JSON");
  }

  int Run() override {
    if (asm_ && json_) throw Error(ErrorCode::kUsage, "--asm and --json exclude each other");
    const ShownSchedule schedule = FromSource();
    Report report;
    AddSchedule(schedule, json_, report);
    if (asm_) report.Note(CodeText(schedule));
    PrintResults(report, json_, CappedCpu(""));
    return 0;
  }

 private:
  ShownSchedule FromSource() const {
    if (FileExists(source_) || !LooksLikeWorkload(source_)) {
      if (!config_.empty() || !max_isa_.empty() || target_ != kCpuDevice)
        throw Error(ErrorCode::kUsage,
                    "--config, --max-isa and --target are for a WORKLOAD; a log's record has its own");
      if (line_ > 0 && !(workload_.empty() && template_.empty()))
        throw Error(ErrorCode::kUsage, "--line says which record: --workload and --template are not for it");
      return ScheduleOf(line_ > 0 ? RecordAtLine() : FastestRecord());
    }
    if (line_ > 0 || !workload_.empty())
      throw Error(ErrorCode::kUsage, "--line and --workload are for a LOG");
    return FromWorkload();
  }

  Record RecordAtLine() const {
    Record found;
    std::string problem = "the log has no such line, or it is blank";
    ScanLog(source_, [&](LogLine& line) {
      if (line.number != line_) return;
      problem = line.problem;
      found = std::move(line.record);
    });
    if (!problem.empty()) throw Error(ErrorCode::kUsage, fmt::format("{}:{}: {}", source_, line_, problem));
    return found;
  }

  // One of this machine, if there is any.
  Record FastestRecord() const {
    std::vector<Record> records = OfWorkload(LoadRecords(source_), workload_);
    if (!template_.empty()) {
      FindConvTemplate(template_);
      std::erase_if(records, [&](const Record& record) { return record.template_name != template_; });
    }
    std::vector<const Record*> standing = StandingRecords(records);
    const Target here = CappedCpu("");
    const auto is_here = [&](const Record* record) { return SameMachine(record->target, here); };
    if (std::any_of(standing.begin(), standing.end(), is_here))
      std::erase_if(standing, [&](const Record* record) { return !is_here(record); });
    if (standing.empty()) throw Error(ErrorCode::kNoCandidate, fmt::format("{}: no record to show", source_));
    for (const Record* record : standing) {
      if (record->workload == standing.front()->workload) continue;
      throw Error(ErrorCode::kUsage,
                  fmt::format("{} has several convolutions: give --workload W or --line N (`tilesmith log "
                              "best {}` lists them)",
                              source_, source_));
    }
    return **std::min_element(standing.begin(), standing.end(),
                              [](const Record* a, const Record* b) { return IsBetterRecord(*a, *b); });
  }

  ShownSchedule FromWorkload() const {
    ShownSchedule schedule;
    schedule.workload = ParseWorkload(source_);
    schedule.cpu = ChosenTarget({.max_isa = max_isa_, .target = target_});
    const ConvTemplate* conv_template = nullptr;
    for (const ConvTemplate* candidate : ConvTemplatesFor(schedule.cpu, schedule.workload)) {
      if (conv_template == nullptr && candidate->Supports(schedule.workload, schedule.cpu).ok)
        conv_template = candidate;
    }
    if (!template_.empty()) conv_template = &FindConvTemplate(template_);
    if (conv_template == nullptr)
      throw Error(ErrorCode::kNoCandidate, "no template computes " + WorkloadToString(schedule.workload));
    schedule.template_name = conv_template->Name();
    if (!conv_template->Supports(schedule.workload, schedule.cpu).ok)
      return schedule;  // AddSchedule says why
    schedule.config = conv_template->Default(schedule.workload, schedule.cpu);
    SetKnobs(schedule.config);
    return schedule;
  }

  void SetKnobs(Config& config) const {
    std::string_view rest = config_;
    while (!rest.empty()) {
      const std::string_view item = rest.substr(0, rest.find(','));
      rest.remove_prefix(std::min(item.size() + 1, rest.size()));
      const size_t equals = item.find('=');
      const std::string_view text = equals == std::string_view::npos ? "" : item.substr(equals + 1);
      int64_t value = 0;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
      if (text.empty() || error != std::errc() || end != text.data() + text.size())
        throw Error(ErrorCode::kUsage, fmt::format("--config must be KNOB=NUMBER,..., got {}", config_));
      config.Set(item.substr(0, equals), value);
    }
  }

  std::string source_, workload_, template_, config_, max_isa_, target_ = kCpuDevice;
  int64_t line_ = 0;
  bool asm_ = false, json_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeLogShowCommand() { return std::make_unique<LogShowCommand>(); }

}  // namespace tilesmith
