#include "ops/base/op.h"

#include <algorithm>
#include <cstring>

#include "layouts/base/check.h"
#include "layouts/base/thread_team.h"

namespace tilesmith {
namespace {

// Copies images that may lie apart.
void CopyImages(const InputView& from, const OutputView& to, const Tensor& tensor) {
  const int64_t images = tensor.shape().empty() ? 1 : tensor.shape()[0];
  const int64_t bytes = BatchBytes(tensor.shape(), tensor.layout());
  for (int64_t n = 0; n < images && bytes > 0; ++n) {
    std::memcpy(to.image<std::byte>(n), from.image<std::byte>(n), bytes);
  }
}

// The slow path: one task that gathers plain tensors, evaluates Reference and copies the result out. It
// allocates, and keeps a pointer to the op, which must outlive it.
class ReferenceKernel : public Kernel {
 public:
  ReferenceKernel(const Op& op, const KernelRequest& request) : op_(op), request_(request) {}

  int64_t Tasks(int) const override { return 1; }

  void Run(const KernelArgs& args, int, TaskRange) const override {
    std::vector<Tensor> inputs;
    std::vector<const Tensor*> pointers;
    inputs.reserve(request_.inputs.size());
    for (size_t i = 0; i < request_.inputs.size(); ++i) {
      Tensor& tensor = inputs.emplace_back(request_.inputs[i], Layout::Nchw(request_.InputType(i)));
      CopyImages(args.inputs[i], tensor.output_view(), tensor);
      pointers.push_back(&tensor);
    }
    const Tensor result = op_.Reference(pointers);
    TILESMITH_CHECK(result.type() == request_.layout.type(), "{} gave {}", op_.Signature(),
                    result.layout().ToString());
    CopyImages(result.input_view(), args.output, result);
  }

 private:
  const Op& op_;
  const KernelRequest request_;
};

}  // namespace

std::optional<RowWindows> SameRows(size_t slot, std::span<const Shape> inputs, const Shape& output) {
  if (output.size() != 4 || inputs[slot] != output) return std::nullopt;
  return RowWindows();
}

std::optional<RowWindows> Op::RowsReadOf(size_t slot, std::span<const Shape> inputs,
                                         const Shape& output) const {
  if (!InPlaceOk(static_cast<int>(slot))) return std::nullopt;
  return SameRows(slot, inputs, output);
}

DataType Op::OutputType(std::span<const DataType> inputs) const {
  const auto is_float = [](DataType type) { return type == DataType::kF32; };
  if (!std::ranges::all_of(inputs, is_float)) {
    throw Error(ErrorCode::kBadModel, "only float inputs are supported");
  }
  return DataType::kF32;
}

DataType SharedType(std::span<const DataType> inputs) {
  const auto differs = [&](DataType type) { return type != inputs[0]; };
  if (std::ranges::any_of(inputs, differs)) {
    throw Error(ErrorCode::kBadModel, "its inputs have different types");
  }
  return inputs[0];
}

bool AreFloatsOrBf16(std::span<const DataType> types) {
  return std::ranges::all_of(types, [&](DataType type) {
    return type == types[0] && (type == DataType::kF32 || type == DataType::kBf16);
  });
}

std::unique_ptr<Kernel> Op::MakeKernel(const KernelRequest& request) const {
  return MakeReferenceKernel(*this, request);
}

bool Op::KernelTakes(std::span<const DataType> inputs) const {
  return std::ranges::all_of(inputs, [](DataType type) { return type == DataType::kF32; });
}

std::unique_ptr<Kernel> MakeOpKernel(const Op& op, const KernelRequest& request) {
  std::vector<DataType> types;
  types.reserve(request.inputs.size());
  bool takes = true;
  for (size_t slot = 0; slot < request.inputs.size(); ++slot) {
    types.push_back(request.InputType(slot));
    takes = takes && ElementCount(request.inputs[slot]) > 0;
  }
  return takes && op.KernelTakes(types) ? op.MakeKernel(request) : MakeReferenceKernel(op, request);
}

std::unique_ptr<Kernel> MakeReferenceKernel(const Op& op, const KernelRequest& request) {
  TILESMITH_CHECK(request.layout.is_nchw(), "{} in {}", op.Type(), request.layout.ToString());
  return std::make_unique<ReferenceKernel>(op, request);
}

Tensor InputOp::Reference(std::span<const Tensor* const>) const {
  TILESMITH_CHECK(false, "an input has no reference: its value is given");
  return Tensor();
}

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
