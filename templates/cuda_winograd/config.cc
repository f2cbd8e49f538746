#include "templates/cuda_winograd/config.h"

#include <algorithm>

#include "templates/base/conv_template.h"
#include "templates/base/schedule_template.h"
#include "templates/cuda/limits.h"

namespace tilesmith {
namespace cuda_winograd {
namespace {

// y = M x, with its zeros left out and its ones not multiplied.
std::string TransformText(std::string_view name, const Eigen::MatrixXd& matrix) {
  std::string text = fmt::format("__device__ __forceinline__ void {}(const float* x, float* y) {{\n", name);
  for (int row = 0; row < matrix.rows(); ++row) {
    std::string sum;
    for (int column = 0; column < matrix.cols(); ++column) {
      const double factor = matrix(row, column);
      if (factor == 0) continue;
      const double size = factor < 0 ? -factor : factor;
      sum += sum.empty() ? (factor < 0 ? "-" : "") : factor < 0 ? " - " : " + ";
      sum += size == 1 ? fmt::format("x[{}]", column) : fmt::format("{:a}f * x[{}]", size, column);
    }
    text += fmt::format("  y[{}] = {};\n", row, sum.empty() ? "0" : sum);
  }
  return text + "}";
}

void AddTransforms(cuda::ProgramText& text, const Schedule& s, int64_t bias_at) {
  text.Begin("transforms");
  AddConv(text, s.workload, s.in, s.out, bias_at);
  text.Constant("TILE", s.transforms->tile).Constant("WINDOW", s.transforms->window);
  text.Constant("THREADS", s.threads);
  text.Constant("CHANNELS_FIRST_IN", s.in_channels).Constant("CHANNELS_FIRST_OUT", s.out_channels);
  text.Line(TransformText("transform_input", s.transforms->input));
  text.Line(TransformText("transform_output", s.transforms->output));
  text.File("winograd.cu").End();
}

std::vector<CudaLaunch> Launches(const Schedule& s) {
  using From = CudaOperand::From;
  const ConvWorkload& w = s.workload;
  const int64_t output_at = RoundUp(s.input_bytes(), 64);
  CudaLaunch input;
  input.function = "winograd_input";
  input.grid = {CeilDiv(s.tiles() * w.ic, s.threads), 1, 1};
  input.threads = s.threads;
  input.inputs = {{.slot = 0}};
  input.output = {.from = From::kScratch};
  CudaLaunch product = LaunchesOf(s.product)[0];
  product.inputs = {{.from = From::kScratch, .stride = s.tiles() * w.ic}};
  product.output = {.from = From::kScratch, .byte = output_at, .stride = s.tiles() * w.oc};
  CudaLaunch output;
  output.function = "winograd_output";
  output.grid = {CeilDiv(s.tiles() * s.out.PaddedChannels(w.oc), s.threads), 1, 1};
  output.threads = s.threads;
  output.inputs = {{.slot = 0}};
  if (w.post.sum) output.inputs.push_back({.slot = 1});
  output.scratch_byte = output_at;
  return {input, product, output};
}

}  // namespace

Schedule ReadSchedule(const ConvWorkload& w, const Config& config, const Target&) {
  Schedule s;
  s.workload = w;
  s.in = LayoutOfBlockKnob(config.Get("ic_block"));
  s.out = LayoutOfBlockKnob(config.Get("oc_block"));
  s.transforms = &winograd::TransformsOf(config.Get("tile"), w.sh);
  s.threads = config.Get("threads");
  s.in_channels = s.in.BlockFor(w.ic) > 1;
  s.out_channels = s.out.BlockFor(w.oc) > 1;
  cuda_gemm::Product& p = s.product;
  p.batched = true;
  p.workload.mb = s.points();
  p.workload.ic = w.ic;
  p.workload.oc = w.oc;
  p.workload.ih = p.workload.oh = 1;
  p.workload.iw = p.workload.ow = s.tiles();
  p.in = s.in_channels ? Layout::Nhwc() : Layout::Nchw();
  p.out = s.out_channels ? Layout::Nhwc() : Layout::Nchw();
  p.tile = {.tile_f = config.Get("tile_f"),
            .tile_x = config.Get("tile_x"),
            .tile_rc = config.Get("tile_rc"),
            .part_f = config.Get("part_f"),
            .part_x = config.Get("part_x"),
            .stages = config.Get("stages")};
  return s;
}

int64_t Schedule::tiles() const {
  const int64_t m = transforms->tile;
  return (Checked(workload.mb) * CeilDiv(workload.oh, m) * CeilDiv(workload.ow, m)).value();
}

int64_t Schedule::input_bytes() const {
  return (Checked(points()) * tiles() * workload.ic * kFloatBytes).value();
}

int64_t Schedule::scratch_bytes() const {
  return (Checked(points()) * tiles() * workload.oc * kFloatBytes + RoundUp(input_bytes(), 64)).value();
}

LoopFeatures FeaturesOf(const Schedule& s) {
  const ConvWorkload& w = s.workload;
  const cuda_gemm::Tile& t = s.product.tile;
  const auto of = [](int64_t count) { return static_cast<double>(count); };
  LoopFeatures f;
  f.flops = 2 * of(s.points()) * of(CeilDiv(s.tiles(), t.tile_x) * t.tile_x) *
            of(s.product.padded_filters()) * of(s.product.padded_depth());
  f.accumulators = of(t.part_f * t.part_x);
  f.fma_per_load = of(t.part_f * t.part_x) / of(t.part_f + t.part_x);
  f.code_bytes = of(s.product.shared_bytes());
  f.weight_bytes = of(s.product.weight_floats() * kFloatBytes);
  f.tasks = of(s.product.blocks());
  f.task_input_bytes = of(t.tile_x * kFloatBytes) * of(w.ic);
  f.task_weight_bytes = of(t.tile_f * kFloatBytes) * of(w.ic);
  f.task_output_bytes = of(t.tile_f * t.tile_x * kFloatBytes);
  f.output_passes = of(s.points()) / of(int64_t{s.transforms->tile} * s.transforms->tile);
  f.scratch_bytes = of(s.scratch_bytes());
  return f;
}

namespace {

// G g G' of each filter and channel, as [point][channel][filter]: one product for each channel.
std::vector<float> TransformedWeights(const Schedule& s, const float* weights) {
  const ConvWorkload& w = s.workload;
  const int64_t window = s.transforms->window, points = s.points();
  const Eigen::MatrixXd& g = s.transforms->weights;
  Eigen::MatrixXd of_taps(points, 9);
  for (int64_t xi = 0; xi < points; ++xi)
    for (int64_t tap = 0; tap < 9; ++tap)
      of_taps(xi, tap) = g(xi / window, tap / 3) * g(xi % window, tap % 3);
  std::vector<float> transformed(static_cast<size_t>((Checked(points) * w.ic * w.oc).value()));
  Eigen::MatrixXd taps(w.oc, 9), product(w.oc, points);
  for (int64_t c = 0; c < w.ic; ++c) {
    for (int64_t f = 0; f < w.oc; ++f)
      for (int64_t tap = 0; tap < 9; ++tap) taps(f, tap) = weights[(f * w.ic + c) * 9 + tap];
    product = taps.lazyProduct(of_taps.transpose());  // small: no team of threads
    for (int64_t xi = 0; xi < points; ++xi)
      for (int64_t f = 0; f < w.oc; ++f)
        transformed[static_cast<size_t>((xi * w.ic + c) * w.oc + f)] = static_cast<float>(product(f, xi));
  }
  return transformed;
}

}  // namespace

std::unique_ptr<ConvKernel> BuildKernel(const Schedule& s, const Target&, const ConvWeights& given) {
  const ConvWorkload& w = s.workload;
  const std::vector<float> transformed = TransformedWeights(s, given.weights);
  CudaProgram program;
  PackWeights(
      s.product,
      [&](int64_t xi, int64_t f, int64_t c) {
        return transformed[static_cast<size_t>((xi * w.ic + c) * w.oc + f)];
      },
      program.weights);
  const auto bias_at = static_cast<int64_t>(program.weights.size());
  if (w.post.bias) program.weights.insert(program.weights.end(), given.bias, given.bias + w.oc);
  cuda::ProgramText text;
  AddTransforms(text, s, bias_at);
  AddProduct(text, s.product, 0);
  program.name = "cuda_winograd of " + WorkloadToString(w);
  program.text = text.Take();
  program.launches = Launches(s);
  program.scratch_bytes = s.scratch_bytes();
  return std::make_unique<CudaConv>(std::move(program));
}

LoopNest NestOf(const Schedule& s) {
  const ConvWorkload& w = s.workload;
  const cuda_gemm::Tile& t = s.product.tile;
  const int64_t m = s.transforms->tile;
  LoopNest nest;
  LoopPart input = {"transform the input", {}, "V = B^T d B", 0};
  input.loops = {LoopOver("tile", s.tiles(), 1, LoopKind::kTasks), LoopOver("ic", w.ic, 1, LoopKind::kTasks)};
  LoopPart product = {"multiply", {}, "M += U * V", 1};
  product.loops = {LoopOver("xi", s.points(), 1, LoopKind::kTasks),
                   LoopOver("oc", w.oc, t.tile_f, LoopKind::kTasks),
                   LoopOver("tile", s.tiles(), t.tile_x, LoopKind::kTasks),
                   LoopOver("ic", w.ic, t.tile_rc, LoopKind::kLoop, "in shared memory"),
                   LoopOver("oc", std::min(t.tile_f, w.oc), t.part_f, LoopKind::kVector, "threads"),
                   LoopOver("tile", std::min(t.tile_x, s.tiles()), t.part_x, LoopKind::kVector, "threads"),
                   LoopOver("ic", std::min(t.tile_rc, w.ic), 1, LoopKind::kUnrolled),
                   LoopOver("oc", std::min(t.part_f, w.oc), 1, LoopKind::kUnrolled),
                   LoopOver("tile", std::min(t.part_x, s.tiles()), 1, LoopKind::kUnrolled)};
  // What the plain algorithm multiplies for each of these products.
  product.covers =
      9.0 * static_cast<double>(w.mb * w.oh * w.ow) / static_cast<double>(s.points() * s.tiles());
  LoopPart output = {"transform the output", {}, "Y = A^T M A", 0};
  output.loops = {LoopOver("tile", s.tiles(), 1, LoopKind::kTasks),
                  LoopOver("oc", w.oc, 1, LoopKind::kTasks, fmt::format("{0} x {0} outputs", m))};
  nest.parts = {std::move(input), std::move(product), std::move(output)};
  const double row = static_cast<double>(w.ic * kFloatBytes);
  nest.tile_input_bytes = row * static_cast<double>(t.part_x);
  nest.tile_weight_bytes = row * static_cast<double>(t.part_f);
  nest.tile_output_bytes = static_cast<double>(t.part_f * t.part_x * kFloatBytes);
  return nest;
}

namespace {

Support Supports(const ConvWorkload& w, const Target&) {
  if (w.g != 1) return Support::No("groups");
  if (w.kh != 3 || w.kw != 3) return Support::No(fmt::format("a {}x{} kernel, not 3x3", w.kh, w.kw));
  if (w.sh != w.sw || w.sh > 2) return Support::No(fmt::format("strides {} and {}, not 1 or 2", w.sh, w.sw));
  if (w.dh != 0 || w.dw != 0) return Support::No("dilation");
  return FitsDisplacements(w);
}

ConfigSpace Space(const ConvWorkload& w, const Target& target) {
  std::vector<Knob> knobs = {
      {"ic_block", cuda::BlockKnob(w.ic), "channels per block of the input's layout; 0 is NHWC"},
      {"oc_block", cuda::BlockKnob(w.oc), "channels per block of the output's layout; 0 is NHWC"},
      {"tile", {2, 4}, "m of F(m x m, 3 x 3): fewer multiplications, larger rounding errors"},
      {"threads", {64, 128, 256}, "threads of a block of the transforms"},
      {"tile_f", {16, 32, 64, 128}, "filters of a block of threads"},
      {"tile_x", {32, 64, 128}, "tiles of a block of threads"},
      {"tile_rc", {8, 16}, "channels in shared memory at a time"},
      {"part_f", {4, 8}, "filters of a thread"},
      {"part_x", {4, 8}, "tiles of a thread"},
      {"stages", {2, 3}, "tiles in shared memory, copied ahead"}};
  return ConfigSpace(std::move(knobs), [w, target](const Config& config) -> std::string {
    const Schedule s = ReadSchedule(w, config, target);
    if (s.tiles() > cuda::kMaxPositions) return "more than 2^31 - 1 tiles";
    if (s.scratch_bytes() > cuda::kMaxScratch)
      return fmt::format("{} bytes of scratch (allowed: {})", s.scratch_bytes(), cuda::kMaxScratch);
    if (s.product.tile.tile_f > 16 && s.product.tile.tile_f >= 2 * w.oc)
      return fmt::format("tile_f is {} for {} filters", s.product.tile.tile_f, w.oc);
    return cuda_gemm::WhyInvalid(s.product, target);
  });
}

Config Default(const ConvWorkload& w, const Target&) {
  Config config;
  config.Set("ic_block", w.ic % 4 == 0 ? 0 : 1);
  config.Set("oc_block", w.oc % 4 == 0 ? 0 : 1);
  config.Set("tile", 2);
  config.Set("threads", 128);
  config.Set("tile_f", w.oc >= 64 ? 64 : w.oc >= 32 ? 32 : 16);
  config.Set("tile_x", 64);
  config.Set("tile_rc", 16);
  config.Set("part_f", 4);
  config.Set("part_x", 4);
  config.Set("stages", 2);
  return config;
}

// As winograd's.
double ErrorFactor(const ConvWorkload& w, const Config& config) {
  const auto terms = static_cast<double>(w.ic * w.kh * w.kw);
  return 1 + 4 * winograd::ErrorAmplification(winograd::TransformsOf(config.Get("tile"), w.sh)) / terms;
}

}  // namespace

}  // namespace cuda_winograd

const ConvTemplate& CudaWinogradTemplate() {
  static const DeviceTemplate<cuda_winograd::Schedule> instance({.name = "cuda_winograd",
                                                                 .device = kCudaDevice,
                                                                 .least_compute = 80,
                                                                 .supports = cuda_winograd::Supports,
                                                                 .preset_decides = true,
                                                                 .space = cuda_winograd::Space,
                                                                 .preset = cuda_winograd::Default,
                                                                 .read = cuda_winograd::ReadSchedule,
                                                                 .error_factor = cuda_winograd::ErrorFactor});
  return instance;
}

}  // namespace tilesmith
