// A template is one way to compute a conv, with knobs. Every question is pure; only Build emits code.
//
// A new template is made of plain functions (schedule_template.h), plus one line in registry.cc: lookup,
// `tilesmith space`, the parameterised correctness test and the benchmark all read that list.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "layouts/base/kernel.h"
#include "layouts/base/split.h"
#include "layouts/base/target.h"
#include "layouts/kernel_parts.h"
#include "layouts/tensor.h"
#include "ops/conv/workload.h"
#include "templates/base/config.h"
#include "templates/base/loop_features.h"
#include "templates/base/loop_nest.h"

namespace tilesmith {

class QuantizedConvOp;

// Yes, or no with the reason in words.
struct Support {
  bool ok = true;
  std::string reason;
  static Support Yes() { return {}; }
  static Support No(std::string reason) { return {false, std::move(reason)}; }
};

// Knobs that are the x of NCHW[x]c use 0 for NHWC and 1 for NCHW.
inline Layout LayoutOfBlockKnob(int64_t block) {
  return block == 0 ? Layout::Nhwc() : Layout::Blocked(block);
}

struct LayoutPair {
  Layout in, out;
  auto operator<=>(const LayoutPair&) const = default;
};

// A piece of generated machine code, for dumps and profilers.
struct CodeBlob {
  std::string name;
  std::span<const uint8_t> bytes;
};

inline std::span<const std::byte> BytesOf(const AlignedBuffer& buffer) {
  return {static_cast<const std::byte*>(buffer.data()), buffer.bytes()};
}

// A built conv: packed weights and code. KernelArgs.inputs: data in Layouts().in; then, when the workload has
// `sum`, the residual in Layouts().out; of a product, its left side and its right one. The data of two fused
// convs is the first one's input. The output's padding channels are written as zeros. The residual may be the
// output's own memory.
class ConvKernel : public Kernel {
 public:
  virtual std::vector<CodeBlob> Code() const { return {}; }
  // The weights as the kernel reads them: their size, and what cold measuring evicts from the caches.
  virtual std::span<const std::byte> PackedWeights() const = 0;
};

// Tensors are null exactly when the workload has no such thing; weights of a conv are OIHW. Those of a conv
// of bytes are its op's, with the scales, and nothing else is there.
struct ConvWeights {
  const float* weights = nullptr;         // of the main conv; of a product nobody looks at it
  const float* bias = nullptr;            // oc floats
  const float* scale = nullptr;           // ic floats, of the input ops
  const float* shift = nullptr;           // ic floats
  const float* before_weights = nullptr;  // of the conv fused in front
  const float* before_bias = nullptr;     // its oc floats
  const QuantizedConvOp* quantized = nullptr;
  // The kernel's, where they are shared or kept. Where they are known, nobody looks at what is above, but for
  // what `quantized` says beside weights and bias.
  KernelParts* parts = nullptr;
};

inline ConvWeights WeightsOf(const ConvTensors& tensors) {
  const auto floats = [](const Tensor* tensor) { return tensor ? tensor->floats() : nullptr; };
  return {.weights = floats(tensors.weights),
          .bias = floats(tensors.bias),
          .scale = floats(tensors.scale),
          .shift = floats(tensors.shift),
          .before_weights = floats(tensors.before_weights),
          .before_bias = floats(tensors.before_bias)};
}

// Why a config or a template is not for targets whose results are reproducible (Target::reproducible).
constexpr const char* kOwnOrder = "adds in an order of its own, which is not reproducible";
constexpr const char* kOtherOrder = "adds plainly, where reproducible is Winograd's order";

// On a target whose results are reproducible every template supports only, and every space holds only, what
// adds products in the order of ops/order.md.
class ConvTemplate {
 public:
  virtual ~ConvTemplate() = default;
  virtual std::string_view Name() const = 0;  // stable: stored in records
  // The kind of device its kernels run on: a value of Target::device.
  virtual std::string_view DeviceKind() const { return kCpuDevice; }
  // The type of what it computes: kF32; kBf16, where the knobs `in_type` and `out_type` say how inputs and
  // outputs are stored; or kI8, convs of bytes, whose types are the workload's matter.
  virtual DataType Type() const { return DataType::kF32; }
  // Whether its code runs on the target at all. Supports refuses other targets.
  virtual Support RunsOn(const Target& target) const;
  virtual Support Supports(const ConvWorkload& workload, const Target& cpu) const = 0;
  // Default where Supports says yes, else nullopt: of many templates the first often has to make the second.
  virtual std::optional<Config> DefaultIfSupported(const ConvWorkload& workload, const Target& cpu) const {
    return Supports(workload, cpu).ok ? std::optional(Default(workload, cpu)) : std::nullopt;
  }
  // Preconditions from here on: Supports(...).ok, and a config that is valid in Space(workload, cpu).
  virtual ConfigSpace Space(const ConvWorkload& workload, const Target& cpu) const = 0;
  // A valid config that is decent everywhere: the schedule used before any tuning.
  virtual Config Default(const ConvWorkload& workload, const Target& cpu) const = 0;
  virtual LayoutPair Layouts(const ConvWorkload& workload, const Config& config) const = 0;
  // A valid config for networks whose threads keep the rows that they wrote: in NHWC, few input channels in
  // planes, and with tasks that cpu.cores even shares cut, nearly, at the same part of the height in every
  // conv. nullopt for a conv of one row or that is not supported, or where there is none.
  virtual std::optional<Config> RowsDefault(const ConvWorkload& workload, const Target& cpu) const {
    (void)workload, (void)cpu;
    return std::nullopt;
  }
  // Where the tasks lie that write the output: the built kernel's grid of its last stage, for plans that keep
  // parts of tensors with the threads that wrote them (layouts/base/split.h). The default knows no places.
  virtual TaskGrid Grid(const ConvWorkload& workload, const Config& config, const Target& cpu) const {
    (void)workload, (void)config, (void)cpu;
    return TaskGrid::List(1);
  }
  // Whether kernels take views whose blocks of channels are shifted (Kernel::ShiftsBlocks).
  virtual bool ShiftsBlocks() const { return false; }
  // The config for a region's step (graph_tuner/executor/regions.h), with as few other knobs changed as can
  // be: one stage, results through the caches, tasks of at most so many rows of an image, or of as few as
  // are computed together. nullopt where no knob gives that. Knobs are known by their names: "rows" or
  // "tile_rows" of a task, "flat_width" and "tile_columns" of pixels taken as a row, "stream" for stores past
  // the caches, "partition", whose 0 is one stage.
  std::optional<Config> InBands(const ConvWorkload& workload, const Config& config, int64_t rows,
                                const Target& cpu) const;
  // The knobs that Layouts depends on; none where all configs have the same layouts.
  virtual std::vector<std::string_view> LayoutKnobs() const { return {}; }
  // Every pair of layouts that the knobs of `space` offer, sorted; some may have no valid config. Empty where
  // there are no layout knobs, and so nothing to choose.
  std::vector<LayoutPair> LayoutPairs(const ConvWorkload& workload, const ConfigSpace& space) const;
  // `config` with the layouts of `pair`, its other knobs as they are, which may be invalid together; nullopt
  // where the space offers no such pair.
  std::optional<Config> WithLayouts(const ConvWorkload& workload, const ConfigSpace& space,
                                    const Config& config, const LayoutPair& pair) const;
  // How far a result may be from the exact one, against what a plain sum of floats may be off (RoundingBound
  // in conv_error.h). 1: a plain sum, exact for small integers. Larger: the terms of neighbouring outputs go
  // through a result too, so the magnitude to apply the factor to is the largest of any output.
  virtual double ErrorFactor(const ConvWorkload& workload, const Config& config) const {
    (void)workload;
    (void)config;
    return 1;
  }
  // The type that inputs and weights are rounded to before they are multiplied; sums are f32 (TypeRounding in
  // conv_error.h).
  virtual DataType FactorType() const { return DataType::kF32; }
  // The power of what rounding inputs, factors and outputs to bf16 does to a result, for data without
  // structure, against that of a plain sum of rounded factors.
  virtual double Bf16Noise(const ConvWorkload& workload, const Config& config) const {
    (void)workload, (void)config;
    return 1;
  }
  // Cycles that the busiest core takes on its own, weights coming from memory: an estimate from shapes alone,
  // to choose between schedules that nobody has measured (loop_features.h); nullopt where a template has
  // none.
  virtual std::optional<double> Cycles(const ConvWorkload& workload, const Config& config,
                                       const Target& cpu) const {
    (void)workload, (void)config, (void)cpu;
    return std::nullopt;
  }
  // The numbers by which the cost model knows a config (loop_features.h).
  virtual LoopFeatures Features(const ConvWorkload& workload, const Config& config,
                                const Target& cpu) const = 0;
  // The config's loops for people to read (loop_nest.h); empty where nobody wrote them down.
  virtual LoopNest Nest(const ConvWorkload& workload, const Config& config, const Target& cpu) const {
    (void)workload, (void)config, (void)cpu;
    return {};
  }
  // Packs the weights (which may be freed afterwards) and emits the code. Thread-safe.
  virtual std::unique_ptr<ConvKernel> Build(const ConvWorkload& workload, const Config& config,
                                            const Target& cpu, const ConvWeights& weights) const = 0;
};

// Every template: those in f32, in bf16 and of bytes, in each type those for this process's cores first, and
// of one device and type best first.
std::span<const ConvTemplate* const> AllConvTemplates();
// The templates for a kind of device that compute a type (ConvTemplate::Type), best first. In f32 the last
// one is the most general: "portable" supports every workload of floats that is neither fused nor a product,
// on every CPU; "cuda_portable" so on GPUs, where offsets fit 32 bits.
std::vector<const ConvTemplate*> ConvTemplates(std::string_view device = kCpuDevice,
                                               DataType type = DataType::kF32);
// The templates for the target that may support the workload: of `type`, or of bytes where that is f32 and
// the workload is of bytes.
std::vector<const ConvTemplate*> ConvTemplatesFor(const Target& target, const ConvWorkload& workload,
                                                  DataType type = DataType::kF32);
// Whether any template that computes this type runs on the target.
bool HasTemplates(const Target& target, DataType type);
// The template of that name, or "cudnn", which is not among them: what others compute is no candidate.
// nullptr when there is none: logs outlive templates.
const ConvTemplate* KnownConvTemplate(std::string_view name);
// Throws Error(kUsage) naming the known templates.
const ConvTemplate& FindConvTemplate(std::string_view name);

// Displacements, row strides and steps are 32-bit in generated code: no when an image of the workload, or
// what its kernel or its stride reaches over, is larger than that allows, with so many channels of padding as
// the template's layouts may add. A yes also means that such sizes may be multiplied in int64. Of a fused
// workload, both convs.
constexpr int64_t kMaxPaddingChannels = 64;
Support FitsDisplacements(const ConvWorkload& workload, int64_t padding_channels = kMaxPaddingChannels);

// Yes when a template's default config is valid in the template's own space, as it must be wherever the
// template supports the workload; otherwise no, with what is invalid about it.
Support HasValidDefault(const ConfigSpace& space, const Config& preset);

// Code that outgrows the first-level instruction cache runs 10-70% slower; a little above is still worth a
// trial.
constexpr int64_t kMaxCodeBytes = 48 << 10;

// Eight hexadecimal digits that differ as soon as a template comes or goes, or a knob, one of its values, or
// a default changes for any of a few typical workloads on a CPU with `isa`. Derived from the templates
// themselves, so nobody has to count versions; the same on every machine. Worked out once per ISA;
// thread-safe.
std::string SpaceFingerprint(Isa isa);

}  // namespace tilesmith
