// The memory of an executor's steps beside plain tensors.
#pragma once

#include <optional>

#include "graph_tuner/executor/executor.h"

namespace tilesmith {

// What lies there, plain and of its type.
Tensor ReadPlain(const StepTensor& tensor, const InputView& memory);
// Puts a plain tensor there, padding zero.
void WritePlain(const Tensor& plain, const StepTensor& tensor, const OutputView& memory);
// The first element in the plain order that is not the same bits; nullopt when all are.
std::optional<int64_t> FirstChanged(const Tensor& plain, const StepTensor& tensor, const InputView& memory);
// Whether every padding channel is zero.
bool PaddingIsZero(const StepTensor& tensor, const InputView& memory);

}  // namespace tilesmith
