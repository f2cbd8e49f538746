#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <ranges>
#include <set>
#include <string>
#include <vector>

#include "templates/base/conv_template.h"
#include "tools/cli/machine.h"
#include "tools/cli/report.h"
#include "tools/cli/results_file.h"
#include "tools/commands/commands.h"

namespace tilesmith {
namespace {

// Configs looked at to find out which layouts a space contains: all of a small one; of a large one, those
// that golden-ratio steps reach, which spread evenly over every knob.
constexpr uint64_t kLayoutSamples = 1 << 16;
constexpr uint64_t kGoldenStep = 0x9E3779B97F4A7C15u;

struct SpaceSample {
  std::set<LayoutPair> pairs;
  double valid_share = 0;
};

SpaceSample Sample(const ConvTemplate& conv_template, const ConvWorkload& workload,
                   const ConfigSpace& space) {
  SpaceSample sample;
  const bool all = space.size() <= kLayoutSamples;
  const uint64_t looked_at = std::min(space.size(), kLayoutSamples);
  uint64_t valid = 0;
  for (uint64_t i = 0; i < looked_at; ++i) {
    const Config config = space.At(all ? i : i * kGoldenStep % space.size());
    if (!space.WhyInvalid(config).empty()) continue;
    ++valid;
    sample.pairs.insert(conv_template.Layouts(workload, config));
  }
  sample.valid_share = static_cast<double>(valid) / static_cast<double>(looked_at);
  return sample;
}

bool IsF32(const Layout& layout) { return layout.type() == DataType::kF32; }

// "NHWC NCHW16c -> NHWC NCHW32c" when every combination is there, or every one that is not f32 on both sides;
// else the pairs.
std::string PairsText(const std::set<LayoutPair>& pairs) {
  std::set<Layout> in, out;
  for (const LayoutPair& pair : pairs) {
    in.insert(pair.in);
    out.insert(pair.out);
  }
  const auto text = [](const Layout& layout) { return layout.ToString(); };
  const auto names = [&](const std::set<Layout>& layouts) {
    return fmt::format("{}", fmt::join(layouts | std::views::transform(text), " "));
  };
  const size_t in_f32 = std::ranges::count_if(in, IsF32) * std::ranges::count_if(out, IsF32);
  const bool any_f32 =
      std::ranges::any_of(pairs, [](const LayoutPair& pair) { return IsF32(pair.in) && IsF32(pair.out); });
  if (in.size() * out.size() == pairs.size()) return names(in) + " -> " + names(out);
  if (!any_f32 && in.size() * out.size() - in_f32 == pairs.size())
    return fmt::format("{} -> {}, not both in f32", names(in), names(out));
  const auto arrow = [&](const LayoutPair& pair) { return text(pair.in) + " -> " + text(pair.out); };
  return fmt::format("{}", fmt::join(pairs | std::views::transform(arrow), ", "));
}

class SpaceCommand : public Command {
 public:
  SpaceCommand()
      : Command({.name = "space",
                 .purpose = "Show what can be tuned about a convolution, template by template",
                 .examples = "tilesmith space ic64ih56oc64oh56kh3ph1+bias+relu\n"
                             "tilesmith space g32ic32ih112oc32oh112kh3ph1 --max-isa avx2"}) {}
  void Declare(Args& args) override {
    args.Positional("WORKLOAD", &workload_, "In benchdnn's form: mb1ic64ih56oc64oh56kh3ph1+bias+relu");
    args.Choice("--max-isa", &max_isa_, IsaNames(), "Assume no wider instructions");
    DeclareTarget(args, &target_);
    DeclareReproducible(args, &reproducible_);
    DeclareRounding(args, &precision_);
    args.Flag("--json", &json_, "Print JSON");
  }

  int Run() override {
    const ConvWorkload workload = ParseWorkload(workload_);
    const Target cpu = ChosenTarget(
        {.max_isa = max_isa_, .target = target_, .precision = precision_, .reproducible = reproducible_});
    Report report;
    report.Fact("workload", "workload", TextCell(WorkloadToString(workload)));
    report.Fact("isa", "ISA", TextCell(std::string(IsaName(cpu.isa))));
    Table& summary = report.AddTable({"templates",
                                      "",
                                      {{"template", "template"},
                                       {"supported", "supported", 2},
                                       {"combinations", "combinations"},
                                       {"valid", "valid"},
                                       {"note", "layouts (in -> out), or why not", 0}}});
    for (const ConvTemplate* conv_template : ConvTemplatesFor(cpu, workload))
      Add(*conv_template, workload, cpu, report, summary);
    for (const ConvTemplate* conv_template : ConvTemplates(cpu.device, DataType::kBf16))
      if (!workload.bytes) Add(*conv_template, workload, cpu, report, summary);
    PrintResults(report, json_, cpu);
    return 0;
  }

 private:
  static void Add(const ConvTemplate& conv_template, const ConvWorkload& workload, const Target& cpu,
                  Report& report, Table& summary) {
    const std::string name(conv_template.Name());
    const Support support = conv_template.Supports(workload, cpu);
    if (!support.ok) {
      summary.AddRow({TextCell(name), {false, "no"}, NoCell(), NoCell(), TextCell(support.reason)});
      return;
    }
    const ConfigSpace space = conv_template.Space(workload, cpu);
    const SpaceSample sample = Sample(conv_template, workload, space);
    const std::optional<uint64_t> counted = space.CountValid();
    const auto estimate = static_cast<int64_t>(sample.valid_share * static_cast<double>(space.size()));
    summary.AddRow({TextCell(name),
                    {true, "yes"},
                    CountCell(static_cast<int64_t>(space.size())),
                    counted ? CountCell(static_cast<int64_t>(*counted))
                            : Cell{estimate, fmt::format("~{:.2g}", static_cast<double>(estimate))},
                    TextCell(PairsText(sample.pairs))});
    const Config preset = conv_template.Default(workload, cpu);
    Table& knobs = report.AddTable(
        {name + "_knobs",
         fmt::format("Knobs of {}:", name),
         {{"knob", "knob"}, {"values", "values", 0}, {"default", "default"}, {"help", "what it is", 0}}});
    for (const Knob& knob : space.knobs()) {
      knobs.AddRow({TextCell(knob.name), Cell{knob.values, fmt::format("{}", fmt::join(knob.values, " "))},
                    CountCell(preset.Get(knob.name)), TextCell(knob.help)});
    }
  }

  std::string workload_, max_isa_, target_ = kCpuDevice;
  bool reproducible_ = false;
  Precision precision_ = Precision::kF32;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeSpaceCommand() { return std::make_unique<SpaceCommand>(); }

}  // namespace tilesmith
