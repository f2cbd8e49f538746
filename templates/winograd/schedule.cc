#include "templates/winograd/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <utility>

#include "layouts/base/sizes.h"
#include "templates/base/conv_template.h"
#include "templates/base/image_strides.h"
#include "templates/base/loop_features.h"
#include "templates/direct/row_product.h"

namespace tilesmith::winograd {
namespace {

AxisKinds SortTiles(int64_t tiles, const std::function<Span(int64_t)>& span_of) {
  AxisKinds axis;
  for (int64_t t = 0; t < tiles; ++t) {
    const Span span = span_of(t);
    const auto found = std::find(axis.kinds.begin(), axis.kinds.end(), span);
    axis.of_tile.push_back(static_cast<int>(found - axis.kinds.begin()));
    if (found == axis.kinds.end()) axis.kinds.push_back(span);
  }
  axis.run_end.assign(tiles, static_cast<int>(tiles));
  for (int64_t t = tiles - 2; t >= 0; --t) {
    const bool same = axis.of_tile[t] == axis.of_tile[t + 1];
    axis.run_end[t] = same ? axis.run_end[t + 1] : static_cast<int>(t + 1);
  }
  return axis;
}

struct InputAxis {
  int64_t step, window, pad, size;
};

AxisKinds InputKinds(int64_t tiles, const InputAxis& axis) {
  return SortTiles(tiles, [=](int64_t t) {
    const auto [step, window, pad, size] = axis;
    const int64_t start = t * step - pad;
    const int64_t first = std::clamp<int64_t>(-start, 0, window);
    return Span{static_cast<int>(first), static_cast<int>(std::clamp(size - start, first, window))};
  });
}

AxisKinds OutputKinds(int64_t tiles, int64_t tile, int64_t size) {
  return SortTiles(tiles, [=](int64_t t) {
    return Span{0, static_cast<int>(std::min(tile, size - t * tile))};
  });
}

// An odd number of vectors, so that the T * T elements of a tile do not share a few cache sets.
int64_t ElementSize(int64_t vectors, int64_t block_tiles, int vector_floats) {
  return (vectors * block_tiles | 1) * vector_floats;
}

}  // namespace

std::vector<int64_t> TileValues(const ConvWorkload& w) {
  std::vector<int64_t> tiles = {2};
  const std::vector<int64_t> larger = w.sh == 2 ? std::vector<int64_t>{3, 4} : std::vector<int64_t>{4, 6};
  for (int64_t tile : larger) {
    if (std::max(w.oh, w.ow) > tile - 2) tiles.push_back(tile);
  }
  return tiles;
}

int64_t CountTiles(const ConvWorkload& w, int64_t tile) {
  return w.mb * CeilDiv(w.oh, tile) * CeilDiv(w.ow, tile);
}

ScratchParts ScratchFor(const ConvWorkload& w, const WinogradConfig& c, int64_t block_tiles,
                        int vector_floats) {
  constexpr int64_t kLine = 64;
  const int64_t window = WindowOf(c.tile, w.sh);
  const auto lines = [&](int64_t channels, int64_t element_bytes) {
    const int64_t element = ElementSize(CeilDiv(channels, vector_floats), block_tiles, vector_floats);
    return CeilDiv(window * window * element * element_bytes, kLine) * kLine;
  };
  return {lines(w.ic, c.product.in_bytes()), lines(w.oc, kFloatBytes)};
}

ConvWorkload ProductOf(const ConvWorkload& w, int64_t tiles, int vector_floats) {
  return direct::ProductWorkload(w.ic, CeilDiv(w.oc, vector_floats) * vector_floats, tiles);
}

Schedule MakeSchedule(const ConvWorkload& w, const WinogradConfig& config, int vector_floats) {
  Schedule g;
  g.workload = w;
  g.config = config;
  g.in = LayoutOfBlockKnob(config.ic_block).WithType(config.types.in);
  g.out = LayoutOfBlockKnob(config.oc_block).WithType(config.types.out);
  g.vector_floats = vector_floats;
  g.rows = CeilDiv(w.oh, config.tile);
  g.columns = CeilDiv(w.ow, config.tile);
  g.tiles = w.mb * g.rows * g.columns;
  g.block_tiles = config.partition == Partition::kTileBlocks ? config.tile_block : g.tiles;
  g.in_vectors = CeilDiv(w.ic, vector_floats);
  g.out_vectors = CeilDiv(w.oc, vector_floats);
  g.zero_vectors = g.out.PaddedChannels(w.oc) / vector_floats - g.out_vectors;
  g.in_rows = InputKinds(g.rows, {g.input_step(), g.window(), w.ph, w.ih});
  g.in_columns = InputKinds(g.columns, {g.input_step(), g.window(), w.pw, w.iw});
  g.out_rows = OutputKinds(g.rows, config.tile, w.oh);
  g.out_columns = OutputKinds(g.columns, config.tile, w.ow);
  g.in_element = ElementSize(g.in_vectors, g.block_tiles, vector_floats);
  g.out_element = ElementSize(g.out_vectors, g.block_tiles, vector_floats);
  const ScratchParts scratch = ScratchFor(w, config, g.block_tiles, vector_floats);
  g.m_bytes = scratch.v;
  g.scratch_bytes = scratch.bytes();
  return g;
}

void MergeProducts(Schedule& g) {
  g.merged = MergeProducts(g.transforms());
  const std::vector<int>& sum_of = g.merged.sum_of;
  std::vector<int64_t> sorted(g.elements());
  std::iota(sorted.begin(), sorted.end(), 0);
  std::stable_sort(sorted.begin(), sorted.end(), [&](int64_t a, int64_t b) {
    const int64_t window = g.window();
    return std::pair(sum_of[a / window], sum_of[a % window]) <
           std::pair(sum_of[b / window], sum_of[b % window]);
  });
  g.places.resize(sorted.size());
  for (size_t i = 0; i < sorted.size(); ++i) g.places[sorted[i]] = static_cast<int64_t>(i);
}

int64_t Schedule::InVectorOffset(int64_t vector, int64_t block_shift) const {
  const int64_t channel = vector * vector_floats;
  return ImageStrides(in, workload.ic, workload.ih, workload.iw).ChannelOffset(channel, block_shift);
}

int64_t Schedule::OutVectorOffset(int64_t vector, int64_t block_shift) const {
  const int64_t channel = vector * vector_floats;
  return ImageStrides(out, workload.oc, workload.oh, workload.ow).ChannelOffset(channel, block_shift);
}

TaskGrid GridOfBlocks(const Schedule& g, int64_t channel_parts) {
  // A block takes block_tiles * tile units where a row of pixels has as many units as a row of tiles has
  // tiles. Blocks that are of several images have no rows, nor do tasks that are not image by image.
  const int64_t images = g.workload.mb, image_tiles = g.rows * g.columns;
  TaskGrid grid = {.channels = channel_parts, .rows = CeilDiv(g.tiles, g.block_tiles)};
  if (images > 1) {
    if (channel_parts > 1 || image_tiles % g.block_tiles != 0) return grid;
    grid.images = images;
    grid.rows = image_tiles / g.block_tiles;
  }
  grid.height = g.workload.oh;
  grid.row_units = g.columns;
  grid.part_units = g.block_tiles * g.config.tile;
  grid.exact = g.block_tiles % g.columns == 0;
  grid.row_group = g.config.tile;
  return grid;
}

TaskGrid GridOf(const Schedule& g) {
  if (g.config.partition == Partition::kTileBlocks) return GridOfBlocks(g, 1);
  TaskGrid grid = {.channels = g.out_vectors, .rows = g.workload.mb * g.rows, .part_units = g.config.tile};
  if (g.workload.mb == 1) grid.height = g.workload.oh;
  return grid;
}

LoopFeatures FeaturesOf(const Schedule& g) {
  constexpr double kBytes = sizeof(float);
  const bool blocks = g.config.partition == Partition::kTileBlocks;
  const ConvWorkload product = ProductOf(g.workload, g.block_tiles, g.vector_floats);
  const auto elements = static_cast<double>(g.elements());
  const auto task_tiles = static_cast<double>(g.block_tiles);
  const auto in_floats = static_cast<double>(g.in_vectors * g.vector_floats);
  const auto out_floats = static_cast<double>(g.out_vectors * g.vector_floats);
  LoopFeatures f = direct::FeaturesOf(direct::MakeSchedule(product, g.config.product, g.vector_floats));
  // A transform adds and multiplies each element of a window some `window` times along either axis.
  const double transforms = 2.0 * elements * g.window() * (in_floats + out_floats);
  f.flops = static_cast<double>(g.tiles) * (2.0 * elements * in_floats * out_floats + transforms);
  const auto factor_bytes = static_cast<double>(g.config.product.weight_bytes());
  f.weight_bytes = elements * in_floats * out_floats * factor_bytes;
  f.scratch_bytes = static_cast<double>(g.scratch_bytes);
  if (blocks) {
    f.tasks = std::ceil(static_cast<double>(g.tiles) / task_tiles);
    f.task_input_bytes = task_tiles * elements * in_floats * factor_bytes;
    f.task_weight_bytes = f.weight_bytes;
    f.task_output_bytes =
        task_tiles * static_cast<double>(g.config.tile * g.config.tile) * out_floats * kBytes;
  } else if (g.config.partition == Partition::kElements) {
    f.tasks *= elements;
  } else {
    f.task_input_bytes *= elements;
    f.task_weight_bytes *= elements;
    f.task_output_bytes *= elements;
  }
  return f;
}

double CyclesOf(const Schedule& g, const Target& cpu) {
  constexpr double kTransform = 6;  // of a vector of a window's element: additions, a load, a store
  const auto elements = static_cast<double>(g.elements()), cores = static_cast<double>(cpu.cores);
  const ConvWorkload product = ProductOf(g.workload, g.block_tiles, g.vector_floats);
  const double products = elements * direct::RowCycles(product, g.config.product, g.vector_floats);
  const double transforms = kTransform * elements * static_cast<double>(g.block_tiles) *
                            static_cast<double>(g.in_vectors + g.out_vectors);
  const double weights = elements * static_cast<double>(product.ic) * static_cast<double>(product.oc) *
                         static_cast<double>(g.config.product.weight_bytes());
  const double first_read = weights / kMemoryBytesPerCycle, read = weights / kL3BytesPerCycle;
  if (g.config.partition != Partition::kTileBlocks) {  // what one stage writes the next one reads
    const double scratch = 2.0 * static_cast<double>(g.scratch_bytes) / kL3BytesPerCycle;
    return (products + transforms + scratch + read) / cores + first_read;
  }
  const auto tasks = static_cast<double>(CeilDiv(CeilDiv(g.tiles, g.block_tiles), cpu.cores));
  const bool stays = weights <= static_cast<double>(cpu.l2_bytes) / 2;
  return tasks * (products + transforms + (stays ? 0 : read)) + first_read;
}

// A plain sum's bound counts `terms` roundings in a row, which random ones stay below by far: by sqrt(terms)
// / 12 at twelve standard deviations. That leaves 4 / terms of the amplification to allow for.
double ErrorFactor(const ConvWorkload& w, const Config& config) {
  const auto terms = static_cast<double>(w.ic / w.g * w.kh * w.kw);
  const double amplification = 4 * ErrorAmplification(TransformsOf(config.Get("tile"), w.sh));
  const double of_sums = 1 + amplification / terms;
  if (ProductFactors(config) == direct::Factors::kF32) return of_sums;
  // Both factors of each product are rounded, once; a plain sum's bound is of random roundings by
  // sqrt(terms).
  constexpr double kFactors = 2 * 0x1p-8 / std::numeric_limits<float>::epsilon();
  return of_sums + kFactors * (1 + amplification / std::sqrt(terms)) / terms;
}

// A plain sum's are three roundings: of inputs and outputs as they are stored, and of the weights. Products
// of transformed windows have two, of both factors, amplified.
double Bf16Noise(const ConvWorkload& w, const Config& config) {
  if (ProductFactors(config) == direct::Factors::kF32) return 1;
  return (2 + 2 * std::pow(ErrorAmplification(TransformsOf(config.Get("tile"), w.sh)), 2)) / 3;
}

namespace {

// A stage of its own: the loop over vectors of channels and the one over rows of tiles are tasks.
LoopPart TransformStage(const Schedule& g, LoopPart part, std::string_view channels, int64_t vectors) {
  part.loops = {LoopOver(channels, vectors * g.vector_floats, g.vector_floats, LoopKind::kTasks),
                LoopOver("tiles", g.tiles, g.columns, LoopKind::kTasks, "rows of tiles"),
                LoopOver("tiles", g.columns, 1, LoopKind::kLoop),
                LoopOver(channels, g.vector_floats, 1, LoopKind::kVector)};
  return part;
}

// Inside a task that takes a block of tiles through all parts.
LoopPart TransformBlock(const Schedule& g, LoopPart part, std::string_view channels, int64_t vectors) {
  part.loops = {LoopOver(channels, vectors * g.vector_floats, g.vector_floats, LoopKind::kLoop),
                LoopOver("tiles", g.block_tiles, 1, LoopKind::kLoop),
                LoopOver(channels, g.vector_floats, 1, LoopKind::kVector)};
  return part;
}

LoopPart Products(const Schedule& g, const direct::Schedule& product) {
  const Partition partition = g.config.partition;
  LoopPart part;
  part.title = "multiply: one matrix product for each element xi of the windows";
  int64_t widest = 1;
  for (const direct::Chunk& chunk : product.chunks) widest = std::max<int64_t>(widest, chunk.vectors);
  const auto xi = [&](LoopKind kind) { return LoopOver("xi", g.elements(), 1, kind); };
  const auto chunks = [&](LoopKind kind) {
    return LoopOver("oc", product.workload.oc, widest * g.vector_floats, kind, "chunks of channels");
  };
  switch (partition) {
    case Partition::kTileBlocks:
      part.loops = {xi(LoopKind::kLoop), chunks(LoopKind::kLoop)};
      break;
    case Partition::kElements:
      part.loops = {xi(LoopKind::kTasks), chunks(LoopKind::kTasks)};
      break;
    case Partition::kOutChannels:
      part.loops = {chunks(LoopKind::kTasks), xi(LoopKind::kLoop)};
      break;
  }
  part.loops.push_back(direct::PassLoop(product));
  const std::vector<Loop> row = direct::RowLoops(product, "tiles");
  part.loops.insert(part.loops.end(), row.begin(), row.end());
  part.body = direct::RowBody(product);
  part.covers = static_cast<double>(g.config.tile * g.config.tile * g.workload.kh * g.workload.kw) /
                static_cast<double>(g.elements());
  return part;
}

}  // namespace

LoopNest NestOf(const Schedule& g) {
  const direct::Schedule product = direct::MakeSchedule(ProductOf(g.workload, g.block_tiles, g.vector_floats),
                                                        g.config.product, g.vector_floats);
  const std::string window = fmt::format("{0}x{0}", g.window()), tile = fmt::format("{0}x{0}", g.config.tile);
  LoopPart in, out;
  in.title = fmt::format("transform the input: windows of {}, a tile of {} outputs each", window, tile);
  in.body = fmt::format("V[xi] = {} elements of the transformed window", g.elements());
  in.covers = out.covers = 0;
  out.title = "transform back";
  out.body =
      fmt::format("{} outputs = transformed sums{}", tile, g.config.stream ? ", stored past the caches" : "");
  LoopNest nest;
  if (g.config.partition == Partition::kTileBlocks) {
    nest.tasks = {LoopOver("tiles", g.tiles, g.block_tiles, LoopKind::kTasks,
                           fmt::format("blocks of {} {} tiles in scratch", g.block_tiles, tile))};
    nest.parts = {TransformBlock(g, std::move(in), "ic", g.in_vectors), Products(g, product),
                  TransformBlock(g, std::move(out), "oc", g.out_vectors)};
  } else {
    nest.parts = {TransformStage(g, std::move(in), "ic", g.in_vectors), Products(g, product),
                  TransformStage(g, std::move(out), "oc", g.out_vectors)};
  }
  direct::SetTileBytes(product, nest);
  return nest;
}

}  // namespace tilesmith::winograd
