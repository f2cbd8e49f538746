#include "templates/winograd/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <vector>

#include "templates/base/conv_template.h"
#include "templates/base/image_strides.h"
#include "templates/base/schedule_template.h"
#include "templates/direct/row_product.h"
#include "templates/winograd/schedule.h"
#include "templates/winograd/weights.h"

namespace tilesmith {
namespace winograd {
namespace {

constexpr int64_t kMaxBlockScratchBytes = 16LL << 20;   // per thread: beyond, stages do as well
constexpr int64_t kMaxStageScratchBytes = 256LL << 20;  // whatever the batch

// Blocks of whole vectors; NHWC where the channels fill vectors.
std::vector<int64_t> BlockValues(int64_t channels, int64_t vector) {
  std::vector<int64_t> blocks = BlocksOfVectors(channels, vector);
  if (channels % vector == 0) blocks.push_back(0);
  return blocks;
}

// Blocks near what first- and second-level caches hold, and those that cut the batch evenly among a few
// threads.
std::vector<int64_t> TileBlockValues(const ConvWorkload& w) {
  constexpr int64_t kMax = 256;
  std::set<int64_t> values = {0};
  for (int64_t tile : TileValues(w)) {
    const int64_t tiles = CountTiles(w, tile);
    for (int64_t block : {7, 10, 12, 14, 16, 20, 24, 28, 32, 42, 48, 56, 64, 84, 98, 112, 128, 196, 256}) {
      if (block <= tiles) values.insert(block);
    }
    for (int64_t blocks : {1, 2, 4, 6, 8, 12, 16}) {
      const int64_t block = (tiles + blocks - 1) / blocks;
      if (block <= kMax) values.insert(block);
    }
  }
  return {values.begin(), values.end()};
}

// Whether what one run writes is gone from the caches before anyone can read it. Narrower vectors than a
// cache line cannot be streamed.
bool CanStream(const ConvWorkload& w, const Target& cpu) {
  return cpu.isa == Isa::kAvx512 && cpu.l3_bytes > 0 &&
         w.mb * w.oc * w.oh * w.ow * kFloatBytes > cpu.l3_bytes;
}

bool MultipliesBf16(const Target& cpu) {
  return direct::FactorsOn(cpu, direct::Factors::kBf16) == direct::Factors::kBf16;
}

// Only the smallest tile's errors stay near those of a plain sum of rounded factors: 2.3 times them, where a
// tile of 4 has 7.
std::string WhyTypesInvalid(const WinogradConfig& c) {
  if (!c.types.narrow()) return "nothing is stored in bf16: that is the winograd template";
  if (c.stream && c.types.out != DataType::kF32) return "outputs in bf16 are not streamed";
  if (c.product.factors == direct::Factors::kF32) return "";
  if (c.tile > 2) return fmt::format("tile {} with products in bf16, whose errors it multiplies", c.tile);
  return "";
}

std::string WhyInvalid(const ConvWorkload& w, const Target& cpu, const WinogradConfig& c) {
  const bool blocks = c.partition == Partition::kTileBlocks;
  if (blocks != (c.tile_block > 0)) return "tile_block belongs to partition 0, and is 0 otherwise";
  if (cpu.reproducible && c.tile != OrderTile(w))
    return fmt::format("tile {} is not reproducible, tile {} is", c.tile, OrderTile(w));
  const int64_t tiles = CountTiles(w, c.tile);
  if (c.tile_block > tiles) return fmt::format("tile_block {} exceeds the {} tiles", c.tile_block, tiles);
  const int64_t scratch = ScratchFor(w, c, blocks ? c.tile_block : tiles, cpu.vector_floats()).bytes();
  const int64_t most = blocks ? kMaxBlockScratchBytes : kMaxStageScratchBytes;
  if (scratch > most) return fmt::format("{} MiB of scratch (at most {})", scratch >> 20, most >> 20);
  return direct::WhyProductInvalid(ProductOf(w, blocks ? c.tile_block : tiles, cpu.vector_floats()),
                                   c.product, cpu);
}

// Whole-batch stages (0) for few tiles and weights so large that they had better be read once; otherwise the
// block that spreads most evenly over the cores among those whose scratch fits the second-level cache.
int64_t DefaultTileBlock(const ConvWorkload& w, const Target& cpu, int64_t tile, direct::Factors factors) {
  constexpr int64_t kFewTiles = 64, kManyWeightBytes = 4 << 20;
  const int64_t tiles = CountTiles(w, tile);
  const int64_t window = WindowOf(tile, w.sh);
  WinogradConfig config;
  config.tile = tile;
  config.product.factors = factors;
  const int64_t weight_bytes = window * window * w.ic * w.oc * config.product.weight_bytes();
  if (tiles <= kFewTiles && weight_bytes > kManyWeightBytes) return 0;
  int64_t best = 0, least = 0;
  for (int64_t block : TileBlockValues(w)) {
    if (block == 0 || block > tiles) continue;
    const int64_t bytes = ScratchFor(w, config, block, cpu.vector_floats()).bytes();
    const int64_t blocks = (tiles + block - 1) / block;
    const int64_t slowest = (blocks + cpu.cores - 1) / cpu.cores * block;  // tiles of the busiest core
    if (best > 0 && (bytes > cpu.l2_bytes || slowest > least)) continue;
    best = block;
    least = slowest;
  }
  return best;
}

}  // namespace

direct::Factors ProductFactors(const Config& config) {
  const std::optional<int64_t> type = config.Find("product_type");
  return type == static_cast<int64_t>(DataType::kBf16) ? direct::Factors::kBf16 : direct::Factors::kF32;
}

WinogradConfig ReadConfig(const Config& config, const Target& cpu) {
  WinogradConfig c;
  c.ic_block = config.Get("ic_block");
  c.oc_block = config.Get("oc_block");
  c.tile = config.Get("tile");
  c.partition = static_cast<Partition>(config.Get("partition"));
  c.tile_block = config.Get("tile_block");
  c.stream = config.Get("stream") != 0;
  c.product = direct::ReadProductConfig(config, cpu, ProductFactors(config));
  if (config.Find("in_type")) c.types = ReadTypes(config);
  c.product.ic_pass = kChannelsPerPass;
  c.product.sums_passes = true;
  return c;
}

namespace {

std::vector<Knob> Knobs(const ConvWorkload& w, const Target& cpu) {
  const int64_t vector = cpu.vector_floats();
  std::vector<Knob> knobs = {
      {"ic_block", BlockValues(w.ic, vector), "x of the input layout NCHW[x]c; 0 is NHWC"},
      {"oc_block", BlockValues(w.oc, vector), "x of the output layout NCHW[x]c; 0 is NHWC"},
      {"tile", TileValues(w), "m of F(m x m, 3 x 3): fewer multiplications, larger rounding errors"},
      {"partition", {0, 1, 2}, "tasks: 0 blocks of tiles, 1 elements of the tiles, 2 output channels"},
      {"tile_block", TileBlockValues(w), "partition 0: tiles per task"},
  };
  for (Knob& knob : direct::ProductKnobs(cpu, CountTiles(w, 2), "tile")) knobs.push_back(std::move(knob));
  knobs.push_back({"stream", CanStream(w, cpu) ? std::vector<int64_t>{0, 1} : std::vector<int64_t>{0},
                   "1: outputs larger than the caches bypass them"});
  return knobs;
}

ConfigSpace Space(const ConvWorkload& w, const Target& cpu) {
  return ConfigSpace(Knobs(w, cpu),
                     [w, cpu](const Config& config) { return WhyInvalid(w, cpu, ReadConfig(config, cpu)); });
}

ConfigSpace Bf16Space(const ConvWorkload& w, const Target& cpu) {
  std::vector<Knob> knobs = Knobs(w, cpu);
  for (Knob& knob : TypeKnobs()) knobs.push_back(std::move(knob));
  Knob products = TypeKnob("product_type", "what is multiplied");
  if (!MultipliesBf16(cpu)) std::erase(products.values, static_cast<int64_t>(DataType::kBf16));
  knobs.push_back(std::move(products));
  return ConfigSpace(std::move(knobs), [w, cpu](const Config& config) {
    const WinogradConfig c = ReadConfig(config, cpu);
    const std::string reason = WhyTypesInvalid(c);
    return reason.empty() ? WhyInvalid(w, cpu, c) : reason;
  });
}

struct Preset {
  Config config;
  double cycles = std::numeric_limits<double>::infinity();
};

// The fastest by its estimate, with these values of the knobs of types that `space` has.
Preset PresetWith(const Config& types, const ConvWorkload& w, const Target& cpu, const ConfigSpace& space) {
  // Errors and scratch speak against more.
  constexpr int64_t kMaxTile = 4;
  const direct::Factors factors = ProductFactors(types);
  Preset best;
  for (const int64_t tile : TileValues(w)) {
    if (tile > kMaxTile) continue;
    const int64_t tiles = CountTiles(w, tile);
    // The smallest block is always valid.
    for (const int64_t tile_block : {DefaultTileBlock(w, cpu, tile, factors), int64_t{1}}) {
      const int64_t positions = tile_block > 0 ? tile_block : tiles;
      Config config = types;
      config.Set("ic_block", cpu.vector_floats());
      config.Set("oc_block", cpu.vector_floats());
      config.Set("tile", tile);
      config.Set("tile_block", tile_block);
      config.Set("partition",
                 static_cast<int64_t>(tile_block > 0 ? Partition::kTileBlocks : Partition::kElements));
      config.Set("prefetch", tile_block > 0 ? 0 : 64);
      config.Set("stream", CanStream(w, cpu) && !types.Find("out_type"));
      const ConvWorkload product = ProductOf(w, positions, cpu.vector_floats());
      direct::SetProductTile(direct::DefaultProductTile(product, kChannelsPerPass, cpu, factors), config);
      if (!space.WhyInvalid(config).empty()) continue;
      const double cycles = CyclesOf(MakeSchedule(w, ReadConfig(config, cpu), cpu.vector_floats()), cpu);
      if (cycles < best.cycles) best = {config, cycles};
      break;
    }
  }
  return best;
}

// A config without tuning.
Config Default(const ConvWorkload& w, const Target& cpu) {
  return PresetWith({}, w, cpu, Space(w, cpu)).config;
}

Config Bf16Default(const ConvWorkload& w, const Target& cpu) {
  const ConfigSpace space = Bf16Space(w, cpu);
  Preset best;
  for (const DataType product : {DataType::kF32, DataType::kBf16}) {
    if (product == DataType::kBf16 && !MultipliesBf16(cpu)) continue;
    Config types;
    SetTypes({DataType::kBf16, DataType::kBf16}, types);
    types.Set("product_type", static_cast<int64_t>(product));
    Preset preset = PresetWith(types, w, cpu, space);
    if (preset.cycles < best.cycles) best = std::move(preset);
  }
  return best.config;
}

Support Supports(const ConvWorkload& w, const Target&) {
  // Below this the transforms cost more than the multiplications they save.
  constexpr int64_t kFewestChannels = 8;
  if (w.kh != 3 || w.kw != 3) return Support::No(fmt::format("a {}x{} kernel, not 3x3", w.kh, w.kw));
  if (w.sh != w.sw || w.sh > 2) return Support::No(fmt::format("stride {}x{}, neither 1 nor 2", w.sh, w.sw));
  if (w.dh != 0 || w.dw != 0) return Support::No("a dilated kernel");
  if (w.g != 1) return Support::No(fmt::format("{} groups, not 1", w.g));
  if (std::min(w.ic, w.oc) < kFewestChannels) {
    return Support::No(
        fmt::format("{} -> {} channels: with fewer than {} the transforms cost more than they save", w.ic,
                    w.oc, kFewestChannels));
  }
  return FitsDisplacements(w);
}

Schedule ReadSchedule(const ConvWorkload& w, const Config& config, const Target& cpu) {
  return MakeSchedule(w, ReadConfig(config, cpu), cpu.vector_floats());
}

}  // namespace
}  // namespace winograd

const ConvTemplate& WinogradTemplate() {
  static const GeneratedTemplate<winograd::Schedule> instance({.name = "winograd",
                                                               .supports = winograd::Supports,
                                                               .preset_decides = true,
                                                               .space = winograd::Space,
                                                               .preset = winograd::Default,
                                                               .read = winograd::ReadSchedule,
                                                               .shifts_blocks = true,
                                                               .order = Order::kWinograd,
                                                               .error_factor = winograd::ErrorFactor,
                                                               .cycles = winograd::CyclesOf});
  return instance;
}

const ConvTemplate& WinogradBf16Template() {
  static const GeneratedTemplate<winograd::Schedule> instance({.name = "winograd_bf16",
                                                               .type = DataType::kBf16,
                                                               .supports = winograd::Supports,
                                                               .preset_decides = true,
                                                               .space = winograd::Bf16Space,
                                                               .preset = winograd::Bf16Default,
                                                               .read = winograd::ReadSchedule,
                                                               .shifts_blocks = true,
                                                               .type_knobs = {"in_type", "out_type"},
                                                               .error_factor = winograd::ErrorFactor,
                                                               .bf16_noise = winograd::Bf16Noise,
                                                               .cycles = winograd::CyclesOf});
  return instance;
}

}  // namespace tilesmith
