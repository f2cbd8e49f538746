#include "tools/log/shown_schedule.h"

#include <fmt/format.h>

#include <sstream>

#include "layouts/base/error.h"
#include "templates/base/workload_data.h"
#include "tools/cli/args.h"
#include "tools/cli/disassembly.h"
#include "tools/cli/streams.h"
#include "tools/cli/targets.h"
#include "tools/log/log_tables.h"

namespace tilesmith {
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

ShownSchedule ScheduleOf(const Record& record) {
  return {record.workload, record.template_name, record.config, record.target, record};
}

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

std::string CodeText(const ShownSchedule& s) {
  const ConvTemplate& conv_template = CheckedTemplate(s);
  if (s.cpu.isa > DetectCpu().isa) {
    throw Error(ErrorCode::kEnvironment,
                fmt::format("--asm builds the code, which needs {}; this machine has {}", IsaName(s.cpu.isa),
                            IsaName(DetectCpu().isa)));
  }
  const WorkloadData zeros = MakeWorkloadData(s.workload, 0, [](Tensor&) {});
  const auto kernel = conv_template.Build(s.workload, s.config, s.cpu, zeros.operands().weights);
  std::string text;
  for (const CodeBlob& blob : kernel->Code())
    text += fmt::format("\n{} ({} bytes):\n{}", blob.name, blob.bytes.size(), DisassemblyText(blob));
  return text.empty() ? "\nno code is generated\n" : text;
}

}  // namespace tilesmith
