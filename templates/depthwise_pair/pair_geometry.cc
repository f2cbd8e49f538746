#include "templates/depthwise_pair/pair_geometry.h"

#include <algorithm>

namespace tilesmith::depthwise_pair {
namespace {

// The 1x1 conv of `pixels` neighbouring pixels as a conv of one row; block strides stay those of the tensors.
direct::Geometry PointwiseRow(const ConvWorkload& pointwise, const PairConfig& config, int64_t pixels,
                              int vector_floats) {
  ConvWorkload row = pointwise;
  row.ih = row.oh = 1;
  row.iw = row.ow = pixels;
  direct::Geometry g = direct::MakeGeometry(row, config.pointwise, vector_floats);
  const int64_t block = std::min(g.in.BlockFor(row.ic), row.ic);
  g.passes = {{0, row.ic / block, block, row.ic % block}};
  return g;
}

}  // namespace

int64_t PairGeometry::scratch_floats() const {
  const int64_t width =
      kind == PairKind::kDepthwiseFirst ? depthwise.rows.workload.ow : depthwise.rows.workload.iw;
  return scratch_vectors * scratch_rows * width * depthwise.rows.vector_floats;
}

RowRange PairGeometry::MiddleRows(int64_t block) const {
  const ConvWorkload& w = depthwise.rows.workload;
  const int64_t first = block * config.rows;
  const int64_t last = std::min(w.oh, first + config.rows);
  if (kind == PairKind::kDepthwiseFirst) return {first, last};
  const int64_t top = std::clamp<int64_t>(first * w.sh - w.ph, 0, w.ih);
  const int64_t bottom =
      std::clamp<int64_t>((last - 1) * w.sh - w.ph + (w.kh - 1) * (w.dh + 1) + 1, top, w.ih);
  return {top, bottom};
}

RowRange PairGeometry::Chunks(int64_t part) const {
  const auto chunks = static_cast<int64_t>(pointwise.chunks.size());
  return {part * chunks / config.parts, (part + 1) * chunks / config.parts};
}

PairGeometry MakeGeometry(const ConvWorkload& workload, const PairConfig& config, const CpuInfo& cpu) {
  const PairConvs convs = ConvsOf(workload);
  const int vector = cpu.vector_floats();
  PairGeometry g;
  g.kind = KindOf(workload);
  g.config = config;
  g.depthwise = depthwise::MakeGeometry(convs.depthwise, config.depthwise, cpu);
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

}  // namespace tilesmith::depthwise_pair
