#include "templates/matmul/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "layouts/base/isa_dispatch.h"
#include "layouts/base/sizes.h"
#include "ops/dense/matmul.h"
#include "templates/base/image_strides.h"
#include "templates/base/schedule_template.h"

namespace tilesmith {
namespace matmul {
namespace {

// A kernel of ops, which packs no weights, as one that templates build.
class ForwardedKernel final : public ConvKernel {
 public:
  explicit ForwardedKernel(std::unique_ptr<Kernel> kernel) : kernel_(std::move(kernel)) {}

  int Stages() const override { return kernel_->Stages(); }
  int64_t Tasks(int stage) const override { return kernel_->Tasks(stage); }
  TaskGrid Grid(int stage) const override { return kernel_->Grid(stage); }
  void Run(const KernelArgs& args, int stage, TaskRange range) const override {
    kernel_->Run(args, stage, range);
  }
  int64_t ScratchBytes(int threads) const override { return kernel_->ScratchBytes(threads); }
  std::span<const std::byte> PackedWeights() const override { return {}; }

 private:
  const std::unique_ptr<Kernel> kernel_;
};

Arrangement Seen(bool transposed) { return transposed ? Arrangement{{}, {0, 1, 3, 2}} : Arrangement{}; }

double Bytes(int64_t floats) { return static_cast<double>(floats * kFloatBytes); }

}  // namespace

std::unique_ptr<ConvKernel> BuildKernel(const Schedule& s, const Target& cpu, const ConvWeights&) {
  const ConvWorkload& w = s.workload;
  const KernelRequest request{{w.input_shape(), w.weights_shape()}, w.output_shape(), Layout::Nchw(), cpu};
  MatMulParams params{.a = Seen(w.product->left_transposed), .b = Seen(w.product->right_transposed)};
  params.schedule = s.config;
  return std::make_unique<ForwardedKernel>(MakeMatMulKernel(request, params));
}

int64_t Schedule::row_panels() const { return CeilDiv(workload.oh, config.panel_rows); }
int64_t Schedule::column_panels() const { return CeilDiv(workload.oc, config.panel_columns); }

TaskGrid GridOf(const Schedule& s) {
  return TaskGrid::List(s.workload.mb * s.row_panels() * s.column_panels());
}

LoopFeatures FeaturesOf(const Schedule& s) {
  const ConvWorkload& w = s.workload;
  const MatMulSchedule& c = s.config;
  const int64_t rows = CeilDiv(w.oh, s.row_panels()), columns = std::min(w.oc, c.panel_columns);
  const int64_t terms = std::min(w.ic, c.panel_terms);
  LoopFeatures f;
  f.flops =
      2.0 * static_cast<double>(w.mb * w.oh * RoundUp(w.oc, s.vector_floats)) * static_cast<double>(w.ic);
  f.accumulators = static_cast<double>(c.tile_rows * c.tile_vectors);
  f.fma_per_load = f.accumulators / static_cast<double>(c.tile_rows + c.tile_vectors);
  f.tasks = static_cast<double>(GridOf(s).tasks());
  f.task_input_bytes = Bytes(rows * w.ic);
  f.task_weight_bytes = Bytes(columns * w.ic);
  f.task_output_bytes = Bytes(rows * columns);
  f.output_passes = static_cast<double>(CeilDiv(w.ic, c.panel_terms));
  f.scratch_bytes = Bytes((rows + terms) * c.panel_columns + (c.pack_left ? terms * rows : 0));
  return f;
}

LoopNest NestOf(const Schedule& s) {
  const ConvWorkload& w = s.workload;
  const MatMulSchedule& c = s.config;
  const int64_t rows = CeilDiv(w.oh, s.row_panels()), columns = std::min(w.oc, c.panel_columns);
  const int64_t terms = std::min(w.ic, c.panel_terms), tile_rows = std::min<int64_t>(rows, c.tile_rows);
  const int64_t vectors = std::min<int64_t>(CeilDiv(columns, s.vector_floats), c.tile_vectors);
  const int64_t width = vectors * s.vector_floats;
  LoopNest nest;
  nest.tasks = {LoopOver("mb", w.mb, 1, LoopKind::kTasks), LoopOver("m", w.oh, rows, LoopKind::kTasks),
                LoopOver("n", w.oc, columns, LoopKind::kTasks)};
  if (c.rows_inner) std::swap(nest.tasks[1], nest.tasks[2]);
  LoopPart part;
  std::string packed = c.pack_right == Packing::kAlways ? "the right side is packed" : "";
  if (c.pack_left) packed += packed.empty() ? "the left side is packed" : ", the left one too";
  part.loops = {LoopOver("k", w.ic, terms, LoopKind::kLoop, packed),
                LoopOver("n", columns, width, LoopKind::kLoop, "register tiles"),
                LoopOver("m", rows, tile_rows, LoopKind::kLoop, "register tiles"),
                LoopOver("k", terms, 1, LoopKind::kLoop),
                LoopOver("m", tile_rows, 1, LoopKind::kUnrolled, "register tile: rows"),
                LoopOver("n", width, s.vector_floats, LoopKind::kUnrolled, "register tile: vectors"),
                LoopOver("n", s.vector_floats, 1, LoopKind::kVector)};
  part.body = "sum += left, broadcast, * right";
  nest.parts = {std::move(part)};
  nest.tile_input_bytes = Bytes(tile_rows * terms);
  nest.tile_weight_bytes = Bytes(width * terms);
  nest.tile_output_bytes = Bytes(tile_rows * width);
  return nest;
}

namespace {

// What a panel, and what is packed for it, may take of a thread's caches.
constexpr int64_t kMaxScratchBytes = 2 << 20;

std::string WhyInvalid(const MatMulSchedule& s, int vector_floats) {
  const int most = MostTileRows(vector_floats, s.tile_vectors);
  if (s.tile_rows > most) {
    return fmt::format("the registers have room for {} rows of {} vectors", most, s.tile_vectors);
  }
  if (s.tile_rows > s.panel_rows) return "a register tile has more rows than a panel";
  if (s.tile_vectors > 1 && int64_t{s.tile_vectors} * vector_floats > s.panel_columns) {
    return "a register tile has more columns than a panel";
  }
  const int64_t left = s.pack_left ? s.panel_terms * s.panel_rows : 0;
  const int64_t floats = s.panel_rows * s.panel_columns + s.panel_terms * s.panel_columns + left;
  if (floats * kFloatBytes > kMaxScratchBytes) {
    return fmt::format("a thread's panels take {} KiB, allowed are {}", floats * kFloatBytes >> 10,
                       kMaxScratchBytes >> 10);
  }
  return "";
}

// The first values, up to one that covers `size`, but all up to `at_least`.
std::vector<int64_t> UpToCover(int64_t size, int64_t at_least, std::initializer_list<int64_t> values) {
  std::vector<int64_t> kept;
  for (const int64_t value : values) {
    if (!kept.empty() && kept.back() >= std::max(size, at_least)) break;
    kept.push_back(value);
  }
  return kept;
}

std::vector<int64_t> UpToAll(int most) {
  std::vector<int64_t> values;
  for (int value = 1; value <= most; ++value) values.push_back(value);
  return values;
}

Support Supports(const ConvWorkload&, const Target&) { return Support::Yes(); }

ConfigSpace Space(const ConvWorkload& w, const Target& cpu) {
  const int vector = DispatchedVectorFloats(cpu);
  std::vector<Knob> knobs = {
      {"tile_rows", UpToAll(MostTileRows(vector, 1)), "register tile: rows"},
      {"tile_vectors", UpToAll(kMaxTileVectors), "register tile: vectors of columns"},
      {"panel_rows", UpToCover(w.oh, kPanelRows, {8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256}),
       "rows of a task, at most; all tasks have about as many"},
      {"panel_columns", UpToCover(w.oc, kPanelColumns, {16, 32, 48, 64, 96, 128}), "columns of a task"},
      {"panel_terms", UpToCover(w.ic, kPanelTerms, {32, 64, 128, 256, 512, 1024}),
       "terms added up before the next ones are looked at"},
      {"pack_left", {0, 1}, "1: the left side is copied, rows side by side"},
      {"pack_right",
       {0, 1, 2},
       "the right side is copied: 0 where that pays by experience, 1 where needed, 2 always"},
      {"rows_inner", {0, 1}, "neighbouring tasks: 0 read the same rows, 1 the same columns"}};
  return ConfigSpace(std::move(knobs),
                     [vector](const Config& config) { return WhyInvalid(ReadConfig(config), vector); });
}

// The schedule that products have without tuning.
Config Default(const ConvWorkload& w, const Target& cpu) {
  const MatMulSchedule s;
  Config config;
  config.Set("tile_rows", DefaultTileRows(DispatchedVectorFloats(cpu)));
  config.Set("tile_vectors", s.tile_vectors);
  config.Set("panel_rows", kPanelRows);
  config.Set("panel_columns", DefaultPanelColumns(w.oh, w.oc, w.ic, cpu));
  config.Set("panel_terms", s.panel_terms);
  config.Set("pack_left", s.pack_left);
  config.Set("pack_right", static_cast<int64_t>(s.pack_right));
  config.Set("rows_inner", s.rows_inner);
  return config;
}

Schedule ReadSchedule(const ConvWorkload& w, const Config& config, const Target& cpu) {
  return {w, ReadConfig(config), DispatchedVectorFloats(cpu)};
}

}  // namespace

MatMulSchedule ReadConfig(const Config& config) {
  return {.tile_rows = static_cast<int>(config.Get("tile_rows")),
          .tile_vectors = static_cast<int>(config.Get("tile_vectors")),
          .panel_rows = config.Get("panel_rows"),
          .panel_columns = config.Get("panel_columns"),
          .panel_terms = config.Get("panel_terms"),
          .pack_left = config.Get("pack_left") != 0,
          .pack_right = static_cast<Packing>(config.Get("pack_right")),
          .rows_inner = config.Get("rows_inner") != 0};
}

}  // namespace matmul

MatMulSchedule MatMulScheduleOf(const Config& config) { return matmul::ReadConfig(config); }

const ConvTemplate& MatMulTemplate() {
  static const ScheduleTemplate<matmul::Schedule> instance({.name = "matmul",
                                                            .products = true,
                                                            .supports = matmul::Supports,
                                                            .space = matmul::Space,
                                                            .preset = matmul::Default,
                                                            .read = matmul::ReadSchedule,
                                                            .layout_knobs = {}});
  return instance;
}

}  // namespace tilesmith
