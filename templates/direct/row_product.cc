#include "templates/direct/row_product.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "templates/base/conv_template.h"

namespace tilesmith::direct {

ConvWorkload ProductWorkload(int64_t ic, int64_t oc, int64_t positions) {
  ConvWorkload product;
  product.ic = ic;
  product.oc = oc;
  product.ih = product.oh = 1;
  product.iw = product.ow = positions;
  return product;
}

namespace {

constexpr std::array<int64_t, 5> kVectors = {1, 2, 3, 4, 6};

std::vector<int64_t> TileWidths(const Target& cpu, int64_t most_positions) {
  const int64_t widest = std::min<int64_t>(cpu.vector_registers() - 2, most_positions);
  return UpTo(widest, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 13, 14, 18, 24, 28});
}

}  // namespace

std::vector<Knob> ProductKnobs(const Target& cpu, int64_t most_positions, const std::string& position) {
  const bool wide = cpu.isa == Isa::kAvx512;
  return {
      {"oc_vectors", {kVectors.begin(), kVectors.end()}, "register tile: vectors of output channels"},
      {"width_tile", TileWidths(cpu, most_positions), fmt::format("register tile: {}s", position)},
      {"balance_tiles", {0, 1}, "1: register tiles of a block are equally wide"},
      BroadcastKnob(cpu),
      {"ic_unroll", wide ? std::vector<int64_t>{4, 8, 16} : std::vector<int64_t>{2, 4, 8},
       "input channels unrolled"},
      {"prefetch", {0, 16, 32, 64, 128}, "weight vectors fetched ahead"},
  };
}

DirectConfig ReadProductConfig(const Config& config, const Target& cpu, Factors factors) {
  DirectConfig product = ReadTile(config);
  product.ic_block = product.oc_block = cpu.vector_floats();
  product.factors = factors;
  product.in_type = product.factor_type();
  return product;
}

std::string WhyProductInvalid(const ConvWorkload& product, const DirectConfig& c, const Target& cpu) {
  if (const std::string reason = WhyTileInvalid(c, product.ow, product.oc, cpu); !reason.empty())
    return reason;
  if (c.ic_unroll > c.Steps(cpu.vector_floats()))
    return fmt::format("ic_unroll {} exceeds a vector's {} {}", c.ic_unroll, c.Steps(cpu.vector_floats()),
                       c.step_channels() > 1 ? "pairs" : "channels");
  if (const std::string reason = WhyBroadcastInvalid(c, product.ic); !reason.empty()) return reason;
  const int64_t code = EstimateCodeBytes(product, c, cpu.vector_floats());
  if (code > kMaxCodeBytes) return fmt::format("some {} bytes of code (at most {})", code, kMaxCodeBytes);
  return "";
}

DirectConfig DefaultProductTile(const ConvWorkload& product, int64_t ic_pass, const Target& cpu,
                                Factors factors) {
  DirectConfig c, best;
  c.ic_block = c.oc_block = cpu.vector_floats();
  c.ic_unroll = cpu.isa == Isa::kAvx512 ? 8 : 4;
  c.ic_pass = ic_pass;
  c.factors = factors;
  c.in_type = c.factor_type();
  double fewest = std::numeric_limits<double>::infinity();
  const std::vector<int64_t> widths = TileWidths(cpu, product.ow);
  for (const int64_t vectors : kVectors) {
    for (const int64_t width : widths) {
      for (const bool balance : {false, true}) {
        c.oc_vectors = vectors, c.width_tile = width, c.balance_tiles = balance;
        if (!IsTileValid(c, product.ow, product.oc, cpu)) continue;
        const double cycles = RowCycles(product, c, cpu.vector_floats());
        if (cycles < fewest && WhyProductInvalid(product, c, cpu).empty()) fewest = cycles, best = c;
      }
    }
  }
  return best;
}

void SetProductTile(const DirectConfig& product, Config& config) {
  config.Set("oc_vectors", product.oc_vectors);
  config.Set("width_tile", product.width_tile);
  config.Set("balance_tiles", product.balance_tiles);
  config.Set("broadcast", static_cast<int64_t>(product.broadcast));
  config.Set("ic_unroll", product.ic_unroll);
}

}  // namespace tilesmith::direct
