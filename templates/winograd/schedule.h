// The Winograd template's numbers: the grid of tiles, the transformed data in scratch, the matrix products.
//
// Tile t covers tile x tile outputs, the same stride both ways; tiles count along rows, then down an image,
// then through the batch. In scratch lie, for each element xi of the T x T transformed windows (F: floats of
// a vector),
//     V[xi][ic / F][tile of the block][F]    transformed input
//     M[xi][oc / F][tile of the block][F]    products
// that is, two images NCHW[F]c of one row, and M = 1x1 conv of V with U[xi]: the direct template's kernel. V
// and U are of the type that is multiplied, M is f32.
#pragma once

#include <cstdint>
#include <vector>

#include "templates/base/loop_features.h"
#include "templates/base/loop_nest.h"
#include "templates/direct/schedule.h"
#include "templates/winograd/config.h"
#include "templates/winograd/transforms.h"

namespace tilesmith::winograd {

struct Span {
  int first = 0;
  int last = 0;  // exclusive
  bool operator==(const Span&) const = default;
};

// Tiles along one axis by the part of them that exists: [first, last) of the window's positions inside the
// input, or of the tile's inside the output. Code is generated per kind.
struct AxisKinds {
  std::vector<Span> kinds;   // distinct
  std::vector<int> of_tile;  // index into kinds
  std::vector<int> run_end;  // for each tile, the first after it of another kind
};

struct Schedule {
  ConvWorkload workload;
  WinogradConfig config;
  Layout in, out;
  int vector_floats = 16;

  int64_t rows = 0, columns = 0;  // tiles of an image
  int64_t tiles = 0;              // of the batch
  int64_t block_tiles = 0;        // tiles that scratch has room for
  int64_t in_vectors = 0, out_vectors = 0;
  int64_t zero_vectors = 0;  // of the output's last block, after out_vectors
  AxisKinds in_rows, in_columns, out_rows, out_columns;

  // Where products are merged: what is left of the output transform, and the place of each V[xi] in scratch,
  // sorted by the sums. Otherwise no merged.sum_of, and every V[xi] at xi.
  MergedProducts merged;
  std::vector<int64_t> places;

  int64_t in_element = 0, out_element = 0;  // elements of V and floats of M from one xi to the next
  int64_t m_bytes = 0;                      // where M begins in scratch
  int64_t scratch_bytes = 0;                // V and M together

  const Transforms& transforms() const { return TransformsOf(config.tile, workload.sh); }
  const Transforms& output_transforms() const { return places.empty() ? transforms() : merged.output; }
  int window() const { return WindowOf(config.tile, workload.sh); }
  DataType v_type() const { return config.product.factor_type(); }
  int64_t v_vector_bytes() const { return vector_floats * ElementBytes(v_type()); }
  int64_t PlaceOf(int64_t element) const { return places.empty() ? element : places[element]; }
  int64_t input_step() const { return config.tile * workload.sh; }  // pixels between neighbouring windows
  int64_t elements() const { return static_cast<int64_t>(window()) * window(); }
  // Bytes of stored images: between neighbouring pixels, and from the start to the first channel of a vector
  // at pixel 0.
  int64_t in_pixel_bytes() const { return in.BlockFor(workload.ic) * in.element_bytes(); }
  int64_t out_pixel_bytes() const { return out.BlockFor(workload.oc) * out.element_bytes(); }
  int64_t InVectorOffset(int64_t vector, int64_t block_shift) const;
  int64_t OutVectorOffset(int64_t vector, int64_t block_shift) const;
};

// Makes the products of a schedule merged: M[sum of rows][sum of columns] instead of M[xi].
void MergeProducts(Schedule& schedule);

Schedule MakeSchedule(const ConvWorkload& workload, const WinogradConfig& config, int vector_floats);

// As in ConvTemplate; also where each group's terms are summed apart.
double ErrorFactor(const ConvWorkload& workload, const Config& config);
double Bf16Noise(const ConvWorkload& workload, const Config& config);
double CyclesOf(const Schedule& schedule, const Target& cpu);
// Tasks of the output's transform; with blocks of tiles everything is one stage.
TaskGrid GridOf(const Schedule& schedule);
// Tasks of blocks of tiles: rows of tiles of one image in their order, for one part of the channels or
// several.
TaskGrid GridOfBlocks(const Schedule& schedule, int64_t channel_parts);
LoopFeatures FeaturesOf(const Schedule& schedule);
LoopNest NestOf(const Schedule& schedule);

// Precondition: cpu.isa has generated code and the machine has it.
std::unique_ptr<ConvKernel> BuildKernel(Schedule schedule, const Target& cpu, const ConvWeights& weights);

// Sizes of tiles worth trying, ascending from 2.
std::vector<int64_t> TileValues(const ConvWorkload& workload);

// Tiles of the whole batch.
int64_t CountTiles(const ConvWorkload& workload, int64_t tile);
// Bytes of V and of M for a block of `block_tiles` tiles: whole cache lines.
struct ScratchParts {
  int64_t v = 0, m = 0;
  int64_t bytes() const { return v + m; }
};
ScratchParts ScratchFor(const ConvWorkload& workload, const WinogradConfig& config, int64_t block_tiles,
                        int vector_floats);

// The matrix product of one xi over `tiles` tiles as a 1x1 conv.
ConvWorkload ProductOf(const ConvWorkload& workload, int64_t tiles, int vector_floats);

}  // namespace tilesmith::winograd
