#include "templates/direct/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "layouts/base/check.h"
#include "layouts/base/sizes.h"
#include "templates/base/config.h"
#include "templates/base/conv_template.h"
#include "templates/base/row_tiles.h"
#include "templates/base/schedule_template.h"
#include "templates/direct/schedule.h"

namespace tilesmith {
namespace direct {
namespace {

// Input that a task prepares should stay in a second-level cache. One row is always allowed.
constexpr int64_t kMaxPreparedBytes = 1 << 20;

void AddOnce(std::vector<int64_t>& values, int64_t value) {
  if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
}

// Whether every group starts on a block boundary, or lies inside one block.
bool GroupsFitBlock(int64_t channels_per_group, int64_t groups, int64_t block) {
  if (groups == 1 || block == 0) return true;
  return channels_per_group % block == 0 || block % channels_per_group == 0;
}

std::vector<int64_t> InputBlocks(Factors factors, const ConvWorkload& w, const Target& cpu) {
  constexpr int64_t kFewChannels = 16;  // few enough that reading planes directly can pay
  std::vector<int64_t> blocks;
  for (int64_t block : {1, 4, 8, 16, 32, 64}) {
    if (block == 4 && cpu.vector_floats() != 4) continue;
    if (block == 1 && (w.ic > kFewChannels || factors == Factors::kBf16)) continue;  // no pairs in planes
    if (block >= 2 * w.ic && block > 8) continue;
    if (GroupsFitBlock(w.ic / w.g, w.g, block)) blocks.push_back(block);
  }
  blocks.push_back(0);
  return blocks;
}

std::vector<int64_t> OutputBlocks(const ConvWorkload& w, const Target& cpu) {
  // Groups that end within a vector: only NHWC lets the next one start at any channel.
  if (w.g > 1 && w.oc / w.g % cpu.vector_floats() != 0) return {0};
  std::vector<int64_t> blocks = BlocksOfVectors(w.oc, cpu.vector_floats());
  blocks.push_back(0);
  return blocks;
}

std::vector<int64_t> FlatWidths(const ConvWorkload& w) {
  if (!CanFlatten(w)) return {0};
  constexpr int64_t kNarrowest = 7, kMax = 12;
  const int64_t pixels = w.ih * w.iw;
  std::vector<int64_t> widths = {0};
  std::vector<int64_t> divisors;
  for (int64_t d = 1; d * d <= pixels; ++d) {
    if (pixels % d != 0) continue;
    for (const int64_t divisor : {d, pixels / d}) {
      if (divisor >= kNarrowest && divisor < pixels) AddOnce(divisors, divisor);
    }
  }
  std::sort(divisors.begin(), divisors.end());
  const size_t step = divisors.size() / kMax + 1;
  for (size_t i = 0; i < divisors.size(); i += step) widths.push_back(divisors[i]);
  if (w.iw != pixels) AddOnce(widths, pixels);
  return widths;
}

std::vector<int64_t> RowCounts(int64_t most) {
  std::vector<int64_t> rows = UpTo(most, {1, 2, 3, 4, 5, 7, 8, 14, 16, 28});
  AddOnce(rows, (most + 1) / 2);
  AddOnce(rows, most);
  std::sort(rows.begin(), rows.end());
  return rows;
}

std::string WhyTypesInvalid(const ConvWorkload& w, const DirectConfig& c) {
  if (const std::string reason = WhyBroadcastInvalid(c, w.ic / w.g); !reason.empty()) return reason;
  if (c.broadcast == Broadcast::kMixed && c.weight_type != DataType::kF32)
    return "mixed broadcast multiplies weights in memory, which have to be f32";
  if (c.ic_pass > 0 && c.out_type != DataType::kF32)
    return "passes keep their sums in the output, which has to be f32";
  if (Prepares(w, c) && !c.oc_inner) return "prepared rows are for neighbouring tasks: oc_inner has to be 1";
  return "";
}

// What is wrong with a register tile, as WhyTileInvalid formats it; null when nothing is. Searches ask this
// of every tile there is, and want no text.
const char* TileFault(const DirectConfig& c, int64_t width, int64_t outputs, const Target& cpu) {
  if (c.width_tile > width) return "width_tile {width_tile} exceeds the row of {width}";
  if (c.balance_tiles && width % c.width_tile == 0) return "balance_tiles changes nothing: tiles are even";
  if (c.oc_vectors * cpu.vector_floats() >= outputs + cpu.vector_floats())
    return "oc_vectors {oc_vectors} exceeds the output channels";
  if (c.broadcast == Broadcast::kMixed && c.oc_vectors == 1)
    return "mixed broadcast needs two weight vectors";
  const RegisterPlan plan = PlanRegisters(static_cast<int>(c.oc_vectors), static_cast<int>(c.width_tile),
                                          c.broadcast, cpu.vector_registers());
  return plan.fits ? nullptr : "register tile {oc_vectors} x {width_tile} does not fit {registers} registers";
}

}  // namespace

Knob BroadcastKnob(const Target& cpu) {
  std::vector<int64_t> modes = {1};
  if (cpu.isa == Isa::kAvx512) modes = {0, 1, 2};
  if (cpu.isa == Isa::kAvx2) modes = {1, 2};
  return {"broadcast", std::move(modes),
          "input element: 0 operand of each FMA, 1 in a register, 2 and last weights from memory"};
}

std::string WhyBroadcastInvalid(const DirectConfig& c, int64_t channels) {
  if (c.broadcast != Broadcast::kEmbedded || channels % c.step_channels() == 0) return "";
  return "embedded broadcast needs whole pairs of channels";
}

bool IsTileValid(const DirectConfig& c, int64_t width, int64_t outputs, const Target& cpu) {
  return TileFault(c, width, outputs, cpu) == nullptr;
}

std::string WhyTileInvalid(const DirectConfig& c, int64_t width, int64_t outputs, const Target& cpu) {
  const char* fault = TileFault(c, width, outputs, cpu);
  if (fault == nullptr) return "";
  return fmt::format(fmt::runtime(fault), fmt::arg("width_tile", c.width_tile), fmt::arg("width", width),
                     fmt::arg("oc_vectors", c.oc_vectors), fmt::arg("registers", cpu.vector_registers()));
}

std::string WhyInvalid(const ConvWorkload& w, const Target& cpu, const DirectConfig& c) {
  const int64_t width = c.flat_width > 0 ? c.flat_width : w.ow;
  const int64_t height = c.flat_width > 0 ? w.ih * w.iw / c.flat_width : w.oh;
  const int64_t channels = w.ic / w.g;
  const int64_t block = c.Steps(c.ic_block == 0 ? channels : std::min(c.ic_block, channels));
  if (c.flat_width == w.iw && c.flat_width > 0) return "flat_width is the row's own width";
  if (c.rows > height) return fmt::format("rows {} exceeds the {} there are", c.rows, height);
  if (const std::string reason = WhyTileInvalid(c, width, w.oc / w.g, cpu); !reason.empty()) return reason;
  if (c.broadcast == Broadcast::kEmbedded && cpu.isa != Isa::kAvx512)
    return "embedded broadcast needs AVX-512";
  if (c.ic_unroll > block && c.ic_unroll > 1)
    return fmt::format("ic_unroll {} exceeds the block", c.ic_unroll);
  if (c.ic_pass >= channels) return fmt::format("ic_pass {} is all channels: write 0", c.ic_pass);
  if (c.ic_pass > 0 && c.ic_block > 0 && c.ic_pass % c.ic_block != 0) return "ic_pass splits a block";
  if (const std::string reason = WhyTypesInvalid(w, c); !reason.empty()) return reason;
  const int64_t prepared = Prepares(w, c) && c.rows > 1 ? PreparedBytes(w, c) : 0;
  if (prepared > kMaxPreparedBytes) {
    return fmt::format("prepares {} KiB of input per task (at most {})", prepared >> 10,
                       kMaxPreparedBytes >> 10);
  }
  const int64_t code = EstimateCodeBytes(w, c, cpu.vector_floats());
  if (code > kMaxCodeBytes) return fmt::format("some {} bytes of code (at most {})", code, kMaxCodeBytes);
  return "";
}

DirectConfig ReadTile(const Config& config) {
  DirectConfig c;
  c.oc_vectors = config.Get("oc_vectors");
  c.width_tile = config.Get("width_tile");
  c.balance_tiles = config.Get("balance_tiles") != 0;
  c.broadcast = static_cast<Broadcast>(config.Get("broadcast"));
  c.ic_unroll = config.Get("ic_unroll");
  c.prefetch = config.Get("prefetch");
  return c;
}

DirectConfig ReadConfig(const Config& config, const Target& cpu) {
  DirectConfig c = ReadTile(config);
  c.ic_block = config.Get("ic_block");
  c.oc_block = config.Get("oc_block");
  c.ic_pass = config.Get("ic_pass");
  c.rows = config.Get("rows");
  c.oc_inner = config.Get("oc_inner") != 0;
  c.flat_width = config.Get("flat_width");
  if (config.Find("in_type")) {
    c.factors = FactorsOn(cpu, Factors::kBf16);
    const StoredTypes types = ReadTypes(config);
    c.in_type = types.in;
    c.out_type = types.out;
    if (const auto type = config.Find("weight_type")) c.weight_type = static_cast<DataType>(*type);
  }
  return c;
}

namespace {

ConfigSpace SpaceOf(Factors factors, const ConvWorkload& w, const Target& cpu) {
  const int64_t registers = cpu.vector_registers();
  const std::vector<int64_t> flat_widths = FlatWidths(w);
  const int64_t widest = std::max(w.ow, *std::max_element(flat_widths.begin(), flat_widths.end()));
  const int64_t tallest = flat_widths.size() > 1 ? std::max(w.oh, w.ih * w.iw / flat_widths[1]) : w.oh;
  std::vector<int64_t> passes = {0};
  for (int64_t channels : {16, 32, 64, 128, 256, 512}) {
    if (channels < w.ic / w.g) passes.push_back(channels);
  }
  std::vector<Knob> knobs = {
      {"ic_block", InputBlocks(FactorsOn(cpu, factors), w, cpu),
       "x of the input layout NCHW[x]c; 0 is NHWC, 1 is NCHW"},
      {"oc_block", OutputBlocks(w, cpu), "x of the output layout NCHW[x]c; 0 is NHWC"},
      {"oc_vectors", UpTo(8, {1, 2, 3, 4, 6}), "register tile: vectors of output channels"},
      {"width_tile",
       UpTo(std::min(widest, registers - 2), {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 13, 14, 18, 24, 28}),
       "register tile: output positions"},
      {"balance_tiles", {0, 1}, "1: tiles of a row are equally wide"},
      BroadcastKnob(cpu),
      {"ic_unroll", UpTo(std::max<int64_t>(w.ic / w.g, 1), {1, 2, 4, 8, 16}), "input channels unrolled"},
      {"ic_pass", passes, "input channels per accumulation pass; 0 is all"},
      {"rows", RowCounts(tallest), "output rows per task"},
      {"oc_inner", w.pre.any() ? std::vector<int64_t>{1} : std::vector<int64_t>{0, 1},
       "1: neighbouring tasks share rows, 0: weights"},
      {"flat_width", flat_widths, "1x1: width of the rows an image is recut into; 0 keeps its own"},
      {"prefetch", {0, 16, 32, 64, 128}, "weight vectors fetched ahead"},
  };
  const bool types = factors == Factors::kBf16;
  if (types) {
    for (Knob& knob : TypeKnobs()) knobs.push_back(std::move(knob));
    if (FactorsOn(cpu, factors) == Factors::kF32)
      knobs.push_back(TypeKnob("weight_type", "how weights are packed, which are multiplied in f32"));
  }
  return ConfigSpace(std::move(knobs), [w, cpu, types](const Config& config) -> std::string {
    const DirectConfig c = ReadConfig(config, cpu);
    if (types && !c.has_types()) return "nothing is stored in bf16: that is the direct template";
    return WhyInvalid(w, cpu, c);
  });
}

// What a default is for: any network, or one whose threads keep the rows that they wrote; kAny: to see that
// there is one.
enum class DefaultFor { kBlocks, kRows, kAny };

const std::vector<int64_t>& ValuesOf(const ConfigSpace& space, std::string_view knob) {
  return std::ranges::find(space.knobs(), knob, &Knob::name)->values;
}

int64_t Pick(const std::vector<int64_t>& values, int64_t wanted) {
  return std::ranges::find(values, wanted) != values.end() ? wanted : values.front();
}

Config ToConfig(const DirectConfig& c) {
  Config config;
  config.Set("ic_block", c.ic_block);
  config.Set("oc_block", c.oc_block);
  config.Set("oc_vectors", c.oc_vectors);
  config.Set("width_tile", c.width_tile);
  config.Set("balance_tiles", c.balance_tiles);
  config.Set("broadcast", static_cast<int64_t>(c.broadcast));
  config.Set("ic_unroll", c.ic_unroll);
  config.Set("ic_pass", c.ic_pass);
  config.Set("rows", c.rows);
  config.Set("oc_inner", c.oc_inner);
  config.Set("flat_width", c.flat_width);
  config.Set("prefetch", c.prefetch);
  if (c.has_types()) SetTypes({c.in_type, c.out_type}, config);
  if (c.has_types() && c.factors == Factors::kF32)
    config.Set("weight_type", static_cast<int64_t>(c.weight_type));
  return config;
}

// For rows of a dense layer, pixels of one row of an image, completes `c`; nullopt where nothing is valid. A
// tile of more than six of them would miss the first-level cache where neighbours are a multiple of 4 KiB
// apart. Of few pixels the time is that of reading the weights: then as many vectors as there are registers,
// but chunks for all cores.
std::optional<DirectConfig> WithRowsTile(const ConvWorkload& w, const Target& cpu, const ConfigSpace& space,
                                         DirectConfig c) {
  constexpr int64_t kWidest = 6, kTasksPerCore = 4, kFewestRows = 48;
  const int64_t vectors_of_outputs = CeilDiv(w.oc, cpu.vector_floats()), cache = cpu.l2_bytes / 2;
  const int64_t bytes = c.in_bytes();
  c.rows = 1;
  if (w.iw * w.ic * bytes > cache && w.oc * w.ic * bytes <= cache) {
    for (const int64_t width : ValuesOf(space, "flat_width")) {
      if (width < kFewestRows || width == w.iw || width * w.ic * bytes > cache) continue;
      c.flat_width = std::max(width, c.flat_width);
      c.oc_inner = true;
    }
  }
  const int64_t width = c.flat_width > 0 ? c.flat_width : w.iw;
  c.width_tile = std::min(width, kWidest);
  c.balance_tiles = width % c.width_tile != 0;
  for (const int64_t unroll : {4, 2, 1}) {
    c.ic_unroll = unroll;
    for (const int64_t vectors : {6, 4, 3, 2, 1}) {
      const int64_t tasks = CeilDiv(vectors_of_outputs, vectors) * (w.iw / width);
      if (tasks < kTasksPerCore * cpu.cores && vectors > 2) continue;
      c.oc_vectors = vectors;
      if (WhyInvalid(w, cpu, c).empty()) return c;
    }
  }
  return std::nullopt;
}

// Input channels of a pass: few enough for the weights of a chunk to stay in the second-level cache beside
// inputs and outputs.
int64_t DefaultPass(const ConvWorkload& w, const DirectConfig& c, const Target& cpu,
                    const std::vector<int64_t>& passes) {
  const int64_t channels = w.ic / w.g;
  if (c.out_type != DataType::kF32) return 0;
  const int64_t channel_bytes = c.oc_vectors * cpu.vector_floats() * w.kh * w.kw * c.weight_bytes();
  const int64_t room = std::max<int64_t>(cpu.l2_bytes / 8 / channel_bytes, 1);
  const int64_t even = CeilDiv(channels, CeilDiv(channels, room));
  int64_t largest = 0;
  for (const int64_t pass : passes) {
    if (c.ic_block != 0 && pass % c.ic_block != 0) continue;
    if (pass >= even) return pass;
    largest = std::max(largest, pass);
  }
  return channels * channel_bytes > cpu.l2_bytes / 2 ? largest : 0;
}

// Whether the pixels of a tile, in NHWC, that are a multiple of 4 KiB apart leave room beside them in the
// sets of a first-level cache that they share.
bool TileSuitsRows(const ConvWorkload& w, const DirectConfig& c) {
  constexpr int64_t kSetsBytes = 4096, kMaxInSet = 6;
  const int64_t pixel_bytes = w.ic * w.sw * c.in_bytes();
  const int64_t distinct = kSetsBytes / std::gcd(pixel_bytes, kSetsBytes);
  return c.ic_block != 0 || c.width_tile <= kMaxInSet * distinct;
}

// Whether tasks of this form are cut by even shares near where those of every other conv are.
bool TasksSuitRows(const ConvWorkload& w, const DirectConfig& c, const Target& cpu) {
  constexpr int64_t kManyBlocks = 4;
  if (!c.oc_inner) return false;
  const int64_t height = c.flat_width > 0 ? w.ih * w.iw / c.flat_width : w.oh;
  const int64_t blocks = CeilDiv(height, c.rows);
  return blocks % cpu.cores == 0 || blocks >= kManyBlocks * cpu.cores || (c.flat_width == 0 && c.rows == 1);
}

// Calls visit with every register tile there is, completed by the pass that suits it, until it returns false.
template <typename Visit>
void ForEachTile(const ConvWorkload& w, const Target& cpu, const ConfigSpace& space, DirectConfig c,
                 const Visit& visit) {
  const bool flat = CanFlatten(w) && w.ih > 1 && !w.pre.any();  // prepared rows should stay in the cache
  const std::vector<int64_t>&passes = ValuesOf(space, "ic_pass"), &widths = ValuesOf(space, "width_tile");
  for (const int64_t flat_width : flat ? ValuesOf(space, "flat_width") : std::vector<int64_t>{0}) {
    c.flat_width = flat_width;
    const int64_t row = flat_width > 0 ? flat_width : w.ow;
    for (const int64_t vectors : ValuesOf(space, "oc_vectors")) {
      c.oc_vectors = vectors;
      c.ic_pass = DefaultPass(w, c, cpu, passes);
      for (const int64_t width : widths) {
        if (width > row) break;
        c.width_tile = width;
        for (const bool balance : {false, true}) {
          c.balance_tiles = balance;
          if (IsTileValid(c, row, w.oc / w.g, cpu) && !visit(c)) return;
        }
      }
    }
  }
}

struct FoundDefault {
  std::optional<DirectConfig> config;
  double cycles = std::numeric_limits<double>::infinity();
  int64_t unroll() const { return config ? config->ic_unroll : 0; }
};

// The most input channels to unroll.
int64_t MostUnrolled(const ConvWorkload& w, const Target& cpu) {
  return cpu.isa == Isa::kAvx512 ? 4 : std::max<int64_t>(8 / w.kw, 1);
}

// Takes `c`, with the most input channels unrolled that are valid, where it unrolls more of them than what
// was found, or as many in fewer cycles.
void TakeBetter(const ConvWorkload& w, const Target& cpu, const DirectConfig& c, double cycles,
                FoundDefault& found) {
  for (const int64_t unroll : {8, 4, 2, 1}) {
    if (unroll > MostUnrolled(w, cpu)) continue;
    if (unroll < found.unroll() || (unroll == found.unroll() && cycles >= found.cycles)) return;
    DirectConfig candidate = c;
    candidate.ic_unroll = unroll;
    if (!WhyInvalid(w, cpu, candidate).empty()) continue;
    found = {candidate, cycles};
    return;
  }
}

// Whether no tasks of a register tile can be better than what was found: cores have no less to do than equal
// shares of the rows.
bool IsTooSlow(const ConvWorkload& w, const DirectConfig& tile, double row_cycles, const Target& cpu,
               const FoundDefault& found) {
  if (found.unroll() < MostUnrolled(w, cpu)) return false;
  const int64_t height = tile.flat_width > 0 ? w.ih * w.iw / tile.flat_width : w.oh;
  return static_cast<double>(w.mb * height) * row_cycles / cpu.cores >= found.cycles;
}

std::optional<Config> FindDefault(Factors factors, const ConvWorkload& w, const Target& cpu, DefaultFor use) {
  const bool rows_stay = use == DefaultFor::kRows;
  const ConfigSpace space = SpaceOf(factors, w, cpu);
  const int64_t vector = cpu.vector_floats();
  DirectConfig c;
  c.factors = FactorsOn(cpu, factors);
  c.in_type = c.out_type = factors == Factors::kBf16 ? DataType::kBf16 : DataType::kF32;
  c.ic_block = Pick(ValuesOf(space, "ic_block"), w.ic < vector / 2 ? 1
                                                 : rows_stay       ? 0
                                                 : w.ic < vector   ? 8
                                                                   : vector);
  c.oc_block = Pick(ValuesOf(space, "oc_block"), rows_stay ? 0 : vector);
  // A layer of few pixels takes the time of reading its weights.
  constexpr int64_t kFewPixels = 4;
  const bool reads_weights = w.mb * w.oh * w.ow <= kFewPixels && factors == Factors::kBf16;
  if (reads_weights && c.factors == Factors::kF32) c.weight_type = DataType::kBf16;
  c.oc_inner = Prepares(w, c);
  if (w.ih == 1 && w.g == 1 && CanFlatten(w) && !c.oc_inner)
    if (const auto tile = WithRowsTile(w, cpu, space, c)) return ToConfig(*tile);
  const std::vector<int64_t>&all_rows = ValuesOf(space, "rows"), &inners = ValuesOf(space, "oc_inner");
  FoundDefault found;
  ForEachTile(w, cpu, space, c, [&](DirectConfig tile) {
    if (rows_stay && !TileSuitsRows(w, tile)) return true;
    const double row_cycles = use == DefaultFor::kAny ? 0 : RowCycles(w, tile, cpu.vector_floats());
    if (IsTooSlow(w, tile, row_cycles, cpu, found)) return true;
    for (const int64_t rows : all_rows) {
      if (rows > (tile.flat_width > 0 ? 1 : w.oh)) break;
      tile.rows = rows;
      for (const int64_t inner : inners) {
        tile.oc_inner = inner != 0;
        if (rows_stay && !TasksSuitRows(w, tile, cpu)) continue;
        TakeBetter(w, cpu, tile, BusiestCoreCycles(w, tile, row_cycles, cpu), found);
        if (use == DefaultFor::kAny && found.config) return false;
      }
    }
    return true;
  });
  return found.config ? std::optional(ToConfig(*found.config)) : std::nullopt;
}

// Why there is no config that is valid and decent everywhere; "" when there is.
std::string WhyNoDefault(Factors factors, const ConvWorkload& w, const Target& cpu) {
  constexpr int64_t kMinTapBytes = 14;  // a load and a multiplication
  // A lower bound first, which takes no time however large the sizes are.
  const int64_t code = std::max<int64_t>(EdgePositions(w), 1) * w.kw * kMinTapBytes;
  if (code <= kMaxCodeBytes && FindDefault(factors, w, cpu, DefaultFor::kAny)) return "";
  return fmt::format("a kernel {} wide makes more than {} bytes of code", w.kw, kMaxCodeBytes);
}

// A config without tuning: the widest tile that fits the registers, vector-width blocks. Precondition:
// WhyNoDefault is empty.
Config DefaultOf(Factors factors, const ConvWorkload& w, const Target& cpu) {
  std::optional<Config> config = FindDefault(factors, w, cpu, DefaultFor::kBlocks);
  TILESMITH_CHECK(config.has_value(), "{} has no default", WorkloadToString(w));
  return *std::move(config);
}

// As in ConvTemplate, in f32.
std::optional<Config> RowsDefault(const ConvWorkload& w, const Target& cpu) {
  return FindDefault(Factors::kF32, w, cpu, DefaultFor::kRows);
}

// As TemplateParts takes them.
template <Factors kFactors>
Support Supports(const ConvWorkload& w, const Target& cpu) {
  if (!w.before.empty()) return Support::No("computes no other conv in front of the conv");
  const int64_t out_per_group = w.oc / w.g;
  if (w.g > 1 && 2 * out_per_group <= cpu.vector_floats()) {
    return Support::No(fmt::format("groups of {} output channels fill no more than half a vector of {}",
                                   out_per_group, cpu.vector_floats()));
  }
  if (Support fits = FitsDisplacements(w); !fits.ok) return fits;
  const std::string reason = WhyNoDefault(kFactors, w, cpu);
  return reason.empty() ? Support::Yes() : Support::No(reason);
}
template <Factors kFactors>
ConfigSpace Space(const ConvWorkload& w, const Target& cpu) {
  return SpaceOf(kFactors, w, cpu);
}
template <Factors kFactors>
Config Default(const ConvWorkload& w, const Target& cpu) {
  return DefaultOf(kFactors, w, cpu);
}

Schedule ReadSchedule(const ConvWorkload& w, const Config& config, const Target& cpu) {
  return MakeSchedule(w, ReadConfig(config, cpu), cpu.vector_floats());
}

}  // namespace
}  // namespace direct

const ConvTemplate& DirectTemplate() {
  static const GeneratedTemplate<direct::Schedule> instance(
      {.name = "direct",
       .fuses = true,
       .supports = direct::Supports<direct::Factors::kF32>,
       .space = direct::Space<direct::Factors::kF32>,
       .preset = direct::Default<direct::Factors::kF32>,
       .rows_preset = direct::RowsDefault,
       .read = direct::ReadSchedule,
       .shifts_blocks = true,
       .cycles = direct::CyclesOf});
  return instance;
}

const ConvTemplate& DirectBf16Template() {
  static const GeneratedTemplate<direct::Schedule> instance(
      {.name = "direct_bf16",
       .type = DataType::kBf16,
       .fuses = true,
       .supports = direct::Supports<direct::Factors::kBf16>,
       .space = direct::Space<direct::Factors::kBf16>,
       .preset = direct::Default<direct::Factors::kBf16>,
       .read = direct::ReadSchedule,
       .shifts_blocks = true,
       .type_knobs = {"in_type", "out_type"},
       .factors = DataType::kBf16,
       .cycles = direct::CyclesOf});
  return instance;
}

}  // namespace tilesmith
