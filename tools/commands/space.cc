#include "tools/commands/space.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "templates/conv_template.h"
#include "tools/cli/machine.h"
#include "tools/cli/report.h"

namespace tilesmith {
namespace {

// Configs looked at to find out which layouts a space contains: all of a small one; of a large one, those
// that golden-ratio steps reach, which spread evenly over every knob.
constexpr uint64_t kLayoutSamples = 1 << 16;
constexpr uint64_t kGoldenStep = 0x9E3779B97F4A7C15u;

std::string LayoutsInside(const ConvTemplate& conv_template, const ConvWorkload& workload,
                          const ConfigSpace& space) {
  std::set<LayoutPair> pairs;
  const bool all = space.size() <= kLayoutSamples;
  for (uint64_t i = 0; i < std::min(space.size(), kLayoutSamples); ++i) {
    const Config config = space.At(all ? i : i * kGoldenStep % space.size());
    if (space.WhyInvalid(config).empty()) pairs.insert(conv_template.Layouts(workload, config));
  }
  std::vector<std::string> texts;
  for (const LayoutPair& pair : pairs) {
    texts.push_back(fmt::format("{} -> {}", pair.in.ToString(), pair.out.ToString()));
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

class SpaceCommand : public Command {
 public:
  std::string_view Name() const override { return "space"; }
  std::string_view Purpose() const override {
    return "Show what can be tuned about a convolution, template by template";
  }
  std::string_view Examples() const override {
    return "tilesmith space ic64ih56oc64oh56kh3ph1+bias+relu\n"
           "tilesmith space g32ic32ih112oc32oh112kh3ph1 --max-isa avx2";
  }
  void Declare(Args& args) override {
    args.Positional("WORKLOAD", &workload_, "In benchdnn's form: mb1ic64ih56oc64oh56kh3ph1+bias+relu");
    args.Choice("--max-isa", &max_isa_, {"portable", "avx2", "avx512"}, "Assume no wider instructions");
    args.Flag("--json", &json_, "Print JSON");
  }

  int Run() override {
    const ConvWorkload workload = ParseWorkload(workload_);
    const CpuInfo cpu = CappedCpu(max_isa_);
    Report report;
    report.Fact("workload", "workload", TextCell(WorkloadToString(workload)));
    report.Fact("isa", "ISA", TextCell(std::string(IsaName(cpu.isa))));
    Table& summary = report.AddTable({"templates",
                                      "",
                                      {{"template", "template"},
                                       {"supported", "supported"},
                                       {"combinations", "combinations"},
                                       {"valid", "valid"},
                                       {"note", "layouts (in -> out), or why not"}}});
    for (const ConvTemplate* conv_template : ConvTemplates())
      Add(*conv_template, workload, cpu, report, summary);
    report.Print(json_);
    return 0;
  }

 private:
  static void Add(const ConvTemplate& conv_template, const ConvWorkload& workload, const CpuInfo& cpu,
                  Report& report, Table& summary) {
    const std::string name(conv_template.Name());
    const Support support = conv_template.Supports(workload, cpu);
    if (!support.ok) {
      summary.AddRow({TextCell(name), {false, "no"}, NoCell(), NoCell(), TextCell(support.reason)});
      return;
    }
    const ConfigSpace space = conv_template.Space(workload, cpu);
    const std::optional<uint64_t> valid = space.CountValid();
    summary.AddRow({TextCell(name),
                    {true, "yes"},
                    CountCell(int64_t(space.size())),
                    valid ? CountCell(int64_t(*valid)) : NoCell(),
                    TextCell(LayoutsInside(conv_template, workload, space))});
    const Config preset = conv_template.Default(workload, cpu);
    Table& knobs =
        report.AddTable({name + "_knobs",
                         fmt::format("Knobs of {}:", name),
                         {{"knob", "knob"}, {"values", "values"}, {"default", "default"}, {"help", ""}}});
    for (const Knob& knob : space.knobs()) {
      knobs.AddRow({TextCell(knob.name), TextCell(fmt::format("{}", fmt::join(knob.values, " "))),
                    CountCell(preset.Get(knob.name)), TextCell(knob.help)});
    }
  }

  std::string workload_, max_isa_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeSpaceCommand() { return std::make_unique<SpaceCommand>(); }

}  // namespace tilesmith
