#include "templates/direct/x86/row_kernels.h"

#include <algorithm>

namespace tilesmith::direct {
namespace {

RowVariant VariantOf(const Schedule& g, const Chunk& chunk, size_t pass) {
  RowVariant variant;
  variant.chunk = chunk;
  variant.chunk.group = variant.chunk.first_channel = 0;
  variant.pass = g.passes[pass];
  variant.pass.first_channel = 0;
  variant.first = pass == 0;
  variant.last = pass + 1 == g.passes.size();
  for (int v = 0; v < chunk.vectors + chunk.zero_vectors; ++v) {
    const int64_t channel = chunk.first_channel + static_cast<int64_t>(v) * g.vector_floats;
    variant.vector_offsets.push_back(g.OutChannelOffset(channel) - g.OutChannelOffset(chunk.first_channel));
  }
  return variant;
}

bool SameCode(const RowVariant& a, const RowVariant& b) {
  return a.vector_offsets == b.vector_offsets && a.pass == b.pass && a.first == b.first && a.last == b.last &&
         a.chunk.vectors == b.chunk.vectors && a.chunk.partial_lanes == b.chunk.partial_lanes;
}

}  // namespace

RowKernels::RowKernels(const Schedule& g, const Target& cpu) : passes_(g.passes.size()) {
  std::vector<RowVariant> variants;
  std::vector<size_t> variant_of;  // at chunk * passes + pass
  for (const Chunk& chunk : g.chunks) {
    for (size_t pass = 0; pass < passes_; ++pass) {
      RowVariant variant = VariantOf(g, chunk, pass);
      const auto found = std::find_if(variants.begin(), variants.end(),
                                      [&](const RowVariant& other) { return SameCode(other, variant); });
      variant_of.push_back(found - variants.begin());
      if (found == variants.end()) variants.push_back(std::move(variant));
    }
  }
  constexpr int64_t kFixedBytes = 4096;  // prologues, constants, loops
  const int64_t estimate = EstimateCodeBytes(g.workload, g.config, g.vector_floats) + kFixedBytes;
  code_ = std::make_unique<RowGenerator>(g, cpu, variants.size() * estimate * 2);
  std::vector<size_t> starts;
  starts.reserve(variants.size());
  for (const RowVariant& variant : variants) starts.push_back(code_->Emit(variant));
  code_->Finish();
  kernels_.reserve(variant_of.size());
  for (const size_t index : variant_of) {
    kernels_.push_back(reinterpret_cast<RowKernel>(const_cast<uint8_t*>(code_->getCode()) + starts[index]));
  }
}

}  // namespace tilesmith::direct
