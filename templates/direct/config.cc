#include "templates/direct/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "layouts/base/check.h"
#include "templates/base/image_strides.h"
#include "templates/base/row_tiles.h"
#include "templates/base/support_checks.h"
#include "templates/base/type_knobs.h"
#include "templates/direct/register_plan.h"
#include "templates/direct/schedule.h"

namespace tilesmith::direct {
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

std::vector<int64_t> InputBlocks(Factors factors, const ConvWorkload& w) {
  constexpr int64_t kFewChannels = 16;  // few enough that reading planes directly can pay
  std::vector<int64_t> blocks;
  for (int64_t block : {1, 8, 16, 32, 64}) {
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
  if (c.broadcast == Broadcast::kEmbedded && w.ic / w.g % c.step_channels() != 0)
    return "embedded broadcast needs whole pairs of channels";
  if (c.ic_pass > 0 && c.out_type != DataType::kF32)
    return "passes keep their sums in the output, which has to be f32";
  if (Prepares(w, c) && !c.oc_inner) return "prepared rows are for neighbouring tasks: oc_inner has to be 1";
  return "";
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

}  // namespace

std::string WhyTileInvalid(const DirectConfig& c, int64_t width, int64_t outputs, const Target& cpu) {
  if (c.width_tile > width) return fmt::format("width_tile {} exceeds the row of {}", c.width_tile, width);
  if (c.balance_tiles && width % c.width_tile == 0) return "balance_tiles changes nothing: tiles are even";
  if (c.oc_vectors * cpu.vector_floats() >= outputs + cpu.vector_floats()) {
    return fmt::format("oc_vectors {} exceeds the output channels", c.oc_vectors);
  }
  if (c.broadcast == Broadcast::kMixed && c.oc_vectors == 1)
    return "mixed broadcast needs two weight vectors";
  const RegisterPlan plan = PlanRegisters(static_cast<int>(c.oc_vectors), static_cast<int>(c.width_tile),
                                          c.broadcast, cpu.vector_registers());
  if (!plan.fits) {
    return fmt::format("register tile {} x {} does not fit {} registers", c.oc_vectors, c.width_tile,
                       cpu.vector_registers());
  }
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

DirectConfig ReadConfig(const Config& config) {
  DirectConfig c = ReadTile(config);
  c.ic_block = config.Get("ic_block");
  c.oc_block = config.Get("oc_block");
  c.ic_pass = config.Get("ic_pass");
  c.rows = config.Get("rows");
  c.oc_inner = config.Get("oc_inner") != 0;
  c.flat_width = config.Get("flat_width");
  if (config.Find("in_type")) {
    c.factors = Factors::kBf16;
    const StoredTypes types = ReadTypes(config);
    c.in_type = types.in;
    c.out_type = types.out;
  }
  return c;
}

ConfigSpace SpaceOf(Factors factors, const ConvWorkload& w, const Target& cpu) {
  const int64_t registers = cpu.vector_registers();
  const bool wide = cpu.isa == Isa::kAvx512;
  const std::vector<int64_t> flat_widths = FlatWidths(w);
  const int64_t widest = std::max(w.ow, *std::max_element(flat_widths.begin(), flat_widths.end()));
  const int64_t tallest = flat_widths.size() > 1 ? std::max(w.oh, w.ih * w.iw / flat_widths[1]) : w.oh;
  std::vector<int64_t> passes = {0};
  for (int64_t channels : {16, 32, 64, 128, 256, 512}) {
    if (channels < w.ic / w.g) passes.push_back(channels);
  }
  std::vector<Knob> knobs = {
      {"ic_block", InputBlocks(factors, w), "x of the input layout NCHW[x]c; 0 is NHWC, 1 is NCHW"},
      {"oc_block", OutputBlocks(w, cpu), "x of the output layout NCHW[x]c; 0 is NHWC"},
      {"oc_vectors", UpTo(8, {1, 2, 3, 4, 6}), "register tile: vectors of output channels"},
      {"width_tile",
       UpTo(std::min(widest, registers - 2), {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 13, 14, 18, 24, 28}),
       "register tile: output positions"},
      {"balance_tiles", {0, 1}, "1: tiles of a row are equally wide"},
      {"broadcast", wide ? std::vector<int64_t>{0, 1, 2} : std::vector<int64_t>{1, 2},
       "input element: 0 operand of each FMA, 1 in a register, 2 and last weights from memory"},
      {"ic_unroll", UpTo(std::max<int64_t>(w.ic / w.g, 1), {1, 2, 4, 8, 16}), "input channels unrolled"},
      {"ic_pass", passes, "input channels per accumulation pass; 0 is all"},
      {"rows", RowCounts(tallest), "output rows per task"},
      {"oc_inner", w.pre.any() ? std::vector<int64_t>{1} : std::vector<int64_t>{0, 1},
       "1: neighbouring tasks share rows, 0: weights"},
      {"flat_width", flat_widths, "1x1: width of the rows an image is recut into; 0 keeps its own"},
      {"prefetch", {0, 16, 32, 64, 128}, "weight vectors fetched ahead"},
  };
  if (factors == Factors::kBf16) {
    for (Knob& knob : TypeKnobs()) knobs.push_back(std::move(knob));
  }
  return ConfigSpace(std::move(knobs),
                     [w, cpu](const Config& config) { return WhyInvalid(w, cpu, ReadConfig(config)); });
}

namespace {

int64_t Pick(const ConfigSpace& space, std::string_view knob, int64_t wanted) {
  for (const Knob& k : space.knobs()) {
    if (k.name != knob) continue;
    return std::find(k.values.begin(), k.values.end(), wanted) != k.values.end() ? wanted : k.values.front();
  }
  return wanted;
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
  if (c.factors == Factors::kBf16) SetTypes({c.in_type, c.out_type}, config);
  return config;
}

// For rows of a dense layer, pixels of one row of an image, completes `config`. A tile of more than six of
// them would miss the first-level cache where neighbours are a multiple of 4 KiB apart. Of few pixels the
// time is that of reading the weights: then as many vectors as there are registers, but chunks for all cores.
bool SetRowsTile(const ConvWorkload& w, const Target& cpu, const ConfigSpace& space, Config& config) {
  constexpr int64_t kWidest = 6, kTasksPerCore = 4, kFewestRows = 48;
  const int64_t vectors_of_outputs = CeilDiv(w.oc, cpu.vector_floats()), cache = cpu.l2_bytes / 2;
  const int64_t bytes = ReadConfig(config).in_bytes();
  config.Set("rows", 1);
  if (w.iw * w.ic * bytes > cache && w.oc * w.ic * bytes <= cache) {
    const auto knob = std::ranges::find(space.knobs(), "flat_width", &Knob::name);
    for (const int64_t width : knob->values) {
      if (width < kFewestRows || width == w.iw || width * w.ic * bytes > cache) continue;
      config.Set("flat_width", std::max(width, config.Get("flat_width")));
      config.Set("oc_inner", 1);
    }
  }
  const int64_t width = config.Get("flat_width") > 0 ? config.Get("flat_width") : w.iw;
  config.Set("oc_vectors", 1);
  config.Set("width_tile", std::min(width, kWidest));
  config.Set("balance_tiles", width % config.Get("width_tile") != 0);
  for (const int64_t unroll : {4, 2, 1}) {
    config.Set("ic_unroll", unroll);
    for (const int64_t vectors : {6, 4, 3, 2, 1}) {
      const int64_t tasks = CeilDiv(vectors_of_outputs, vectors) * (w.iw / width);
      if (tasks < kTasksPerCore * cpu.cores && vectors > 2) continue;
      config.Set("oc_vectors", vectors);
      if (space.WhyInvalid(config).empty()) return true;
    }
  }
  return false;
}

// Input channels of a pass: few enough for the weights of a chunk to stay in the second-level cache beside
// inputs and outputs.
int64_t DefaultPass(const ConvWorkload& w, const DirectConfig& c, const Target& cpu, const Knob& passes) {
  const int64_t channels = w.ic / w.g;
  if (c.out_type != DataType::kF32) return 0;
  const int64_t channel_bytes = c.oc_vectors * cpu.vector_floats() * w.kh * w.kw * c.in_bytes();
  const int64_t room = std::max<int64_t>(cpu.l2_bytes / 8 / channel_bytes, 1);
  const int64_t even = CeilDiv(channels, CeilDiv(channels, room));
  for (const int64_t pass : passes.values)
    if (pass >= even && (c.ic_block == 0 || pass % c.ic_block == 0)) return pass;
  return 0;
}

// What a default is for: any network, or one whose threads keep the rows that they wrote; kAny: to see that
// there is one.
enum class DefaultFor { kBlocks, kRows, kAny };

// Whether tasks of this form, in NHWC, are cut by even shares near where those of every other conv are; and
// whether the pixels of a tile that are a multiple of 4 KiB apart leave room beside them in the sets of a
// first-level cache that they share.
bool SuitsRows(const ConvWorkload& w, const DirectConfig& c, const Target& cpu) {
  constexpr int64_t kSetsBytes = 4096, kMaxInSet = 6, kManyBlocks = 4;
  const int64_t height = c.flat_width > 0 ? w.ih * w.iw / c.flat_width : w.oh;
  const int64_t blocks = CeilDiv(height, c.rows);
  const bool cut =
      blocks % cpu.cores == 0 || blocks >= kManyBlocks * cpu.cores || (c.flat_width == 0 && c.rows == 1);
  const int64_t pixel_bytes = w.ic * w.sw * c.in_bytes();
  const int64_t distinct = kSetsBytes / std::gcd(pixel_bytes, kSetsBytes);
  return c.oc_inner && cut && (c.ic_block != 0 || c.width_tile <= kMaxInSet * distinct);
}

std::optional<Config> FindDefault(Factors factors, const ConvWorkload& w, const Target& cpu, DefaultFor use) {
  const bool rows_stay = use == DefaultFor::kRows;
  const ConfigSpace space = SpaceOf(factors, w, cpu);
  const auto knob = [&](std::string_view name) -> const Knob& {
    return *std::ranges::find(space.knobs(), name, &Knob::name);
  };
  const int64_t vector = cpu.vector_floats();
  DirectConfig c;
  c.factors = factors;
  c.in_type = c.out_type = c.factor_type();
  c.ic_block = Pick(space, "ic_block", w.ic < vector / 2 ? 1 : rows_stay ? 0 : w.ic < vector ? 8 : vector);
  c.oc_block = Pick(space, "oc_block", rows_stay ? 0 : vector);
  c.oc_inner = w.pre.any();
  if (w.ih == 1 && w.g == 1 && CanFlatten(w) && !w.pre.any()) {
    Config config = ToConfig(c);
    if (SetRowsTile(w, cpu, space, config)) return config;
  }
  const int64_t most = cpu.isa == Isa::kAvx512 ? 4 : std::max<int64_t>(8 / w.kw, 1);
  const auto if_valid = [&](DirectConfig candidate, int64_t unroll) {
    candidate.ic_unroll = unroll;
    Config config = ToConfig(candidate);
    return space.WhyInvalid(config).empty() ? std::optional(std::move(config)) : std::nullopt;
  };
  std::vector<DirectConfig> candidates;
  std::vector<std::pair<double, size_t>> by_cycles;
  const bool flat = CanFlatten(w) && w.ih > 1 && !w.pre.any();  // prepared rows should stay in the cache
  for (const int64_t flat_width : flat ? knob("flat_width").values : std::vector<int64_t>{0}) {
    c.flat_width = flat_width;
    for (const int64_t vectors : knob("oc_vectors").values) {
      for (const int64_t width : knob("width_tile").values) {
        c.oc_vectors = vectors, c.width_tile = width;
        for (const bool balance : {false, true}) {
          c.balance_tiles = balance;
          if (!WhyTileInvalid(c, flat_width > 0 ? flat_width : w.ow, w.oc / w.g, cpu).empty()) continue;
          c.ic_pass = DefaultPass(w, c, cpu, knob("ic_pass"));
          const double row_cycles = RowCycles(w, c, cpu.vector_floats());
          for (const int64_t rows : knob("rows").values) {
            for (const int64_t inner : knob("oc_inner").values) {
              if (rows > (flat_width > 0 ? 1 : w.oh)) continue;
              c.rows = rows, c.oc_inner = inner != 0;
              if (rows_stay && !SuitsRows(w, c, cpu)) continue;
              if (use == DefaultFor::kAny) {
                for (const int64_t unroll : {1, 2, 4, 8})
                  if (unroll <= most)
                    if (std::optional<Config> config = if_valid(c, unroll)) return config;
                continue;
              }
              by_cycles.emplace_back(BusiestCoreCycles(w, c, row_cycles, cpu), candidates.size());
              candidates.push_back(c);
            }
          }
        }
      }
    }
  }
  std::ranges::sort(by_cycles);
  for (const int64_t unroll : {8, 4, 2, 1}) {
    if (unroll > most) continue;
    for (const auto& [cycles, index] : by_cycles)
      if (std::optional<Config> config = if_valid(candidates[index], unroll)) return config;
  }
  return std::nullopt;
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

Support SupportsOf(Factors factors, const ConvWorkload& w, const Target& cpu) {
  if (factors == Factors::kBf16 && !cpu.bf16)
    return Support::No("multiplies with AVX-512 BF16, which this CPU lacks");
  if (!w.before.empty()) return Support::No("computes no other conv in front of the conv");
  const int64_t out_per_group = w.oc / w.g;
  if (w.g > 1 && 2 * out_per_group <= cpu.vector_floats()) {
    return Support::No(fmt::format("groups of {} output channels fill no more than half a vector of {}",
                                   out_per_group, cpu.vector_floats()));
  }
  if (Support fits = FitsDisplacements(w); !fits.ok) return fits;
  const std::string reason = WhyNoDefault(factors, w, cpu);
  return reason.empty() ? Support::Yes() : Support::No(reason);
}

}  // namespace tilesmith::direct
