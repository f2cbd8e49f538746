#include "templates/winograd/tile_product.h"

#ifdef TILESMITH_X86

#include <algorithm>

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
    : geometry_(ProductGeometry(geometry, tiles)) {
  const std::vector<direct::RowVariant> variants = CollectVariants();
  constexpr int64_t kFixedBytes = 4096;
  const int64_t estimate =
      direct::EstimateCodeBytes(geometry_.workload, geometry_.config, geometry_.vector_floats) + kFixedBytes;
  code_ = std::make_unique<direct::RowGenerator>(geometry_, cpu, variants.size() * estimate * 2);
  std::vector<size_t> starts;
  starts.reserve(variants.size());
  for (const direct::RowVariant& variant : variants) starts.push_back(code_->Emit(variant));
  code_->Finish();
  kernels_.reserve(kernel_of_.size());
  for (size_t index : kernel_of_) {
    kernels_.push_back(
        reinterpret_cast<direct::RowKernel>(const_cast<uint8_t*>(code_->getCode()) + starts[index]));
  }
}

std::vector<direct::RowVariant> TileProduct::CollectVariants() {
  std::vector<direct::RowVariant> variants;
  for (const direct::Chunk& chunk : geometry_.chunks) {
    for (const direct::Pass& pass : geometry_.passes) {
      direct::RowVariant variant;
      variant.chunk.vectors = chunk.vectors;
      variant.pass = pass;
      variant.first = pass.first_channel == 0;
      variant.pass.first_channel = 0;
      for (int v = 0; v < chunk.vectors; ++v) variant.vector_offsets.push_back(v * geometry_.out_block_bytes);
      const auto same = [&](const direct::RowVariant& other) {
        return other.chunk.vectors == chunk.vectors && other.pass == variant.pass &&
               other.first == variant.first;
      };
      const auto found = std::find_if(variants.begin(), variants.end(), same);
      kernel_of_.push_back(found - variants.begin());
      if (found == variants.end()) variants.push_back(std::move(variant));
    }
  }
  return variants;
}

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
    kernels_[chunk_index * geometry_.passes.size() + i](&args);
  }
}

}  // namespace tilesmith::winograd

#endif  // TILESMITH_X86
