#include "ops/base/run_once.h"

#include <memory>
#include <vector>

#include "layouts/base/thread_team.h"

namespace tilesmith {

Tensor RunOnce(const Op& op, std::span<const Tensor* const> inputs, const OpMachine& machine) {
  KernelRequest request{.inputs = {}, .output = {}, .layout = Layout::Nchw(), .cpu = machine.cpu};
  std::vector<InputView> views;
  for (const Tensor* input : inputs) {
    request.inputs.push_back(input->shape());
    request.input_types.push_back(input->type());
    views.push_back(input->input_view());
  }
  request.output = op.InferShape(request.inputs);
  request.layout = Layout::Nchw(op.OutputType(request.input_types));
  Tensor output(request.output, request.layout, NewMemory::kAnything);
  const auto kernel = MakeOpKernel(op, request);
  const AlignedBuffer scratch(static_cast<size_t>(kernel->ScratchBytes(machine.threads)),
                              NewMemory::kAnything);
  RunKernel(*kernel, {views, output.output_view(), scratch.data()}, machine.threads);
  return output;
}

}  // namespace tilesmith
