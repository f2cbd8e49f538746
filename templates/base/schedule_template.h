// What turns a template's plain functions into a ConvTemplate. All templates have one shape, in a folder and
// a namespace of their own:
//
//   config.h      the knobs as a struct (ReadConfig); struct Schedule: a workload, a config and what matters
//                 of the CPU, read once, and every size that follows from them, in a schedule.h of its own
//                 where there is much of it; and the function that gives the template. All that is asked of
//                 a config is asked of its schedule:
//                     TaskGrid GridOf(const Schedule&)
//                     LoopFeatures FeaturesOf(const Schedule&)
//                     LoopNest NestOf(const Schedule&)
//                     std::unique_ptr<ConvKernel> BuildKernel(Schedule, const Target&, const ConvWeights&)
//   config.cc     Supports, Space, Default as in ConvTemplate, and the template, made of all these
//   code/         BuildKernel and its code generators, in the words of templates/code/vector_code.h;
//                 x86/, arm/: those of one architecture only
//
// tests/templates/example_template.cc is a complete one, in one file.
#pragma once

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "layouts/base/check.h"
#include "templates/base/conv_template.h"

namespace tilesmith {

enum class Order { kPlain, kWinograd, kOwn };

template <typename Schedule>
struct TemplateParts {
  std::string_view name;
  std::string_view device = kCpuDevice;  // ConvTemplate::DeviceKind
  DataType type = DataType::kF32;        // ConvTemplate::Type
  int least_compute = 0;                 // of GPUs: Target::compute that its code needs
  bool fuses = false;                    // computes something in front of the conv
  bool products = false;                 // multiplies two inputs: supports products, and nothing else
  // Asked of workloads that pass what `type`, `fuses`, `products` and kCode say.
  Support (*supports)(const ConvWorkload& workload, const Target& cpu);
  bool preset_decides = false;  // what `supports` says yes to is supported where its preset is valid
  ConfigSpace (*space)(const ConvWorkload& workload, const Target& cpu);
  Config (*preset)(const ConvWorkload& workload, const Target& cpu);
  // Null: the preset with NHWC in its layout knobs and 1 in "oc_inner", where that is valid.
  std::optional<Config> (*rows_preset)(const ConvWorkload& workload, const Target& cpu) = nullptr;
  Schedule (*read)(const ConvWorkload& workload, const Config& config, const Target& cpu);
  bool shifts_blocks = false;  // as in ConvTemplate::ShiftsBlocks
  // How products are added (ops/order.md): plainly; as Winograd's algorithm does it; or in an order of its
  // own, which a template on reproducible targets may not.
  Order order = Order::kPlain;
  // The knobs whose values are the x of the input's and of the output's NCHW[x]c (LayoutOfBlockKnob), which
  // may be one; none: NCHW both.
  std::vector<std::string_view> layout_knobs = {"ic_block", "oc_block"};
  // The knobs whose values are the types (DataType) of the input's and of the output's layout; none: f32
  // both.
  std::vector<std::string_view> type_knobs = {};
  DataType factors = DataType::kF32;  // as in ConvTemplate::FactorType
  double (*error_factor)(const ConvWorkload& workload, const Config& config) = nullptr;  // null: 1
  double (*bf16_noise)(const ConvWorkload& workload, const Config& config) = nullptr;    // null: 1
  double (*cycles)(const Schedule& schedule, const Target& cpu) = nullptr;               // null: no estimate
};

#if defined(TILESMITH_X86)
constexpr Architecture kCodeArchitecture = Architecture::kX86;
#elif defined(TILESMITH_ARM)
constexpr Architecture kCodeArchitecture = Architecture::kArm;
#else
constexpr Architecture kCodeArchitecture = Architecture::kAny;
#endif

// The tasks of another device are not dealt to threads: a plan does not place them, and they have no GridOf.
enum class CodeFor { kAnyCpu, kX86, kX86AndArm, kOtherDevice };

template <typename Schedule, CodeFor kCode = CodeFor::kAnyCpu>
class ScheduleTemplate final : public ConvTemplate {
 public:
  explicit ScheduleTemplate(TemplateParts<Schedule> parts) : parts_(std::move(parts)) {}

