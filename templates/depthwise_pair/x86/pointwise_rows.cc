#include "templates/depthwise_pair/x86/pointwise_rows.h"

#include "layouts/base/check.h"
#include "templates/base/image_strides.h"

namespace tilesmith::depthwise_pair {

PointwiseRows::PointwiseRows(const direct::Schedule& schedule, const Target& cpu, const ConvWeights& weights)
    : schedule_(schedule), packed_(direct::PackWeights(schedule, cpu, weights)), kernels_(schedule, cpu) {
  TILESMITH_CHECK(schedule_.passes.size() == 1);
}

void PointwiseRows::Run(const Row& row, int64_t chunk) const {
  const int64_t out = schedule_.OutChannelOffset(schedule_.chunks[chunk].first_channel);
  direct::RowArgs args;
  args.source = row.source;
  args.weights = packed_.weights.floats() + packed_.offsets[chunk];
  args.output = BytesPast(row.output, out);
  if (schedule_.workload.post.sum) args.residual = BytesPast(row.residual, out);
  args.bias = packed_.bias.floats() + packed_.bias_offsets[chunk];
  args.kernel_rows = 1;
  args.next_block = schedule_.in_block_bytes - schedule_.in_row_bytes;
  kernels_.At(chunk, 0)(&args);
}

}  // namespace tilesmith::depthwise_pair
