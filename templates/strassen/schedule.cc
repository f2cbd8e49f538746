#include "templates/strassen/schedule.h"

#include <algorithm>

#include "layouts/base/sizes.h"
#include "templates/base/conv_template.h"
#include "templates/base/image_strides.h"
#include "templates/direct/row_product.h"

namespace tilesmith::strassen {
namespace {

// An odd number of vectors, so that operands do not share a few cache sets.
int64_t Spread(int64_t vectors, int vector_floats) { return (vectors | 1) * vector_floats; }

}  // namespace

int64_t CountPairs(const ConvWorkload& w) { return CeilDiv(w.oh * w.ow, 2); }

ConvWorkload ProductOf(const ConvWorkload& w, int64_t pairs) {
  return direct::ProductWorkload(w.ic / 2, w.oc / 2, pairs);
}

Schedule MakeSchedule(const ConvWorkload& w, const StrassenConfig& config, int vector_floats) {
  Schedule g;
  g.workload = w;
  g.config = config;
  g.in = LayoutOfBlockKnob(config.ic_block);
  g.out = LayoutOfBlockKnob(config.oc_block);
  g.vector_floats = vector_floats;
  g.pixels = w.oh * w.ow;
  g.image_blocks = CeilDiv(CountPairs(w), config.block());
  g.in_vectors = w.ic / 2 / vector_floats;
  g.out_vectors = w.oc / 2 / vector_floats;
  g.in_place = config.ic_block == vector_floats && w.sh == 1 && w.sw == 1;
  g.operand = Spread(g.in_vectors * config.block(), vector_floats);
  g.product = Spread(config.product.oc_vectors * config.row, vector_floats);
  return g;
}

Block Schedule::BlockAt(int64_t index) const {
  Block block;
  block.image = index / image_blocks;
  block.first = index % image_blocks * 2 * config.block();
  const int64_t left = std::min(pixels - block.first, 2 * config.block());
  block.pairs = CeilDiv(left, 2);
  block.second = block.first + left - block.pairs;
  block.shared = left % 2 == 1;
  return block;
}

Halves Schedule::HalvesOf(const direct::Chunk& chunk) const {
  const int64_t channels = static_cast<int64_t>(chunk.vectors) * vector_floats;
  return {2 * chunk.first_channel, 2 * chunk.first_channel + channels, channels};
}

int64_t Schedule::InPixelOffset(int64_t pixel) const {
  const ConvWorkload& w = workload;
  return (pixel / w.ow * w.sh * w.iw + pixel % w.ow * w.sw) * in_pixel();
}

int64_t Schedule::InVectorOffset(int64_t vector) const {
  return ImageStrides(in, workload.ic, workload.ih, workload.iw).ChannelOffset(vector * vector_floats) /
         kFloatBytes;
}

int64_t Schedule::OutVectorOffset(int64_t vector) const {
  return ImageStrides(out, workload.oc, workload.oh, workload.ow).ChannelOffset(vector * vector_floats) /
         kFloatBytes;
}

TaskGrid GridOf(const Schedule& g) {
  const direct::Schedule product =
      direct::MakeSchedule(ProductOf(g.workload, g.config.row), g.config.product, g.vector_floats);
  const auto chunks = static_cast<int64_t>(product.chunks.size());
  switch (g.config.partition) {
    case Partition::kBlocks:
      return {.images = g.workload.mb, .rows = g.image_blocks};
    case Partition::kOutChannels:
      return {.channels = chunks,
              .rows = g.blocks(),
              .height = 1,
              .part_units = g.blocks(),
              .exact = g.blocks() == 1};
    case Partition::kOwnSums:
      return {.images = g.workload.mb, .channels = chunks, .channels_inner = true, .height = 1};
  }
  return {};
}

LoopFeatures FeaturesOf(const Schedule& g) {
  constexpr double kBytes = sizeof(float);
  constexpr double kInputAdditions = 4, kOutputAdditions = 7;
  const ConvWorkload& w = g.workload;
  LoopFeatures f =
      direct::FeaturesOf(direct::MakeSchedule(ProductOf(w, g.config.row), g.config.product, g.vector_floats));
  const auto block_pairs = static_cast<double>(g.config.block());
  const auto in_half = static_cast<double>(w.ic / 2), out_half = static_cast<double>(w.oc / 2);
  const double sums = kInputAdditions * in_half + kOutputAdditions * out_half;
  f.flops = static_cast<double>(w.mb * CountPairs(w)) * (2 * kProducts * in_half * out_half + sums);
  f.weight_bytes = kProducts * in_half * out_half * kBytes;
  f.scratch_bytes = static_cast<double>(g.v_floats() + g.m_floats()) * kBytes;
  f.tasks = static_cast<double>(g.blocks());
  f.task_input_bytes = block_pairs * g.operands() * in_half * kBytes;
  f.task_weight_bytes = f.weight_bytes;
  f.task_output_bytes = block_pairs * 2 * static_cast<double>(w.oc) * kBytes;
  const auto chunks = static_cast<double>(CeilDiv(g.out_vectors, g.config.product.oc_vectors));
  if (g.config.partition != Partition::kBlocks) {
    f.tasks *= chunks;
    f.task_weight_bytes /= chunks;
    f.task_output_bytes /= chunks;
  }
  if (g.config.partition == Partition::kOwnSums) {
    const auto image_blocks = static_cast<double>(g.image_blocks);
    f.tasks /= image_blocks;
    f.task_input_bytes *= image_blocks;
    f.task_output_bytes *= image_blocks;
  }
  return f;
}

}  // namespace tilesmith::strassen
