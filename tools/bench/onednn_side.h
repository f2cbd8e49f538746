// oneDNN's side of a conv: one primitive; for a fused workload two, one run after the other, since oneDNN is
// not asked to fuse anything in front of a conv.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ops/conv/conv.h"
#include "ops/quantize/quantized_data.h"
#include "tools/onednn/onednn.h"

namespace tilesmith {

class OneDnnSequence {
 public:
  // Null when oneDNN cannot do one of them, with the reason in *refusal. `algorithm` is the main conv's; a
  // conv in front of it is direct. The data is set, the residual with it; all of it is stored as `type`, f32
  // or, of a conv alone, bf16.
  static std::unique_ptr<OneDnnSequence> Create(const ConvWorkload& workload, OneDnnAlgorithm algorithm,
                                                const ConvData& data, DataType type, std::string* refusal);

  // The twin of a convolution of bytes.
  static std::unique_ptr<OneDnnSequence> Create(const QuantizedData& data, std::string* refusal);

  void Run();
  void SetResidual(const Tensor& plain) { conv_->SetResidual(plain); }
  Tensor GetOutput() { return conv_->GetOutput(); }

  std::string ImplName() const;  // "brgconv:avx512_core", or both with a ">" between
  std::string LayoutsText() const;
  std::vector<std::span<const std::byte>> PackedWeights() const;

 private:
  bool CreateFirst(const ConvWorkload& workload, const ConvData& data, std::string* refusal);

  std::unique_ptr<OneDnnPrimitive> first_;  // null where nothing is in front
  std::unique_ptr<OneDnnConv> conv_;
};

}  // namespace tilesmith
