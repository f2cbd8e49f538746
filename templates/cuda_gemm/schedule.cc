#include "templates/cuda_gemm/schedule.h"

#include <algorithm>

namespace tilesmith::cuda_gemm {

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
  const double depth = of(p.padded_depth()) / of(t.split_k);
  f.task_input_bytes = of(t.tile_x * kFloatBytes) * depth;
  f.task_weight_bytes = of(t.tile_f * kFloatBytes) * depth;
  f.task_output_bytes = of(t.tile_f * t.tile_x * kFloatBytes);
  f.output_passes = of(t.split_k);
  f.scratch_bytes = of(p.partial_bytes());
  return f;
}

std::unique_ptr<ConvKernel> BuildKernel(const Product& p, const Target&, const ConvWeights& given) {
  const ConvWorkload& w = p.workload;
  const int64_t channels = w.ic / w.g, taps = w.kh * w.kw;
  CudaProgram program;
  PackWeights(
      p,
      [&](int64_t unit, int64_t f, int64_t k) {
        return given.weights[((unit * p.filters() + f) * channels + k % channels) * taps + k / channels];
      },
      program.weights);
  const auto bias_at = static_cast<int64_t>(program.weights.size());
  if (w.post.bias) program.weights.insert(program.weights.end(), given.bias, given.bias + w.oc);
  cuda::ProgramText text;
  AddProduct(text, p, bias_at);
  program.name = fmt::format("{} of {}", p.tile.tensor == Tensor::kNone ? "cuda_direct" : "cuda_tensor",
                             WorkloadToString(w));
  program.text = text.Take();
  program.launches = LaunchesOf(p);
  program.scratch_bytes = p.partial_bytes();
  program.input_alignment = p.together() ? 16 : 4;
  program.output_alignment = p.vector_out() ? 16 : 4;
  return std::make_unique<CudaConv>(std::move(program));
}

}  // namespace tilesmith::cuda_gemm
