#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <sstream>
#include <string>

#include "layouts/base/arm_cpu.h"
#include "layouts/base/error.h"
#include "layouts/base/text_file.h"
#include "templates/base/workload_data.h"
#include "tools/cli/args.h"
#include "tools/cli/disassembly.h"
#include "tools/cli/machine.h"
#include "tools/cli/records.h"
#include "tools/cli/report.h"
#include "tools/cli/results_file.h"
#include "tools/cli/streams.h"
#include "tools/cli/targets.h"
#include "tools/cli/tasks.h"
#include "tools/log/log_commands.h"
#include "tools/log/log_tables.h"
#include "tuner/records/log_scan.h"
#include "tuner/records/record.h"

namespace tilesmith {

// A schedule explained: its loops, what they touch, its registers and code.
struct ShownSchedule {
  ConvWorkload workload;
  std::string template_name;
  Config config;
  Target cpu;  // it is for
  std::optional<Record> record;
};

namespace {

std::string BytesText(double bytes) {
  if (bytes < 1024) return fmt::format("{:.0f} B", bytes);
  if (bytes < 1024 * 1024) return fmt::format("{:.1f} KiB", bytes / 1024);
  return fmt::format("{:.1f} MiB", bytes / 1024 / 1024);
}

Cell BytesCell(double bytes) { return {static_cast<int64_t>(bytes), BytesText(bytes)}; }

// The nearest cache that holds so many bytes.
std::string CacheText(double bytes, const Target& cpu) {
  const std::pair<const char*, int64_t> caches[] = {
      {"L1", cpu.l1d_bytes}, {"L2", cpu.l2_bytes}, {"L3", cpu.l3_bytes}};
  for (const auto& [name, size] : caches) {
    if (bytes <= static_cast<double>(size))
      return fmt::format("{} ({})", name, BytesText(static_cast<double>(size)));
  }
  return cpu.l1d_bytes > 0 ? "memory" : "unknown";
}

struct Footprint {
  const char* what;
  double input = 0, weights = 0, output = 0, scratch = 0;
};

void AddRow(const Footprint& f, const Target& cpu, Table& table) {
  const double total = f.input + f.weights + f.output + f.scratch;
  table.AddRow({TextCell(f.what), BytesCell(f.input), BytesCell(f.weights), BytesCell(f.output),
                BytesCell(f.scratch), BytesCell(total), TextCell(CacheText(total, cpu))});
}

void AddFootprints(const ShownSchedule& s, const LoopNest& nest, const LoopFeatures& features,
                   const LayoutPair& layouts, Report& report) {
  const auto bytes = [](const Shape& shape, const Layout& layout) {
    return static_cast<double>(PaddedBytes(shape, layout));
  };
  Table& table = report.AddTable({"bytes",
                                  "",
                                  {{"level", "bytes touched by"},
                                   {"input_bytes", "input"},
                                   {"weight_bytes", "weights"},
                                   {"output_bytes", "output"},
                                   {"scratch_bytes", "scratch"},
                                   {"total_bytes", "total"},
                                   {"fits", "fits"}}});
  AddRow({"a register tile", nest.tile_input_bytes, nest.tile_weight_bytes, nest.tile_output_bytes}, s.cpu,
         table);
  AddRow({"a task", features.task_input_bytes, features.task_weight_bytes, features.task_output_bytes,
          features.scratch_bytes},
         s.cpu, table);
  AddRow({"the whole", bytes(s.workload.input_shape(), layouts.in), features.weight_bytes,
          bytes(s.workload.output_shape(), layouts.out), features.scratch_bytes},
         s.cpu, table);
}

// Notes behind loops, "# ...", go on in the next line where they are too long.
std::string WithinWidth(const std::string& nest, size_t width) {
  constexpr size_t kLeast = 16;  // of a note in a line
  if (width == 0) return nest;
  std::istringstream lines(nest);
  std::string text;
  for (std::string line; std::getline(lines, line);) {
    const size_t note = line.find("# ") + 2;
    const bool wraps = line.size() > width && note >= 2 && note + kLeast <= width;
    text += (wraps ? line.substr(0, note) + Wrapped(line.substr(note), width, note) : line) + "\n";
  }
  return text;
}

void AddLoops(const LoopNest& nest, Report& report) {
  static constexpr const char* kKinds[] = {"tasks", "loop", "unrolled", "vector"};
  Table& table = report.AddTable(
      {"loops",
       "",
       {{"part", ""}, {"kind", ""}, {"dimension", ""}, {"trips", ""}, {"step", ""}, {"note", ""}}});
  const auto add = [&](const std::string& part, const std::vector<Loop>& loops) {
    for (const Loop& loop : loops) {
      table.AddRow({TextCell(part), TextCell(kKinds[static_cast<int>(loop.kind)]), TextCell(loop.dim),
                    CountCell(loop.trips), CountCell(loop.step), TextCell(loop.note)});
    }
  };
  add("", nest.tasks);
  for (const LoopPart& part : nest.parts) add(part.title.empty() ? part.body : part.title, part.loops);
}

void AddRecord(const Record& record, Report& report) {
  report.Fact(
      "cpu", "measured on",
      TextCell(fmt::format("{} ({}), {} threads, {} weights", record.target.model, IsaName(record.target.isa),
                           record.conditions.threads, WeightsText(record.conditions))));
  report.Fact("time", "at", TextCell(record.time));
  report.Fact("status", "status",
              TextCell(std::string(TrialStatusName(record.status)) +
                       (record.detail.empty() ? "" : ": " + record.detail)));
  if (record.status != TrialStatus::kOk) return;
  report.Fact("seconds", "ms", MillisecondsCell(record.seconds));
  report.Fact("gflops", "GFLOP/s", RealCell(record.workload.flops() / record.seconds * 1e-9, 1));
}

const ConvTemplate& CheckedTemplate(const ShownSchedule& s) {
  const ConvTemplate& conv_template = FindConvTemplate(s.template_name);
  const Support support = conv_template.Supports(s.workload, s.cpu);
  if (!support.ok) {
    throw Error(ErrorCode::kUsage, fmt::format("template {} does not compute {}: {}", s.template_name,
                                               WorkloadToString(s.workload), support.reason));
  }
  const std::string invalid = conv_template.Space(s.workload, s.cpu).WhyInvalid(s.config);
  if (!invalid.empty())
    throw Error(ErrorCode::kUsage, fmt::format("config {}: {}", s.config.ToString(), invalid));
  return conv_template;
}

}  // namespace

// As measured, and for its machine's caches.
ShownSchedule ScheduleOf(const Record& record) {
  return {record.workload, record.template_name, record.config, record.target, record};
}

// Throws Error(kUsage) when the template is unknown, does not support the workload, or the config is invalid.
void AddSchedule(const ShownSchedule& s, bool json, Report& report) {
  const ConvTemplate& conv_template = CheckedTemplate(s);
  const LoopNest nest = conv_template.Nest(s.workload, s.config, s.cpu);
  const LoopFeatures features = conv_template.Features(s.workload, s.config, s.cpu);
  const LayoutPair layouts = conv_template.Layouts(s.workload, s.config);
  report.Fact("workload", "workload", TextCell(WorkloadToString(s.workload)));
  report.Fact("template", "template", TextCell(s.template_name));
  report.Fact("config", "config", KnobsCell(s.config));
  report.Fact("layouts", "layouts", TextCell(LayoutsText(layouts)));
  report.Fact("isa", "ISA", TextCell(std::string(IsaName(s.cpu.isa))));
  if (s.record) AddRecord(*s.record, report);
  if (json) {
    AddLoops(nest, report);
  } else {
    report.Note("\n" + WithinWidth(LoopNestText(nest), OutputColumns()));
  }
  report.Fact("accumulators", "registers with sums",
              {static_cast<int64_t>(features.accumulators),
               fmt::format("{:.0f} of {}", features.accumulators, s.cpu.vector_registers())});
  report.Fact("fma_per_load", "FMAs per load", RealCell(features.fma_per_load, 2));
  report.Fact("tasks", "tasks", CountCell(static_cast<int64_t>(features.tasks)));
  if (features.code_bytes > 0) report.Fact("code_bytes", "code, about", BytesCell(features.code_bytes));
  AddFootprints(s, nest, features, layouts, report);
}

// The disassembly of everything generated for it. Throws Error(kEnvironment) when it needs instructions that
// this machine lacks.
std::string CodeText(const ShownSchedule& s) {
  const ConvTemplate& conv_template = CheckedTemplate(s);
  if (const Target here = DetectCpu(); !Includes(here.isa, s.cpu.isa) || s.cpu.sve_bytes > here.sve_bytes) {
    throw Error(ErrorCode::kEnvironment,
                fmt::format("--asm builds the code, which needs {}; this machine has {}", VectorsText(s.cpu),
                            VectorsText(here)));
  }
  const WorkloadData zeros = MakeWorkloadData(s.workload, 0, [](Tensor&) {});
  const auto kernel = conv_template.Build(s.workload, s.config, s.cpu, zeros.operands().weights);
  std::string text;
  for (const CodeBlob& blob : kernel->Code())
    text += fmt::format("\n{} ({} bytes):\n{}", blob.name, blob.bytes.size(), DisassemblyText(blob));
  return text.empty() ? "\nno code is generated\n" : text;
}

namespace {

class LogShowCommand : public Command {
 public:
  LogShowCommand()
      : Command(
            {.name = "show",
             .purpose = "A record's schedule as loops, bytes touched, registers and code",
             .examples =
                 "tilesmith log show resnet50.jsonl --workload ic64ih56oc64kh3ph1+bias+relu\n"
                 "tilesmith log show resnet50.jsonl --line 12 --asm\n"
                 "tilesmith log show ic64ih56oc64kh3ph1 --template winograd --config tile=6,tile_block=16"}) {
  }
  void Declare(Args& args) override {
    args.Positional("LOG|WORKLOAD", &source_, "A tuning log, or a convolution such as ic64ih56oc64kh3ph1");
    DeclareWorkload(args, &workload_);
    args.Positive("--line", &line_, "Of the log, the record in this line (default: the fastest)");
    args.Text("--template", &template_, "Of a log, its fastest record; of a WORKLOAD, instead of the first",
              "NAME");
    args.Text("--config", &config_, "Of a WORKLOAD, knobs other than the default's: K=V,K=V", "K=V,...");
    args.Choice("--max-isa", &max_isa_, IsaNames(), "Of a WORKLOAD, no wider instructions");
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
