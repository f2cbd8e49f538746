#include "templates/cuda/program.h"

namespace tilesmith {

CudaArguments ArgumentsOf(const CudaLaunch& launch, const KernelArgs& args, const void* weights) {
  TILESMITH_CHECK(launch.inputs.size() <= kCudaInputs, "{} inputs", launch.inputs.size());
  CudaArguments arguments;
  for (size_t i = 0; i < launch.inputs.size(); ++i) {
    const CudaOperand& operand = launch.inputs[i];
    const bool scratch = operand.from == CudaOperand::From::kScratch;
    const InputView view =
        scratch ? InputView{args.scratch, operand.stride * kFloatBytes} : args.inputs[operand.slot];
    arguments.in[i] = static_cast<const std::byte*>(view.data) + operand.byte;
    arguments.in_stride[i] = view.batch_stride / operand.element_bytes;
  }
  const bool scratch = launch.output.from == CudaOperand::From::kScratch;
  const OutputView out = scratch ? OutputView{args.scratch, launch.output.stride * kFloatBytes} : args.output;
  arguments.out = static_cast<std::byte*>(out.data) + launch.output.byte;
  arguments.out_stride = out.batch_stride / launch.output.element_bytes;
  if (args.scratch != nullptr)
    arguments.scratch = static_cast<std::byte*>(args.scratch) + launch.scratch_byte;
  if (weights != nullptr) arguments.weights = static_cast<const std::byte*>(weights) + launch.weights_byte;
  return arguments;
}

}  // namespace tilesmith