  std::string_view Name() const override { return parts_.name; }
  std::string_view DeviceKind() const override { return parts_.device; }
  DataType Type() const override { return parts_.type; }
  Support RunsOn(const Target& target) const override {
    Support support = ConvTemplate::RunsOn(target);
    if (!support.ok) return support;
    if (!RunsCode(ArchitectureOf(target.isa)))
      return Support::No(kCode == CodeFor::kX86
                             ? "generates code for AVX2 or AVX-512, this CPU has neither"
                             : "generates code for AVX2, AVX-512, NEON or SVE, this CPU has none");
    if (target.reproducible && parts_.order == Order::kOwn) return Support::No(kOwnOrder);
    if (target.reproducible && parts_.type == DataType::kBf16)
      return Support::No("multiplies and rounds bf16 as the CPU does, which is not reproducible");
    if (target.compute < parts_.least_compute)
      return Support::No(fmt::format("needs compute capability {:.1f}, this is {:.1f}",
                                     parts_.least_compute / 10.0, target.compute / 10.0));
    return support;
  }
  Support Supports(const ConvWorkload& workload, const Target& cpu) const override {
    Support support = SupportsShape(workload, cpu);
    if (!support.ok || !parts_.preset_decides) return support;
    return HasValidDefault(Space(workload, cpu), Default(workload, cpu));
  }
  std::optional<Config> DefaultIfSupported(const ConvWorkload& workload, const Target& cpu) const override {
    if (!SupportsShape(workload, cpu).ok) return std::nullopt;
    Config preset = Default(workload, cpu);
    if (parts_.preset_decides && !HasValidDefault(Space(workload, cpu), preset).ok) return std::nullopt;
    return preset;
  }
  ConfigSpace Space(const ConvWorkload& workload, const Target& cpu) const override {
    return parts_.space(workload, cpu);
  }
  Config Default(const ConvWorkload& workload, const Target& cpu) const override {
    return parts_.preset(workload, cpu);
  }
  std::optional<Config> RowsDefault(const ConvWorkload& workload, const Target& cpu) const override {
    if (workload.oh == 1 || kCode == CodeFor::kOtherDevice) return std::nullopt;
    if (parts_.rows_preset)
      return Supports(workload, cpu).ok ? parts_.rows_preset(workload, cpu) : std::nullopt;
    std::optional<Config> config = DefaultIfSupported(workload, cpu);
    if (!config) return std::nullopt;
    const ConfigSpace space = Space(workload, cpu);
    config = WithLayouts(workload, space, *config, {Layout::Nhwc(), Layout::Nhwc()});
    if (config && config->Find("oc_inner")) config->Set("oc_inner", 1);
    if (config && !space.WhyInvalid(*config).empty()) config.reset();
    return config;
  }
  TaskGrid Grid(const ConvWorkload& workload, const Config& config, const Target& cpu) const override {
    if constexpr (kCode == CodeFor::kOtherDevice) {
      return TaskGrid::List(1);
    } else {
      return GridOf(parts_.read(workload, config, cpu));
    }
  }
  std::vector<std::string_view> LayoutKnobs() const override {
    std::vector<std::string_view> knobs = parts_.layout_knobs;
    knobs.insert(knobs.end(), parts_.type_knobs.begin(), parts_.type_knobs.end());
    return knobs;
  }
  LayoutPair Layouts(const ConvWorkload& workload, const Config& config) const override {
    if (parts_.layout_knobs.empty()) return {};
    LayoutPair pair = {LayoutOfBlockKnob(config.Get(parts_.layout_knobs.front())),
                       LayoutOfBlockKnob(config.Get(parts_.layout_knobs.back()))};
    if (parts_.type == DataType::kI8)
      return {pair.in.WithType(workload.input_type()), pair.out.WithType(workload.output_type())};
    if (parts_.type_knobs.empty()) return pair;
    const auto typed = [&](const Layout& layout, std::string_view knob) {
      return layout.WithType(static_cast<DataType>(config.Get(knob)));
    };
    return {typed(pair.in, parts_.type_knobs.front()), typed(pair.out, parts_.type_knobs.back())};
  }
  DataType FactorType() const override { return parts_.factors; }
  bool ShiftsBlocks() const override { return parts_.shifts_blocks; }
  double ErrorFactor(const ConvWorkload& workload, const Config& config) const override {
    return parts_.error_factor ? parts_.error_factor(workload, config) : 1;
  }
  double Bf16Noise(const ConvWorkload& workload, const Config& config) const override {
    return parts_.bf16_noise ? parts_.bf16_noise(workload, config) : 1;
  }
  std::optional<double> Cycles(const ConvWorkload& workload, const Config& config,
                               const Target& cpu) const override {
    if (!parts_.cycles) return std::nullopt;
    return parts_.cycles(parts_.read(workload, config, cpu), cpu);
  }
  LoopFeatures Features(const ConvWorkload& workload, const Config& config,
                        const Target& cpu) const override {
    return FeaturesOf(parts_.read(workload, config, cpu));
  }
  LoopNest Nest(const ConvWorkload& workload, const Config& config, const Target& cpu) const override {
    return NestOf(parts_.read(workload, config, cpu));
  }
  std::unique_ptr<ConvKernel> Build(const ConvWorkload& workload, const Config& config, const Target& cpu,
                                    const ConvWeights& weights) const override {
    if constexpr (RunsCode(kCodeArchitecture)) {
      return BuildKernel(parts_.read(workload, config, cpu), cpu, weights);
    } else {
      TILESMITH_CHECK(false, "the {} template generates code for another CPU", parts_.name);
    }
  }

