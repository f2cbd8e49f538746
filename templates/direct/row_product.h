// Matrix products M = V U in scratch, a 1x1 conv over an image of one row by the direct template's kernel:
// what templates of fewer multiplications spend their time in. V and M are NCHW[F]c, F floats of a vector.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "templates/direct/schedule.h"

namespace tilesmith::direct {

// V has `ic` channels and M `oc`, which fills vectors.
ConvWorkload ProductWorkload(int64_t ic, int64_t oc, int64_t positions);

// The knobs of the products, beside those of the template: oc_vectors, width_tile, balance_tiles, broadcast,
// ic_unroll, prefetch. `most_positions`: of the longest row; `position`: what a position is called.
std::vector<Knob> ProductKnobs(const Target& cpu, int64_t most_positions, const std::string& position);

// Reads those knobs; blocks are one vector and all channels are one pass. V is stored in the type of
// `factors`.
DirectConfig ReadProductConfig(const Config& config, const Target& cpu, Factors factors = Factors::kF32);

// The register tile for this product of the fewest cycles (RowCycles), `ic_pass` channels in one pass.
DirectConfig DefaultProductTile(const ConvWorkload& product, int64_t ic_pass, const Target& cpu,
                                Factors factors = Factors::kF32);
// Sets the knobs of the products but prefetch.
void SetProductTile(const DirectConfig& product, Config& config);

// Why a config of these products cannot be built, in words; empty when it can.
std::string WhyProductInvalid(const ConvWorkload& product, const DirectConfig& config, const Target& cpu);

}  // namespace tilesmith::direct
