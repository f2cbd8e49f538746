// The search for a config without tuning.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "layouts/base/check.h"
#include "layouts/base/sizes.h"
#include "templates/base/row_tiles.h"
#include "templates/base/support_checks.h"
#include "templates/base/type_knobs.h"
#include "templates/direct/config.h"
#include "templates/direct/schedule.h"

namespace tilesmith::direct {
namespace {

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
  // Of few pixels the time is that of reading the weights.
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

}  // namespace

std::string WhyNoDefault(Factors factors, const ConvWorkload& w, const Target& cpu) {
  constexpr int64_t kMinTapBytes = 14;  // a load and a multiplication
  // A lower bound first, which takes no time however large the sizes are.
  const int64_t code = std::max<int64_t>(EdgePositions(w), 1) * w.kw * kMinTapBytes;
  if (code <= kMaxCodeBytes && FindDefault(factors, w, cpu, DefaultFor::kAny)) return "";
  return fmt::format("a kernel {} wide makes more than {} bytes of code", w.kw, kMaxCodeBytes);
}

Config DefaultOf(Factors factors, const ConvWorkload& w, const Target& cpu) {
  std::optional<Config> config = FindDefault(factors, w, cpu, DefaultFor::kBlocks);
  TILESMITH_CHECK(config.has_value(), "{} has no default", WorkloadToString(w));
  return *std::move(config);
}

std::optional<Config> RowsDefault(const ConvWorkload& w, const Target& cpu) {
  return FindDefault(Factors::kF32, w, cpu, DefaultFor::kRows);
}

}  // namespace tilesmith::direct
