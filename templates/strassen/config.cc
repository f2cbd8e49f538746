#include "templates/strassen/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "templates/base/image_strides.h"
#include "templates/base/support_checks.h"
#include "templates/direct/row_product.h"
#include "templates/strassen/schedule.h"

namespace tilesmith::strassen {
namespace {

constexpr int64_t kMaxBlockBytes = 16LL << 20;   // V of a block
constexpr int64_t kMaxStageBytes = 256LL << 20;  // V of the whole batch

// A block lies in one half of the channels; NHWC always does.
std::vector<int64_t> BlockValues(int64_t channels, int64_t vector) {
  std::vector<int64_t> blocks;
  for (int64_t block : {8, 16, 32, 64}) {
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

}  // namespace tilesmith::strassen
