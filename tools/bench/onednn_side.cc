#include "tools/bench/onednn_side.h"

#include <fmt/format.h>

namespace tilesmith {
namespace {

const float* FloatsOf(const std::optional<Tensor>& tensor) { return tensor ? tensor->floats() : nullptr; }

std::unique_ptr<OneDnnPrimitive> MakeInputOps(const ConvWorkload& workload, const ConvData& data,
                                              const std::string& layout, std::string* refusal) {
  if (layout == "other") {
    *refusal = "the conv reads a layout that oneDNN's elementwise primitives are not asked for";
    return nullptr;
  }
  const Shape shape = workload.input_shape();
  const Activation& activation = workload.pre.activation;
  if (!workload.pre.scale_shift) {
    return MakeOneDnnActivation(shape, activation, Layout::Parse(layout), refusal);
  }
  return MakeOneDnnScaleShift(shape, {data.scale->floats(), data.shift->floats(), activation},
                              Layout::Parse(layout), refusal);
}

}  // namespace

std::unique_ptr<OneDnnSequence> OneDnnSequence::Create(const ConvWorkload& workload,
                                                       OneDnnAlgorithm algorithm, const ConvData& data,
                                                       DataType type, std::string* refusal) {
  if (workload.fused() && type != DataType::kF32) {
    *refusal = "oneDNN is asked for one convolution alone in " + std::string(DataTypeName(type));
    return nullptr;
  }
  auto sequence = std::make_unique<OneDnnSequence>();
  sequence->conv_ = OneDnnConv::Create(workload.main_conv(), algorithm,
                                       {data.weights.floats(), FloatsOf(data.bias)}, refusal, type);
  if (sequence->conv_ == nullptr) return nullptr;
  if (workload.fused()) {
    if (!sequence->CreateFirst(workload, data, refusal)) return nullptr;
    sequence->conv_->Connect(0, *sequence->first_);
  }
  (workload.fused() ? *sequence->first_ : *sequence->conv_).OneDnnPrimitive::SetInput(0, data.input);
  if (data.residual) sequence->SetResidual(*data.residual);
  return sequence;
}

std::unique_ptr<OneDnnSequence> OneDnnSequence::Create(const QuantizedData& data, std::string* refusal) {
  auto sequence = std::make_unique<OneDnnSequence>();
  sequence->conv_ = OneDnnConv::Create(*data.op, refusal);
  if (sequence->conv_ == nullptr) return nullptr;
  sequence->conv_->SetInput(data.input);
  if (data.residual) sequence->SetResidual(*data.residual);
  return sequence;
}

bool OneDnnSequence::CreateFirst(const ConvWorkload& workload, const ConvData& data, std::string* refusal) {
  if (workload.before.empty()) {
    first_ = MakeInputOps(workload, data, conv_->InputLayoutName(), refusal);
  } else {
    first_ = OneDnnConv::Create(workload.before[0], OneDnnAlgorithm::kDirect,
                                {data.before_weights->floats(), FloatsOf(data.before_bias)}, refusal);
  }
  return first_ != nullptr;
}

void OneDnnSequence::Run() {
  if (first_) first_->Run();
  conv_->Run();
}

std::string OneDnnSequence::ImplName() const {
  return first_ ? first_->ImplName() + ">" + conv_->ImplName() : conv_->ImplName();
}

std::string OneDnnSequence::LayoutsText() const {
  const OneDnnPrimitive& reads = first_ ? *first_ : *conv_;
  return fmt::format("{} -> {}", reads.InputLayoutName(), conv_->OutputLayoutName());
}

std::vector<std::span<const std::byte>> OneDnnSequence::PackedWeights() const {
  std::vector<std::span<const std::byte>> weights = {conv_->PackedWeights()};
  if (first_) weights.push_back(first_->PackedWeights());
  return weights;
}

}  // namespace tilesmith
