#include "ops/base/op.h"

#include <algorithm>
#include <cstring>

#include "layouts/base/check.h"

namespace tilesmith {
namespace {

// Copies images that may lie apart.
void CopyImages(const float* from, int64_t from_stride, float* to, int64_t to_stride, const Shape& shape) {
  const int64_t images = shape.empty() ? 1 : shape[0];
  const int64_t floats = images == 0 ? 0 : ElementCount(shape) / images;
  for (int64_t n = 0; n < images; ++n) {
    std::memcpy(to + n * to_stride, from + n * from_stride, floats * sizeof(float));
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
      Tensor& tensor = inputs.emplace_back(request_.inputs[i]);
      CopyImages(args.inputs[i].data, args.inputs[i].batch_stride, tensor.floats(),
                 tensor.input_view().batch_stride, tensor.shape());
      pointers.push_back(&tensor);
    }
    const Tensor result = op_.Reference(pointers);
    CopyImages(result.floats(), result.input_view().batch_stride, args.output.data, args.output.batch_stride,
               request_.output);
  }

 private:
  const Op& op_;
  const KernelRequest request_;
};

}  // namespace

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

std::unique_ptr<Kernel> Op::MakeKernel(const KernelRequest& request) const {
  TILESMITH_CHECK(request.layout.is_nchw(), "{} in {}", Type(), request.layout.ToString());
  return std::make_unique<ReferenceKernel>(*this, request);
}

}  // namespace tilesmith
