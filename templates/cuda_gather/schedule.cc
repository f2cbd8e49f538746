#include "templates/cuda_gather/schedule.h"

#include "templates/cuda/program.h"
#include "templates/cuda/text.h"

namespace tilesmith::cuda_gather {

Schedule MakeSchedule(const ConvWorkload& workload, const GatherConfig& config) {
  return {workload, config, LayoutOfBlockKnob(config.ic_block), LayoutOfBlockKnob(config.oc_block)};
}

int64_t Schedule::filter_tiles() const { return CeilDiv(filters(), config.tile_f); }

int64_t Schedule::tiles() const {
  const ConvWorkload& w = workload;
  const Checked channels = Checked(w.g) * filter_tiles() + padding_channels();
  return (channels * w.mb * CeilDiv(w.oh, config.tile_y) * CeilDiv(w.ow, config.tile_x)).value();
}

int64_t Schedule::registers() const {
  constexpr int64_t kAddresses = 40;
  const int64_t outputs = config.tile_f * config.tile_y * config.tile_x;
  return 2 * outputs + config.unroll * config.tile_f + kAddresses;
}

LoopFeatures FeaturesOf(const Schedule& s) {
  const ConvWorkload& w = s.workload;
  const GatherConfig& c = s.config;
  const auto of = [](int64_t count) { return static_cast<double>(count); };
  const int64_t taps = w.ic / w.g * w.kh * w.kw, positions = c.tile_y * c.tile_x;
  LoopFeatures f;
  f.flops = 2 * of(s.tiles()) * of(c.tile_f * positions) * of(taps);
  f.accumulators = of(c.tile_f * positions);
  f.fma_per_load = f.accumulators / of(c.tile_f + positions);
  f.weight_bytes = of(w.g * s.filter_tiles() * c.tile_f * taps * kFloatBytes);
  f.tasks = of(CeilDiv(s.tiles(), c.threads));
  f.task_input_bytes = of(c.threads * positions * kFloatBytes) * of(taps);
  f.task_weight_bytes = of(c.threads * c.tile_f * kFloatBytes) * of(taps);
  f.task_output_bytes = of(c.threads * kFloatBytes) * f.accumulators;
  return f;
}

std::unique_ptr<ConvKernel> BuildKernel(const Schedule& s, const Target&, const ConvWeights& given) {
  const ConvWorkload& w = s.workload;
  const GatherConfig& c = s.config;
  const int64_t taps = w.kh * w.kw, terms = w.ic / w.g * taps, tiles = w.g * s.filter_tiles();
  CudaProgram program;
  program.weights.resize(static_cast<size_t>((Checked(terms) * c.tile_f * tiles).value()));
  for (int64_t o = 0; o < w.oc; ++o) {
    const int64_t f = o % s.filters(), tile = o / s.filters() * s.filter_tiles() + f / c.tile_f;
    for (int64_t term = 0; term < terms; ++term)
      program.weights[(term * c.tile_f + f % c.tile_f) * tiles + tile] = given.weights[o * terms + term];
  }
  const auto bias_at = static_cast<int64_t>(program.weights.size());
  if (w.post.bias) program.weights.insert(program.weights.end(), given.bias, given.bias + w.oc);

  cuda::ProgramText text;
  text.Begin("gathered");
  AddConv(text, w, s.in, s.out, bias_at);
  text.Constant("TILE_F", c.tile_f).Constant("TILE_Y", c.tile_y).Constant("TILE_X", c.tile_x);
  text.Constant("THREADS", c.threads)
      .Constant("CHANNELS_FIRST", c.channels_first)
      .Constant("UNROLL", c.unroll);
  text.File("gather.cu").End();
  program.name = "cuda threads of " + WorkloadToString(w);
  program.text = text.Take();
  CudaLaunch launch;
  launch.function = "gather";
  launch.grid = {CeilDiv(s.tiles(), c.threads), 1, 1};
  launch.threads = c.threads;
  launch.inputs = {{.slot = 0}};
  if (w.post.sum) launch.inputs.push_back({.slot = 1});
  program.launches = {std::move(launch)};
  return std::make_unique<CudaConv>(std::move(program));
}

}  // namespace tilesmith::cuda_gather