 private:
  // Whether the template has code for CPUs of this architecture, or needs none.
  static constexpr bool RunsCode(Architecture architecture) {
    return kCode == CodeFor::kX86         ? architecture == Architecture::kX86
           : kCode == CodeFor::kX86AndArm ? architecture != Architecture::kAny
                                          : true;
  }
  Support SupportsShape(const ConvWorkload& workload, const Target& cpu) const {
    const bool bytes = parts_.type == DataType::kI8;
    if (Support device = ConvTemplate::RunsOn(cpu); !device.ok) return device;
    if (workload.bytes.has_value() != bytes)
      return Support::No(bytes ? "computes bytes, not floats" : "computes floats, not bytes");
    if (!parts_.fuses && workload.fused()) return Support::No("computes nothing in front of the conv");
    if (!parts_.products && workload.product) return Support::No("its weights are constants, not an input");
    if (parts_.products && !workload.product) return Support::No("multiplies two inputs, a conv has one");
    if (Support code = RunsOn(cpu); !code.ok) return code;
    if (cpu.reproducible && !bytes && (OrderTile(workload) > 0) != (parts_.order == Order::kWinograd))
      return Support::No(parts_.order == Order::kWinograd ? kOwnOrder : kOtherOrder);
    return parts_.supports(workload, cpu);
  }

  const TemplateParts<Schedule> parts_;
};

// A template of generated code, for AVX2, AVX-512, NEON and SVE, or the first two only.
template <typename Schedule>
using GeneratedTemplate = ScheduleTemplate<Schedule, CodeFor::kX86AndArm>;
template <typename Schedule>
using X86Template = ScheduleTemplate<Schedule, CodeFor::kX86>;
template <typename Schedule>
using DeviceTemplate = ScheduleTemplate<Schedule, CodeFor::kOtherDevice>;

}  // namespace tilesmith
