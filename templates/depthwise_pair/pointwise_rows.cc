#include "templates/depthwise_pair/pointwise_rows.h"

#include <algorithm>
#include <tuple>
#include <vector>

#include "layouts/base/check.h"
#include "templates/direct/generator.h"
#include "templates/direct/packing.h"
#include "templates/image_strides.h"

namespace tilesmith::depthwise_pair {

#ifdef TILESMITH_X86

namespace {

class GeneratedPointwiseRows : public PointwiseRows {
 public:
  GeneratedPointwiseRows(const direct::Geometry& geometry, const CpuInfo& cpu, const ConvWeights& weights)
      : geometry_(geometry), packed_(direct::PackWeights(geometry, weights)) {
    TILESMITH_CHECK(geometry_.passes.size() == 1);
    const std::vector<direct::RowVariant> variants = CollectVariants();
    const auto& [workload, config] = std::tie(geometry_.workload, geometry_.config);
    const int64_t estimate =
        direct::EstimateCodeBytes(workload, config, geometry_.vector_floats) + kFixedBytes;
    code_ = std::make_unique<direct::RowGenerator>(geometry_, cpu, variants.size() * estimate * 2);
    std::vector<size_t> starts;
    starts.reserve(variants.size());
    for (const direct::RowVariant& variant : variants) starts.push_back(code_->Emit(variant));
    code_->Finish();
    for (size_t index : kernel_of_) {
      kernels_.push_back(
          reinterpret_cast<direct::RowKernel>(const_cast<uint8_t*>(code_->getCode()) + starts[index]));
    }
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
    kernels_[chunk](&args);
  }

  std::span<const uint8_t> Code() const override { return {code_->getCode(), code_->getSize()}; }
  std::span<const float> PackedWeights() const override {
    return {packed_.weights.floats(), packed_.weights.bytes() / sizeof(float)};
  }

 private:
  static constexpr int64_t kFixedBytes = 4096;  // prologues, constants, loops

  // Distinct kernels, and which one each chunk uses.
  std::vector<direct::RowVariant> CollectVariants() {
    std::vector<direct::RowVariant> variants;
    for (const direct::Chunk& chunk : geometry_.chunks) {
      direct::RowVariant variant;
      variant.chunk = chunk;
      variant.pass = geometry_.passes.front();
      for (int v = 0; v < chunk.vectors + chunk.zero_vectors; ++v) {
        const int64_t channel = chunk.first_channel + static_cast<int64_t>(v) * geometry_.vector_floats;
        variant.vector_offsets.push_back(geometry_.OutChannelOffset(channel) -
                                         geometry_.OutChannelOffset(chunk.first_channel));
      }
      const auto same = [&](const direct::RowVariant& other) {
        return other.vector_offsets == variant.vector_offsets && other.chunk.vectors == chunk.vectors &&
               other.chunk.partial_lanes == chunk.partial_lanes;
      };
      const auto found = std::find_if(variants.begin(), variants.end(), same);
      kernel_of_.push_back(found - variants.begin());
      if (found == variants.end()) variants.push_back(std::move(variant));
    }
    return variants;
  }

  const direct::Geometry& geometry_;
  direct::PackedWeights packed_;
  std::vector<size_t> kernel_of_;
  std::unique_ptr<direct::RowGenerator> code_;
  std::vector<direct::RowKernel> kernels_;  // at chunk
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
