#include "tools/ort/plugin/compiled_region.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstring>

#include "layouts/base/error.h"

namespace tilesmith {
namespace {

Model WithPlainImages(Model model) {
  for (const auto* tensors : {&model.inputs(), &model.outputs()}) {
    for (const TensorInfo& tensor : *tensors) {
      if (tensor.shape.size() != 4 || tensor.layout == "NCHW") continue;
      throw Error(ErrorCode::kUsage, fmt::format("the plan has \"{}\" in {}; ONNX Runtime's tensors are NCHW",
                                                 tensor.name, tensor.layout));
    }
  }
  return model;
}

}  // namespace

CompiledRegion::CompiledRegion(const OrtApi& api, std::vector<size_t> inputs, bool any_size)
    : OrtNodeComputeInfo{}, api_(api), inputs_(std::move(inputs)), any_size_(any_size) {
  ort_version_supported = kOrtApiVersion;
  CreateState = [](OrtNodeComputeInfo* self, OrtNodeComputeContext*, void** state) -> OrtStatus* {
    *state = self;
    return nullptr;
  };
  Compute = [](OrtNodeComputeInfo* self, void*, OrtKernelContext* context) -> OrtStatus* {
    CompiledRegion& region = *static_cast<CompiledRegion*>(self);
    return OrtGuarded(region.api_, [&] { region.Run(context); });
  };
  ReleaseState = [](OrtNodeComputeInfo*, void*) {};
}

CompiledRegion::CompiledRegion(const OrtApi& api, Model model, std::vector<size_t> inputs)
    : CompiledRegion(api, std::move(inputs), false) {
  model_ = WithPlainImages(std::move(model));
}

CompiledRegion::CompiledRegion(const OrtApi& api, std::function<Model(const Shapes&)> make,
                               std::vector<size_t> inputs)
    : CompiledRegion(api, std::move(inputs), true) {
  make_ = std::move(make);
}

void CompiledRegion::Run(OrtKernelContext* context) {
  Shapes shapes;
  std::vector<const void*> inputs;
  for (const size_t input : inputs_) {
    const OrtValue* value = nullptr;
    CheckOrt(api_, api_.KernelContext_GetInput(context, input, &value));
    shapes.push_back(TypeOfValue(api_, value).shape.value());
    CheckOrt(api_, api_.GetTensorData(value, &inputs.emplace_back()));
  }
  Session session = TakeSession(shapes);
  if (any_size_) {
    std::vector<InputTensor> tensors;
    tensors.reserve(inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) tensors.push_back({inputs[i], shapes[i]});
    const std::vector<OutputTensor>& outputs = session.Run(tensors);
    for (size_t i = 0; i < outputs.size(); ++i) {
      void* const memory = OutputMemory(context, i, outputs[i].shape);
      if (outputs[i].bytes > 0) std::memcpy(memory, outputs[i].data, outputs[i].bytes);
    }
  } else {
    std::vector<void*> outputs;
    for (const TensorInfo& output : model_->outputs())
      outputs.push_back(OutputMemory(context, outputs.size(), output.shape));
    session.Run(inputs, outputs);
  }
  GiveBack(std::move(session));
}

void* CompiledRegion::OutputMemory(OrtKernelContext* context, size_t output,
                                   const std::vector<int64_t>& shape) const {
  OrtValue* value = nullptr;
  CheckOrt(api_, api_.KernelContext_GetOutput(context, output, shape.data(), shape.size(), &value));
  void* data = nullptr;
  CheckOrt(api_, api_.GetTensorMutableData(value, &data));
  return data;
}

Session CompiledRegion::TakeSession(const Shapes& shapes) {
  std::unique_lock lock(mutex_);
  if (!model_) {
    model_ = WithPlainImages(make_(shapes));
    make_ = nullptr;
  }
  for (size_t i = 0; !any_size_ && i < shapes.size(); ++i) {
    const TensorInfo& info = model_->inputs()[i];
    if (shapes[i] == info.shape) continue;
    throw Error(ErrorCode::kUsage, fmt::format("input \"{}\" has the shape {}, compiled for {}", info.name,
                                               fmt::join(shapes[i], "x"), fmt::join(info.shape, "x")));
  }
  if (idle_.empty()) {
    lock.unlock();
    return model_->NewSession();
  }
  Session session = std::move(idle_.back());
  idle_.pop_back();
  return session;
}

void CompiledRegion::GiveBack(Session session) {
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(session));
}

}  // namespace tilesmith
