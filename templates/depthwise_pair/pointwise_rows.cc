#include "templates/depthwise_pair/pointwise_rows.h"

#include "layouts/base/check.h"
#include "templates/direct/packing.h"
#include "templates/direct/row_kernels.h"
#include "templates/image_strides.h"

namespace tilesmith::depthwise_pair {

#ifdef TILESMITH_X86

namespace {

class GeneratedPointwiseRows : public PointwiseRows {
 public:
  GeneratedPointwiseRows(const direct::Geometry& geometry, const CpuInfo& cpu, const ConvWeights& weights)
      : geometry_(geometry), packed_(direct::PackWeights(geometry, weights)), kernels_(geometry, cpu) {
    TILESMITH_CHECK(geometry_.passes.size() == 1);
  }

  void Run(const Row& row, int64_t chunk) const override {
    const int64_t out = geometry_.OutChannelOffset(geometry_.chunks[chunk].first_channel);
    direct::RowArgs args;
    args.source = row.source;
    args.weights = packed_.weights.floats() + packed_.offsets[chunk];
    args.output = BytesPast(row.output, out);
    if (geometry_.workload.post.sum) args.residual = BytesPast(row.residual, out);
    args.bias = packed_.bias.floats() + packed_.bias_offsets[chunk];
    args.kernel_rows = 1;
    args.next_block = geometry_.in_block_bytes - geometry_.in_row_bytes;
    kernels_.At(chunk, 0)(&args);
  }

  std::span<const uint8_t> Code() const override { return kernels_.Code(); }
  std::span<const float> PackedWeights() const override {
    return {packed_.weights.floats(), packed_.weights.bytes() / sizeof(float)};
  }

 private:
  const direct::Geometry& geometry_;
  direct::PackedWeights packed_;
  direct::RowKernels kernels_;
};

}  // namespace

std::unique_ptr<PointwiseRows> BuildPointwiseRows(const direct::Geometry& geometry, const CpuInfo& cpu,
                                                  const ConvWeights& weights) {
  return std::make_unique<GeneratedPointwiseRows>(geometry, cpu, weights);
}

#else

std::unique_ptr<PointwiseRows> BuildPointwiseRows(const direct::Geometry&, const CpuInfo&,
                                                  const ConvWeights&) {
  TILESMITH_CHECK(false, "the depthwise_pair template generates x86 code");
}

#endif  // TILESMITH_X86

}  // namespace tilesmith::depthwise_pair
