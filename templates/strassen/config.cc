#include "templates/strassen/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "layouts/base/sizes.h"
#include "templates/base/conv_template.h"
#include "templates/base/image_strides.h"
#include "templates/base/schedule_template.h"
#include "templates/direct/row_product.h"

namespace tilesmith {
namespace strassen {
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
      return {.images = g.workload.mb,
              .rows = g.image_blocks,
              .height = g.workload.oh,
              .row_units = g.workload.ow,
              .part_units = 2 * g.config.block()};
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

LoopNest NestOf(const Schedule& g) {
  const direct::Schedule product =
      direct::MakeSchedule(ProductOf(g.workload, g.config.row), g.config.product, g.vector_floats);
  const Partition partition = g.config.partition;
  const int64_t pairs = CountPairs(g.workload), half = g.workload.oc / 2;
  int64_t widest = 1;
  for (const direct::Chunk& chunk : product.chunks) widest = std::max<int64_t>(widest, chunk.vectors);
  const Loop images = LoopOver("mb", g.workload.mb, 1, LoopKind::kTasks);
  const Loop blocks =
      LoopOver("pairs", pairs, g.config.block(),
               partition == Partition::kOwnSums ? LoopKind::kLoop : LoopKind::kTasks, "blocks of pixels");
  const Loop chunks = LoopOver("oc", half, widest * g.vector_floats,
                               partition == Partition::kBlocks ? LoopKind::kLoop : LoopKind::kTasks,
                               "chunks of half the channels");
  const Loop rows = LoopOver("pairs", g.config.block(), g.config.row, LoopKind::kLoop, "rows");
  const Loop row = LoopOver("pairs", g.config.row, 1, LoopKind::kLoop);
  const Loop lanes = LoopOver("oc", g.vector_floats, 1, LoopKind::kVector);

  LoopPart add, multiply, combine;
  add.title = "add up the input: pairs of pixels, halves of the channels";
  add.loops = {LoopOver("ic", g.workload.ic / 2, g.vector_floats, LoopKind::kLoop),
               LoopOver("pairs", g.config.block(), 1, LoopKind::kLoop),
               LoopOver("ic", g.vector_floats, 1, LoopKind::kVector)};
  add.body = g.in_place ? "V = 4 sums; the other operands are the input itself" : "V = 7 operands";
  multiply.title = "multiply: seven matrix products of half the channels";
  multiply.loops = {rows, LoopOver("product", kProducts, 1, LoopKind::kLoop)};
  const std::vector<Loop> inner = direct::RowLoops(product, "pairs");
  multiply.loops.insert(multiply.loops.end(), inner.begin(), inner.end());
  multiply.body = direct::RowBody(product);
  multiply.covers = 8.0 / kProducts;
  combine.title = "add up the products";
  combine.loops = {rows, LoopOver("oc", widest * g.vector_floats, g.vector_floats, LoopKind::kLoop), row,
                   lanes};
  combine.body = "4 outputs = sums of 7 products";
  add.covers = combine.covers = 0;

  const auto put_around = [](LoopPart& part, std::initializer_list<Loop> loops) {
    part.loops.insert(part.loops.begin(), loops);
  };
  LoopNest nest;
  switch (partition) {
    case Partition::kBlocks:
      nest.tasks = {images, blocks};
      for (LoopPart* part : {&multiply, &combine}) put_around(*part, {chunks});
      break;
    case Partition::kOutChannels:
      put_around(add, {images, blocks});
      for (LoopPart* part : {&multiply, &combine}) put_around(*part, {chunks, images, blocks});
      break;
    case Partition::kOwnSums:
      nest.tasks = {images, chunks};
      for (LoopPart* part : {&add, &multiply, &combine}) put_around(*part, {blocks});
      break;
  }
  nest.parts = {std::move(add), std::move(multiply), std::move(combine)};
  direct::SetTileBytes(product, nest);
  return nest;
}

namespace {

constexpr int64_t kMaxBlockBytes = 16LL << 20;   // V of a block
constexpr int64_t kMaxStageBytes = 256LL << 20;  // V of the whole batch

// A block lies in one half of the channels; NHWC always does.
std::vector<int64_t> BlockValues(int64_t channels, int64_t vector) {
  std::vector<int64_t> blocks;
  for (int64_t block : {4, 8, 16, 32, 64}) {
    if (block % vector == 0 && channels / 2 % block == 0) blocks.push_back(block);
  }
  blocks.push_back(0);
  return blocks;
}

std::vector<int64_t> RowValues(const ConvWorkload& w) {
  const int64_t pairs = CountPairs(w);
  std::vector<int64_t> rows;
  for (int64_t row : {1, 2, 4, 5, 6, 7, 8, 9, 10, 12, 13, 14, 18, 20, 24, 25, 28, 36, 42, 49, 56}) {
    if (row <= pairs) rows.push_back(row);
  }
  return rows;
}

std::string WhyInvalid(const ConvWorkload& w, const Target& cpu, const StrassenConfig& c) {
  const int64_t pairs = CountPairs(w);
  if ((c.rows - 1) * c.row >= pairs)
    return fmt::format("{} rows of {} exceed the {} pairs", c.rows, c.row, pairs);
  const Schedule g = MakeSchedule(w, c, cpu.vector_floats());
  const bool staged = c.partition == Partition::kOutChannels;
  const int64_t bytes = g.v_floats() * kFloatBytes * (staged ? g.blocks() : 1);
  const int64_t most = staged ? kMaxStageBytes : kMaxBlockBytes;
  if (bytes > most) return fmt::format("{} MiB of scratch (at most {})", bytes >> 20, most >> 20);
  return direct::WhyProductInvalid(ProductOf(w, c.row), c.product, cpu);
}

ConfigSpace Space(const ConvWorkload& w, const Target& cpu) {
  const int64_t vector = cpu.vector_floats();
  std::vector<Knob> knobs = {
      {"ic_block", BlockValues(w.ic, vector), "x of the input layout NCHW[x]c; 0 is NHWC"},
      {"oc_block", BlockValues(w.oc, vector), "x of the output layout NCHW[x]c; 0 is NHWC"},
      {"partition", {0, 1, 2}, "tasks: 0 blocks of pixels; output channels 1 of a block, 2 of an image"},
      {"row", RowValues(w), "pairs of pixels per matrix product"},
      {"rows", {1, 2, 3, 4, 6, 7, 8, 14, 28}, "matrix products per block of pixels"},
  };
  for (Knob& knob : direct::ProductKnobs(cpu, CountPairs(w), "pair")) knobs.push_back(std::move(knob));
  return ConfigSpace(std::move(knobs),
                     [w, cpu](const Config& config) { return WhyInvalid(w, cpu, ReadConfig(config, cpu)); });
}

// A config without tuning.
Config Default(const ConvWorkload& w, const Target& cpu) {
  const ConfigSpace space = Space(w, cpu);
  const auto make = [&](int64_t row) {
    Config config;
    config.Set("ic_block", cpu.vector_floats());
    config.Set("oc_block", cpu.vector_floats());
    config.Set("partition", static_cast<int64_t>(Partition::kOwnSums));
    config.Set("row", row);
    config.Set("rows", 1);
    config.Set("prefetch", 0);
    direct::SetProductTile(direct::DefaultProductTile(ProductOf(w, row), 0, cpu), config);
    return config;
  };
  for (int64_t row : {14, 13, 12, 10, 9, 8, 7, 6, 5, 4, 2}) {
    Config config = make(row);
    if (space.WhyInvalid(config).empty()) return config;
  }
  return make(1);
}

Support Supports(const ConvWorkload& w, const Target& cpu) {
  // Below this the additions cost more than the multiplications they save.
  constexpr int64_t kFewestChannels = 96;
  if (w.kh != 1 || w.kw != 1) return Support::No(fmt::format("a {}x{} kernel, not 1x1", w.kh, w.kw));
  const bool padded = w.ph > 0 || w.pw > 0 || (w.oh - 1) * w.sh >= w.ih || (w.ow - 1) * w.sw >= w.iw;
  if (padded) return Support::No("padding");
  if (w.g != 1) return Support::No(fmt::format("{} groups, not 1", w.g));
  for (const int64_t channels : {w.ic, w.oc}) {
    if (channels < kFewestChannels) {
      return Support::No(
          fmt::format("{} -> {} channels: with fewer than {} the additions cost more than they save", w.ic,
                      w.oc, kFewestChannels));
    }
    if (channels % (int64_t{2} * cpu.vector_floats()) != 0)
      return Support::No(fmt::format("{} channels, whose halves do not fill vectors", channels));
  }
  if (w.oh * w.ow == 1) return Support::No("one pixel, which makes no pair");
  return FitsDisplacements(w, 0);
}

// In data without structure, operands have the variance of as many elements as they add up. C12 adds P1
// (1), P6 (3 * 3), P5 (2 * 2) and P3 (4 * 1), where a plain sum of as many terms has 2: 3 times larger,
// squared; C21 and C22 likewise. What that is of the bound for plain sums: see the Winograd template.
double ErrorFactor(const ConvWorkload& w, const Config&) {
  constexpr double kAmplification = 3;
  return 1 + 4 * kAmplification / static_cast<double>(w.ic);
}

Schedule ReadSchedule(const ConvWorkload& w, const Config& config, const Target& cpu) {
  return MakeSchedule(w, ReadConfig(config, cpu), cpu.vector_floats());
}

}  // namespace

StrassenConfig ReadConfig(const Config& config, const Target& cpu) {
  StrassenConfig c;
  c.ic_block = config.Get("ic_block");
  c.oc_block = config.Get("oc_block");
  c.partition = static_cast<Partition>(config.Get("partition"));
  c.row = config.Get("row");
  c.rows = config.Get("rows");
  c.product = direct::ReadProductConfig(config, cpu);
  return c;
}

}  // namespace strassen

const ConvTemplate& StrassenTemplate() {
  static const GeneratedTemplate<strassen::Schedule> instance({.name = "strassen",
                                                               .supports = strassen::Supports,
                                                               .preset_decides = true,
                                                               .space = strassen::Space,
                                                               .preset = strassen::Default,
                                                               .read = strassen::ReadSchedule,
                                                               .order = Order::kOwn,
                                                               .error_factor = strassen::ErrorFactor});
  return instance;
}

}  // namespace tilesmith
