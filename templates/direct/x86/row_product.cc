#include "templates/direct/x86/row_product.h"

#include "templates/base/image_strides.h"

namespace tilesmith::direct {
namespace {

Schedule ProductSchedule(const ConvWorkload& product, const DirectConfig& config, int64_t m_positions,
                         int vector_floats) {
  Schedule schedule = MakeSchedule(product, config, vector_floats);
  schedule.out_block_bytes = m_positions * schedule.out_pixel_bytes;
  return schedule;
}

}  // namespace

RowProduct::RowProduct(const ConvWorkload& product, const DirectConfig& config, int64_t m_positions,
                       const Target& cpu)
    : schedule_(ProductSchedule(product, config, m_positions, cpu.vector_floats())),
      kernels_(schedule_, cpu) {}

void RowProduct::Run(size_t chunk_index, const Operands& operands) const {
  const Chunk& chunk = schedule_.chunks[chunk_index];
  RowArgs args;
  args.output = operands.m;
  args.kernel_rows = 1;
  args.next_block = operands.v_vector_bytes - schedule_.in_row_bytes;
  for (size_t i = 0; i < schedule_.passes.size(); ++i) {
    const int64_t channel = schedule_.passes[i].first_channel;
    // Passes are of whole blocks, which are vectors.
    args.source = reinterpret_cast<const float*>(operands.v +
                                                 channel / schedule_.vector_floats * operands.v_vector_bytes);
    args.weights = reinterpret_cast<const float*>(operands.u + schedule_.config.Steps(channel) *
                                                                   chunk.vectors * schedule_.vector_floats *
                                                                   schedule_.config.weight_word_bytes());
    kernels_.At(chunk_index, i)(&args);
  }
}

}  // namespace tilesmith::direct
