#include "tuner/measure/trial_memory.h"

#include "layouts/base/check.h"

namespace tilesmith {

InputView TrialMemory::Input(const Tensor& tensor) {
  InputView view = tensor.input_view();
  if (device_->ReadsHostMemory()) return view;
  DeviceMemory& there = brought_[tensor.raw()];
  if (there.data == nullptr) {
    there = device_->Allocate(static_cast<size_t>(tensor.bytes()));
    device_->Upload(tensor.raw(), there.data.get(), there.bytes);
  }
  view.data = there.data.get();
  return view;
}

OutputView TrialMemory::Output(GuardedOutput& output) {
  OutputView view = output.view();
  if (device_->ReadsHostMemory()) return view;
  const std::span<std::byte> memory = output.memory();
  DeviceMemory& there = brought_[memory.data()];
  if (there.data == nullptr) there = device_->Allocate(memory.size());
  device_->Upload(memory.data(), there.data.get(), memory.size());
  view.data = static_cast<std::byte*>(there.data.get()) + GuardedOutput::kGuardBytes;
  return view;
}

void TrialMemory::BringBack(GuardedOutput& output) const {
  if (device_->ReadsHostMemory()) return;
  const std::span<std::byte> memory = output.memory();
  const auto there = brought_.find(memory.data());
  TILESMITH_CHECK(there != brought_.end(), "an output that was not brought there");
  device_->Download(there->second.data.get(), memory.data(), memory.size());
}

void* TrialMemory::Scratch(size_t bytes) {
  if (scratch_.bytes < bytes) scratch_ = device_->Allocate(bytes);
  return scratch_.data.get();
}

int64_t TrialMemory::bytes() const {
  size_t sum = scratch_.bytes;
  for (const auto& [where, memory] : brought_) sum += memory.bytes;
  return static_cast<int64_t>(sum);
}

}  // namespace tilesmith
