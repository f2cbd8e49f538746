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
#include "layouts/base/target.h"
#include "layouts/shared_buffer.h"
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
  BufferPool* pool = nullptr;  // that the packed weights are shared in
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

class ConvTemplate {
 public:
  virtual ~ConvTemplate() = default;
  virtual std::string_view Name() const = 0;  // stable: stored in records
  // The kind of device its kernels run on: a value of Target::device. Supports refuses other targets.
  virtual std::string_view DeviceKind() const { return kCpuDevice; }
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
  // What inputs and weights are rounded to before they are multiplied; sums are f32 (TypeRounding in
  // conv_error.h).
  virtual DataType FactorType() const { return DataType::kF32; }
  // The power of what rounding inputs, factors and outputs to bf16 does to a result, for data without
  // structure, against that of a plain sum of rounded factors.
  virtual double Bf16Noise(const ConvWorkload& workload, const Config& config) const {
    (void)workload, (void)config;
    return 1;
  }
  // Cycles that the busiest core takes on its own, weights coming from memory: an estimate from shapes alone,
  // to choose between schedules that nobody has measured (cycles.h); nullopt where a template has none.
  virtual std::optional<double> Cycles(const ConvWorkload& workload, const Config& config,
                                       const Target& cpu) const {
    (void)workload, (void)config, (void)cpu;
    return std::nullopt;
  }
  // What the cost model knows of a config (loop_features.h).
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

// Those for this process's cores, best first. The last, "portable", supports every workload that is neither
// fused nor a product on every CPU, and "matmul" every product.
std::span<const ConvTemplate* const> ConvTemplates();
// Those for CUDA devices, best first. The last, "cuda_portable", supports every workload that is not fused,
// no product and fits 32-bit offsets.
std::span<const ConvTemplate* const> CudaConvTemplates();
// Those of every kind that compute convs of floats in bf16, best first. Their configs say, in the knobs
// `in_type` and `out_type`, how inputs and outputs are stored.
std::span<const ConvTemplate* const> Bf16ConvTemplates();
// Those of every kind that compute convs of bytes, whose workloads no other takes. Which type is which is the
// workload's matter, not a knob's.
std::span<const ConvTemplate* const> Int8ConvTemplates();
// Those in f32 of every kind, those for this process's cores first.
std::vector<const ConvTemplate*> AllConvTemplates();
// The templates in f32 for this kind of target, in the same order.
std::vector<const ConvTemplate*> ConvTemplatesFor(const Target& target);
// Those of them that may support the workload: of bytes where it is of bytes.
std::vector<const ConvTemplate*> ConvTemplatesFor(const Target& target, const ConvWorkload& workload);
// The template of that name in any list, or "cudnn", which is in none: what others compute is no candidate.
// nullptr when there is none: logs outlive templates.
const ConvTemplate* KnownConvTemplate(std::string_view name);
// Throws Error(kUsage) naming the known templates.
const ConvTemplate& FindConvTemplate(std::string_view name);

}  // namespace tilesmith
