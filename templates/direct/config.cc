#include "templates/direct/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <utility>
#include <vector>

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
      {"ic_block", InputBlocks(FactorsOn(cpu, factors), w),
       "x of the input layout NCHW[x]c; 0 is NHWC, 1 is NCHW"},
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

Support SupportsOf(Factors factors, const ConvWorkload& w, const Target& cpu) {
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
