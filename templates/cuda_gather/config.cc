#include "templates/cuda_gather/config.h"

#include <algorithm>

#include "templates/base/conv_template.h"
#include "templates/base/image_strides.h"
#include "templates/base/schedule_template.h"
#include "templates/cuda/limits.h"
#include "templates/cuda/program.h"
#include "templates/cuda/text.h"

namespace tilesmith {
namespace cuda_gather {

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

LoopNest NestOf(const Schedule& s) {
  const ConvWorkload& w = s.workload;
  const GatherConfig& c = s.config;
  LoopNest nest;
  nest.tasks = {LoopOver("mb", w.mb, 1, LoopKind::kTasks), LoopOver("g", w.g, 1, LoopKind::kTasks),
                LoopOver("oc", s.filters(), c.tile_f, LoopKind::kTasks),
                LoopOver("oh", w.oh, c.tile_y, LoopKind::kTasks),
                LoopOver("ow", w.ow, c.tile_x, LoopKind::kTasks, "a tile is a thread's")};
  LoopPart part;
  part.loops = {LoopOver("ic", w.ic / w.g, 1, LoopKind::kLoop),
                LoopOver("kh", w.kh, 1, LoopKind::kUnrolled),
                LoopOver("kw", w.kw, 1, LoopKind::kUnrolled),
                LoopOver("oc", std::min(c.tile_f, s.filters()), 1, LoopKind::kUnrolled),
                LoopOver("oh", std::min(c.tile_y, w.oh), 1, LoopKind::kUnrolled),
                LoopOver("ow", std::min(c.tile_x, w.ow), 1, LoopKind::kUnrolled)};
  part.body = "sum += weight * input";
  nest.parts = {std::move(part)};
  const double terms = static_cast<double>(w.ic / w.g * w.kh * w.kw * kFloatBytes);
  nest.tile_input_bytes = terms * static_cast<double>(c.tile_y * c.tile_x);
  nest.tile_weight_bytes = terms * static_cast<double>(c.tile_f);
  nest.tile_output_bytes = static_cast<double>(c.tile_f * c.tile_y * c.tile_x * kFloatBytes);
  return nest;
}

namespace {

constexpr int64_t kMaxTile = 32;           // outputs of a thread
constexpr int64_t kMaxGroupChannels = 32;  // from here on a group is a product of matrices

std::string WhyInvalid(const ConvWorkload& w, const GatherConfig& c, const Target& target) {
  if (c.tile_f > w.oc / w.g) return fmt::format("tile_f is {} for {} filters a group", c.tile_f, w.oc / w.g);
  if (c.unroll > w.ic / w.g) return fmt::format("unroll is {} for {} channels a group", c.unroll, w.ic / w.g);
  if (c.tile_y > 1 && c.tile_y >= 2 * w.oh) return "more rows than there are";
  if (c.tile_x > 1 && c.tile_x >= 2 * w.ow) return "more columns than there are";
  if (c.tile_f * c.tile_y * c.tile_x > kMaxTile)
    return fmt::format("{} outputs of a thread (allowed: {})", c.tile_f * c.tile_y * c.tile_x, kMaxTile);
  return cuda::WhyNoBlock(target, c.threads, MakeSchedule(w, c).registers(), 0);
}

ConfigSpace Space(const ConvWorkload& w, const Target& target) {
  std::vector<Knob> knobs = {
      {"ic_block", cuda::BlockKnob(w.ic), "channels per block of the input's layout; 0 is NHWC"},
      {"oc_block", cuda::BlockKnob(w.oc), "channels per block of the output's layout; 0 is NHWC"},
      {"tile_f", UpTo(w.oc / w.g, {1, 2, 4, 8}), "filters of a thread"},
      {"tile_y", {1, 2, 4}, "output rows of a thread"},
      {"tile_x", {1, 2, 4, 8}, "output columns of a thread"},
      {"threads", {64, 128, 256}, "threads of a block"},
      {"unroll", UpTo(w.ic / w.g, {1, 2, 4}), "input channels unrolled"},
      {"order", {0, 1}, "neighbouring threads have 0 neighbouring positions, 1 neighbouring channels"}};
  return ConfigSpace(std::move(knobs),
                     [w, target](const Config& config) { return WhyInvalid(w, ReadConfig(config), target); });
}

Config Default(const ConvWorkload& w, const Target&) {
  const bool channels = w.oc >= 16;
  Config config;
  config.Set("ic_block", channels ? 0 : 1);
  config.Set("oc_block", channels ? 0 : 1);
  for (const char* knob : {"tile_f", "tile_y", "tile_x", "unroll"}) config.Set(knob, 1);
  config.Set("threads", 128);
  config.Set("order", channels ? 1 : 0);
  return config;
}

Support SupportsPortable(const ConvWorkload& w, const Target& target) {
  Support fits = FitsDisplacements(w);
  if (!fits.ok) return fits;
  const Schedule s = MakeSchedule(w, ReadConfig(Default(w, target)));
  if (CeilDiv(s.tiles(), s.config.threads) > cuda::kMaxPositions)
    return Support::No("more outputs than threads");
  return Support::Yes();
}

Support SupportsDepthwise(const ConvWorkload& w, const Target& target) {
  if (w.g == 1 || w.g != w.ic) return Support::No("not one input channel a group");
  return SupportsPortable(w, target);
}

Support SupportsGrouped(const ConvWorkload& w, const Target& target) {
  if (w.g == 1) return Support::No("one group");
  if (w.g == w.ic) return Support::No("one input channel a group, which cuda_depthwise computes");
  if (w.ic / w.g > kMaxGroupChannels)
    return Support::No(fmt::format("{} channels a group (at most {})", w.ic / w.g, kMaxGroupChannels));
  return SupportsPortable(w, target);
}

Schedule ReadSchedule(const ConvWorkload& w, const Config& config, const Target&) {
  return MakeSchedule(w, ReadConfig(config));
}

DeviceTemplate<Schedule> Make(std::string_view name,
                              Support (*supports)(const ConvWorkload&, const Target&)) {
  return DeviceTemplate<Schedule>({.name = name,
                                   .device = kCudaDevice,
                                   .supports = supports,
                                   .preset_decides = true,
                                   .space = Space,
                                   .preset = Default,
                                   .read = ReadSchedule});
}

}  // namespace

GatherConfig ReadConfig(const Config& config) {
  GatherConfig c;
  c.ic_block = config.Get("ic_block");
  c.oc_block = config.Get("oc_block");
  c.tile_f = config.Get("tile_f");
  c.tile_y = config.Get("tile_y");
  c.tile_x = config.Get("tile_x");
  c.threads = config.Get("threads");
  c.unroll = config.Get("unroll");
  c.channels_first = config.Get("order") == 1;
  return c;
}

}  // namespace cuda_gather

const ConvTemplate& CudaDepthwiseTemplate() {
  static const auto instance = cuda_gather::Make("cuda_depthwise", cuda_gather::SupportsDepthwise);
  return instance;
}

const ConvTemplate& CudaGroupedTemplate() {
  static const auto instance = cuda_gather::Make("cuda_grouped", cuda_gather::SupportsGrouped);
  return instance;
}

const ConvTemplate& CudaPortableTemplate() {
  static const auto instance = cuda_gather::Make("cuda_portable", cuda_gather::SupportsPortable);
  return instance;
}

}  // namespace tilesmith
