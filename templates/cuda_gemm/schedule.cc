#include "templates/cuda_gemm/schedule.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "templates/int8/byte_conv.h"
#include "templates/int8/byte_image.h"

namespace tilesmith::cuda_gemm {
namespace {

std::string_view TemplateOf(Tensor tensor) {
  switch (tensor) {
    case Tensor::kNone:
      return "cuda_direct";
    case Tensor::kBf16:
      return "cuda_tensor_bf16";
    case Tensor::kBytes:
      return "cuda_tensor_int8";
    default:
      return "cuda_tensor";
  }
}

// As requantize.cu reads it.
void AddRequantization(const QuantizedConvOp& op, std::span<const int16_t> centered,
                       std::vector<float>& weights) {
  const ConvWorkload& w = op.workload();
  const QuantizedConvParams& q = op.params();
  const bool real = q.output.type == DataType::kF32;
  const auto add = [&](int64_t number) {
    weights.push_back(std::bit_cast<float>(static_cast<uint32_t>(number)));
  };
  const int64_t zero = q.input.zero_points[0];
  add((zero & 0xff) * 0x01010101);
  if (real) {
    weights.resize(weights.size() + 10);
  } else {
    const Quantization& out = q.sum ? q.sum->output : q.output;
    const StoredRange range = RangeOf(out.type), limits = q.sum ? q.sum->limits : q.limits;
    for (const int64_t number :
         {range.low, range.high, out.zero_points[0], limits.low, limits.high, int32_t{FlipOf(out.type)}})
      add(number);
    const ResidualTerms terms = q.sum ? ResidualTermsOf(q) : ResidualTerms{};
    weights.insert(weights.end(), {terms.factor, terms.offset, terms.low, terms.high});
  }
  // Padding is the zero point, so that what it adds to a sum is the same everywhere.
  const int64_t terms = std::ssize(centered) / w.oc;
  for (int64_t f = 0; f < w.oc; ++f) {
    const auto own = centered.subspan(static_cast<size_t>(f * terms), static_cast<size_t>(terms));
    const int64_t bias = q.bias ? q.bias->data<int32_t>()[f] : 0;
    add(bias - zero * std::accumulate(own.begin(), own.end(), int64_t{0}));
  }
  weights.insert(weights.end(), op.multipliers().begin(), op.multipliers().end());
}

}  // namespace

LoopFeatures FeaturesOf(const Product& p) {
  const Tile& t = p.tile;
  const auto of = [](int64_t count) { return static_cast<double>(count); };
  LoopFeatures f;
  f.flops = 2 * of(CeilDiv(p.positions(), t.tile_x) * t.tile_x) * of(p.padded_filters()) * of(p.units()) *
            of(p.padded_depth());
  f.accumulators = of(t.part_f * t.part_x);
  f.fma_per_load = of(t.part_f * t.part_x) / of(t.part_f + t.part_x);
  f.code_bytes = of(p.shared_bytes());
  f.weight_bytes = of(p.weight_floats() * kFloatBytes);
  f.tasks = of(p.blocks());
  const double depth = of(p.padded_words()) / of(t.split_k);
  f.task_input_bytes = of(t.tile_x * kFloatBytes * p.weight_word() / p.input_word()) * depth;
  f.task_weight_bytes = of(t.tile_f * kFloatBytes) * depth;
  f.task_output_bytes = of(t.tile_f * t.tile_x * p.out.element_bytes());
  f.output_passes = of(t.split_k);
  f.scratch_bytes = of(p.partial_bytes());
  return f;
}

std::unique_ptr<ConvKernel> BuildKernel(const Product& p, const Target&, const ConvWeights& given) {
  const ConvWorkload& w = p.workload;
  const int64_t channels = w.ic / w.g, taps = w.kh * w.kw;
  const bool bytes = p.tile.tensor == Tensor::kBytes;
  std::vector<int16_t> centered;
  if (bytes) centered = ByteConvOf(w, given).CenteredWeights();
  CudaProgram program;
  PackWeights(
      p,
      [&](int64_t unit, int64_t f, int64_t k) {
        const int64_t at = ((unit * p.filters() + f) * channels + k % channels) * taps + k / channels;
        return bytes ? static_cast<float>(centered[static_cast<size_t>(at)]) : given.weights[at];
      },
      program.weights);
  const auto bias_at = static_cast<int64_t>(program.weights.size());
  if (bytes) {
    AddRequantization(*given.quantized, centered, program.weights);
  } else if (w.post.bias) {
    program.weights.insert(program.weights.end(), given.bias, given.bias + w.oc);
  }
  cuda::ProgramText text;
  AddProduct(text, p, bias_at);
  program.name = fmt::format("{} of {}", TemplateOf(p.tile.tensor), WorkloadToString(w));
  program.text = text.Take();
  program.launches = LaunchesOf(p);
  program.scratch_bytes = p.partial_bytes();
  program.input_alignment = p.together() ? 16 : 4;
  const int64_t at_once = !p.vector_out() ? 1 : p.tile.tensor == Tensor::kNone ? 4 : 2;
  program.output_alignment = at_once * p.out.element_bytes();
  return std::make_unique<CudaConv>(std::move(program));
}

}  // namespace tilesmith::cuda_gemm
