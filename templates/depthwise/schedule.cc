#include "templates/depthwise/schedule.h"

#include <algorithm>

#include "templates/base/conv_template.h"
#include "templates/base/image_strides.h"

namespace tilesmith::depthwise {
namespace {

// The next block of rows that may need other code. Those whose rows read all kernel rows inside the input are
// all alike.
int64_t NextUnlike(const Schedule& g, int64_t block) {
  const ConvWorkload& w = g.rows.workload;
  const int64_t rows = g.rows.config.rows;
  const int64_t last_top =
      w.ih - 1 + w.ph - (w.kh - 1) * (w.dh + 1);  // of rows that end inside, before padding
  if (g.rows.InputRow(block * rows) < 0 || last_top < 0) return block + 1;
  const int64_t whole_rows = std::min(w.oh, last_top / w.sh + 1);
  return std::max(block + 1, whole_rows / rows);
}

}  // namespace

std::vector<RowGroup> Schedule::Groups(int64_t block) const {
  const int64_t first = block * rows.config.rows;
  return CutRows(rows, first, std::min(rows.workload.oh, first + rows.config.rows));
}

Schedule MakeSchedule(const ConvWorkload& w, const DepthwiseConfig& config, const Target& cpu) {
  Schedule g;
  const Layout layout = LayoutOfBlockKnob(config.block);
  g.rows.workload = w;
  g.rows.config = config;
  g.rows.vector_floats = cpu.vector_floats();
  g.rows.registers = cpu.vector_registers();
  const int64_t floats = cpu.vector_floats();
  g.vectors = (w.oc + floats - 1) / floats;
  const auto lanes = static_cast<int>(w.oc % floats);
  g.rows.masked = layout.is_nhwc() && lanes > 0;
  // Zero pixels with zero weights give zeros unless the activation makes something of them.
  g.lanes = g.rows.masked || w.post.activation.Apply(0.0F) != 0.0F ? lanes : 0;
  g.padding_vectors = layout.is_nhwc() ? 0 : layout.PaddedChannels(w.oc) / floats - g.vectors;
  const int64_t block = layout.BlockFor(w.oc);
  const int64_t vectors_per_block = layout.is_nhwc() ? g.vectors : block / floats;
  const int64_t in_bytes = ElementBytes(config.types.in), out_bytes = ElementBytes(config.types.out);
  g.rows.in_pixel_bytes = block * in_bytes;
  g.rows.out_pixel_bytes = block * out_bytes;
  g.rows.in_row_bytes = w.iw * g.rows.in_pixel_bytes;
  g.rows.out_row_bytes = w.ow * g.rows.out_pixel_bytes;
  g.in = {vectors_per_block, floats * in_bytes, w.ih * g.rows.in_row_bytes};
  g.out = {vectors_per_block, floats * out_bytes, w.oh * g.rows.out_row_bytes};
  for (int64_t i = 0; i < g.row_blocks(); i = NextUnlike(g, i)) CollectCodes(g.Groups(i), g.codes);
  return g;
}

void ReadScratch(Schedule& g, int64_t rows) {
  g.rows.in_pixel_bytes = g.rows.vector_bytes();
  g.rows.in_row_bytes = g.rows.workload.iw * g.rows.in_pixel_bytes;
  g.in = {1, g.rows.in_pixel_bytes, rows * g.rows.in_row_bytes};
}

void WriteScratch(Schedule& g, int64_t rows) {
  g.rows.out_pixel_bytes = g.rows.vector_bytes();
  g.rows.out_row_bytes = g.rows.workload.ow * g.rows.out_pixel_bytes;
  g.out = {1, g.rows.out_pixel_bytes, rows * g.rows.out_row_bytes};
  g.padding_vectors = 0;
}

TaskGrid GridOf(const Schedule& g) {
  return {.images = g.rows.workload.mb,
          .channels = g.vector_blocks(),
          .rows = g.row_blocks(),
          .channels_inner = g.rows.config.block == 0,
          .height = g.rows.workload.oh,
          .part_units = g.rows.config.rows};
}

LoopFeatures FeaturesOf(const Schedule& g) {
  const ConvWorkload& w = g.rows.workload;
  const DepthwiseConfig& c = g.rows.config;
  constexpr double kBytes = sizeof(float);
  const int64_t taps = g.rows.taps(), lanes = g.rows.vector_floats;
  const int64_t tile = c.row_tile * c.width_tile;
  const int64_t pixels = std::min(c.row_tile * w.kh, (c.row_tile - 1) * w.sh + w.kh) *
                         std::min(c.width_tile * w.kw, (c.width_tile - 1) * w.sw + w.kw);
  const int64_t weights = c.weights == Weights::kMemory ? tile * taps : c.weights == Weights::kRow ? taps : 0;
  const int64_t rows = std::min(c.rows, w.oh);
  // A pair of rows takes two thirds of the multiplications (row_pairs.h).
  const double products = c.pairs ? 2.0 / 3 : 1;
  LoopFeatures f;
  f.flops = products * 2.0 * static_cast<double>(w.mb * w.oh * w.ow) *
            static_cast<double>(g.vectors * lanes * taps);
  f.fma_per_load = products * static_cast<double>(tile * taps) / static_cast<double>(pixels + weights);
  f.accumulators = static_cast<double>(tile);
  f.code_bytes = static_cast<double>(EstimateCodeBytes(g.rows, g.codes));
  f.weight_bytes = static_cast<double>(g.vectors * lanes * PlaneWeights(g.rows)) * kBytes;
  f.tasks = static_cast<double>(w.mb * g.vector_blocks() * g.row_blocks());
  f.task_input_bytes =
      InputBytes(w, rows, c.vectors * lanes) * static_cast<double>(ElementBytes(c.types.in)) / kBytes;
  f.task_weight_bytes = static_cast<double>(c.vectors * lanes * PlaneWeights(g.rows)) * kBytes;
  f.task_output_bytes = static_cast<double>(rows * w.ow * c.vectors * lanes * ElementBytes(c.types.out));
  return f;
}

}  // namespace tilesmith::depthwise
