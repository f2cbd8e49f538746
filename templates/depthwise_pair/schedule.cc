#include "templates/depthwise_pair/schedule.h"

#include <algorithm>

namespace tilesmith::depthwise_pair {
namespace {

// The 1x1 conv of `pixels` neighbouring pixels as a conv of one row; block strides stay those of the tensors.
direct::Schedule PointwiseRow(const ConvWorkload& pointwise, const DepthwisePairConfig& config,
                              int64_t pixels, int vector_floats) {
  ConvWorkload row = pointwise;
  row.ih = row.oh = 1;
  row.iw = row.ow = pixels;
  direct::Schedule g = direct::MakeSchedule(row, config.pointwise, vector_floats);
  const int64_t block = std::min(g.in.BlockFor(row.ic), row.ic);
  g.passes = {{0, row.ic / block, block, row.ic % block}};
  return g;
}

}  // namespace

int64_t Schedule::scratch_floats() const {
  const int64_t width =
      kind == PairKind::kDepthwiseFirst ? depthwise.rows.workload.ow : depthwise.rows.workload.iw;
  return scratch_vectors * scratch_rows * width * depthwise.rows.vector_floats;
}

RowRange Schedule::MiddleRows(int64_t block) const {
  const ConvWorkload& w = depthwise.rows.workload;
  const int64_t first = block * config.rows;
  const int64_t last = std::min(w.oh, first + config.rows);
  if (kind == PairKind::kDepthwiseFirst) return {first, last};
  const int64_t top = std::clamp<int64_t>(first * w.sh - w.ph, 0, w.ih);
  const int64_t bottom =
      std::clamp<int64_t>((last - 1) * w.sh - w.ph + (w.kh - 1) * (w.dh + 1) + 1, top, w.ih);
  return {top, bottom};
}

RowRange Schedule::Chunks(int64_t part) const {
  const auto chunks = static_cast<int64_t>(pointwise.chunks.size());
  return {part * chunks / config.parts, (part + 1) * chunks / config.parts};
}

Schedule MakeSchedule(const ConvWorkload& workload, const DepthwisePairConfig& config, const Target& cpu) {
  const PairConvs convs = ConvsOf(workload);
  const int vector = cpu.vector_floats();
  Schedule g;
  g.kind = KindOf(workload);
  g.config = config;
  g.depthwise = depthwise::MakeSchedule(convs.depthwise, config.depthwise, cpu);
  if (g.kind == PairKind::kDepthwiseFirst) {
    g.scratch_rows = config.rows;
    g.scratch_vectors = g.depthwise.vectors;
    depthwise::WriteScratch(g.depthwise, g.scratch_rows);
    g.pointwise = PointwiseRow(convs.pointwise, config, config.rows * convs.pointwise.iw, vector);
    g.pointwise.out_block_bytes = convs.pointwise.oh * convs.pointwise.ow * g.pointwise.out_pixel_bytes;
    return g;
  }
  for (int64_t block = 0; block < g.row_blocks(); ++block)
    g.scratch_rows = std::max(g.scratch_rows, g.MiddleRows(block).size());
  depthwise::ReadScratch(g.depthwise, g.scratch_rows);
  g.pointwise = PointwiseRow(convs.pointwise, config, config.mid_rows * convs.pointwise.iw, vector);
  g.pointwise.in_block_bytes = convs.pointwise.ih * convs.pointwise.iw * g.pointwise.in_pixel_bytes;
  g.pointwise.out_block_bytes = g.depthwise.in.block_bytes;
  for (int64_t part = 0; part < config.parts; ++part) {
    int64_t vectors = 0;
    const RowRange chunks = g.Chunks(part);
    for (int64_t i = chunks.first; i < chunks.last; ++i) vectors += g.pointwise.chunks[i].vectors;
    g.scratch_vectors = std::max(g.scratch_vectors, vectors);
  }
  return g;
}

TaskGrid GridOf(const Schedule& g) {
  return {.images = g.depthwise.rows.workload.mb,
          .channels = g.config.parts,
          .rows = g.row_blocks(),
          .height = g.depthwise.rows.workload.oh,
          .part_units = g.config.rows};
}

LoopFeatures FeaturesOf(const Schedule& g) {
  const LoopFeatures depthwise = depthwise::FeaturesOf(g.depthwise);
  const ConvWorkload& w = g.depthwise.rows.workload;
  const bool depthwise_first = g.kind == PairKind::kDepthwiseFirst;
  const auto tasks = static_cast<double>(w.mb * g.config.parts * g.row_blocks());
  const auto parts = static_cast<double>(g.config.parts);
  LoopFeatures f = direct::FeaturesOf(g.pointwise);
  // Halo rows of the middle tensor, or all of it for every part, are computed more than once.
  int64_t middle_rows = 0;
  for (int64_t block = 0; block < g.row_blocks(); ++block) middle_rows += g.MiddleRows(block).size();
  const auto pointwise_rows = static_cast<double>(depthwise_first ? g.config.rows : g.config.mid_rows);
  f.flops = f.flops * static_cast<double>(middle_rows) / pointwise_rows +
            depthwise.flops * (depthwise_first ? parts : 1);
  f.code_bytes += depthwise.code_bytes;
  f.weight_bytes += depthwise.weight_bytes;
  f.tasks = tasks;
  f.task_weight_bytes = f.weight_bytes / parts;
  const double image_share = static_cast<double>(w.mb) / tasks;
  const auto block_bytes = [](int64_t bytes, int64_t blocks) { return static_cast<double>(bytes * blocks); };
  const int64_t in_blocks = (g.pointwise.workload.ic + g.pointwise.in.BlockFor(g.pointwise.workload.ic) - 1) /
                            g.pointwise.in.BlockFor(g.pointwise.workload.ic);
  f.task_input_bytes = depthwise_first
                           ? depthwise.task_input_bytes * static_cast<double>(g.depthwise.vectors)
                           : block_bytes(g.pointwise.in_block_bytes, in_blocks) * image_share * parts;
  const int64_t out_floats = w.oh * w.ow * (depthwise_first ? g.pointwise.workload.oc : w.oc);
  f.task_output_bytes = static_cast<double>(out_floats) * sizeof(float) * image_share;
  f.scratch_bytes = static_cast<double>(g.scratch_floats()) * sizeof(float);
  return f;
}

}  // namespace tilesmith::depthwise_pair
