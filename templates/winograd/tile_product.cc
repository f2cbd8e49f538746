#include "templates/winograd/tile_product.h"

#ifdef TILESMITH_X86

namespace tilesmith::winograd {
namespace {

direct::Geometry ProductGeometry(const Geometry& g, int64_t tiles) {
  direct::Geometry product = direct::MakeGeometry(ProductWorkload(g.workload, tiles, g.vector_floats),
                                                  g.config.product, g.vector_floats);
  // Channel blocks are as far apart as in a full block of tiles.
  product.in_block_bytes = g.block_tiles * product.in_pixel_bytes;
  product.out_block_bytes = g.block_tiles * product.out_pixel_bytes;
  return product;
}

}  // namespace

TileProduct::TileProduct(const Geometry& geometry, int64_t tiles, const CpuInfo& cpu)
    : geometry_(ProductGeometry(geometry, tiles)), kernels_(geometry_, cpu) {}

void TileProduct::Run(size_t chunk_index, const float* v, const float* u, float* m) const {
  constexpr auto kFloatBytes = static_cast<int64_t>(sizeof(float));
  const direct::Chunk& chunk = geometry_.chunks[chunk_index];
  direct::RowArgs args;
  args.output = m + geometry_.OutChannelOffset(chunk.first_channel) / kFloatBytes;
  args.kernel_rows = 1;
  args.next_block = geometry_.in_block_bytes - geometry_.in_row_bytes;
  for (size_t i = 0; i < geometry_.passes.size(); ++i) {
    const int64_t channel = geometry_.passes[i].first_channel;
    // Passes are of whole blocks, which are vectors.
    args.source = v + channel / geometry_.vector_floats * geometry_.in_block_bytes / kFloatBytes;
    args.weights = u + channel * chunk.vectors * geometry_.vector_floats;
    kernels_.At(chunk_index, i)(&args);
  }
}

}  // namespace tilesmith::winograd

#endif  // TILESMITH_X86
