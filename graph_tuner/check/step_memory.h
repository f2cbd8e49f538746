// The memory of an executor's steps beside plain tensors.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "graph_tuner/executor/executor.h"

namespace tilesmith {

// The memory of a step's tensor as this process can look at it: itself, or a copy of what the device holds.
class SeenMemory {
 public:
  // `data` and `batch_stride` are a view's, of the device's memory. The device outlives this.
  SeenMemory(const Device& device, const StepTensor& tensor, const void* data, int64_t batch_stride);

  InputView view() const { return {data_, batch_stride_}; }
  // The view is written; PutBack then takes it to the device.
  OutputView writable() { return {data_, batch_stride_}; }
  void PutBack() const;

 private:
  const Device& device_;
  void* const there_;
  const int64_t batch_stride_;
  std::vector<std::byte> copy_;
  void* data_ = nullptr;
};

// What lies there, plain and of its type.
Tensor ReadPlain(const StepTensor& tensor, const InputView& memory);
// Puts a plain tensor there, padding zero.
void WritePlain(const Tensor& plain, const StepTensor& tensor, const OutputView& memory);
// The first element in the plain order that is not the same bits; nullopt when all are.
std::optional<int64_t> FirstChanged(const Tensor& plain, const StepTensor& tensor, const InputView& memory);
// Whether every padding channel is zero.
bool PaddingIsZero(const StepTensor& tensor, const InputView& memory);

}  // namespace tilesmith
