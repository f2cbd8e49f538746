#include "tools/ort/plugin/compiled_region.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "layouts/base/error.h"

namespace tilesmith {

CompiledRegion::CompiledRegion(const OrtApi& api, Model model, std::vector<size_t> inputs)
    : OrtNodeComputeInfo{}, api_(api), model_(std::move(model)), inputs_(std::move(inputs)) {
  for (const auto* tensors : {&model_.inputs(), &model_.outputs()}) {
    for (const TensorInfo& tensor : *tensors) {
      if (tensor.shape.size() != 4 || tensor.layout == "NCHW") continue;
      throw Error(ErrorCode::kUsage, fmt::format("the plan has \"{}\" in {}; ONNX Runtime's tensors are NCHW",
                                                 tensor.name, tensor.layout));
    }
  }
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

void CompiledRegion::Run(OrtKernelContext* context) {
  std::vector<const void*> inputs;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const OrtValue* value = nullptr;
    CheckOrt(api_, api_.KernelContext_GetInput(context, inputs_[i], &value));
    const TensorInfo& info = model_.inputs()[i];
    const HostTensorType type = TypeOfValue(api_, value);
    if (type.shape != info.shape)
      throw Error(ErrorCode::kUsage,
                  fmt::format("input \"{}\" has the shape {}, compiled for {}", info.name,
                              fmt::join(type.shape.value(), "x"), fmt::join(info.shape, "x")));
    const void* data = nullptr;
    CheckOrt(api_, api_.GetTensorData(value, &data));
    inputs.push_back(data);
  }
  std::vector<void*> outputs;
  for (size_t i = 0; i < model_.outputs().size(); ++i) {
    const std::vector<int64_t>& shape = model_.outputs()[i].shape;
    OrtValue* value = nullptr;
    CheckOrt(api_, api_.KernelContext_GetOutput(context, i, shape.data(), shape.size(), &value));
    void* data = nullptr;
    CheckOrt(api_, api_.GetTensorMutableData(value, &data));
    outputs.push_back(data);
  }
  Session session = TakeSession();
  session.Run(inputs, outputs);
  GiveBack(std::move(session));
}

Session CompiledRegion::TakeSession() {
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      Session session = std::move(idle_.back());
      idle_.pop_back();
      return session;
    }
  }
  return model_.NewSession();
}

void CompiledRegion::GiveBack(Session session) {
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(session));
}

}  // namespace tilesmith
