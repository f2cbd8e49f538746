#include "ops/movement/transpose.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "layouts/base/error.h"
#include "ops/base/elements.h"
#include "ops/base/import_util.h"
#include "ops/base/saved_op.h"
#include "ops/movement/strided_copy.h"

namespace tilesmith {
namespace {

BuiltOp BuildTranspose(const NodeSpec& spec) {
  NeedInputs(spec, 1, 1);
  const size_t rank = spec.inputs[0].shape.size();
  std::vector<int64_t> perm(rank);
  for (size_t i = 0; i < rank; ++i) perm[i] = static_cast<int64_t>(rank - 1 - i);
  perm = spec.Ints("perm", perm);
  if (NormalAxes(spec, perm, rank).size() != rank) {
    Refuse(spec, fmt::format("perm [{}] does not list each of the {} axes", fmt::join(perm, ", "), rank));
  }
  for (int64_t& axis : perm) axis = NormalAxis(spec, axis, rank);
  return BuiltWithInputs(std::make_shared<TransposeOp>(perm), 1);
}

}  // namespace

std::string TransposeOp::Signature() const { return fmt::format("Transpose [{}]", fmt::join(perm_, ",")); }

Shape TransposeOp::InferShape(std::span<const Shape> inputs) const {
  if (inputs[0].size() != perm_.size()) {
    throw Error(ErrorCode::kBadModel, fmt::format("{} of {}", Signature(), ShapeToString(inputs[0])));
  }
  Shape shape(perm_.size());
  for (size_t i = 0; i < shape.size(); ++i) shape[i] = inputs[0][perm_[i]];
  return shape;
}

Tensor TransposeOp::Reference(std::span<const Tensor* const> inputs) const {
  const Tensor& input = *inputs[0];
  const Shape shapes[] = {input.shape()};
  Tensor output(InferShape(shapes), Layout::Nchw(input.type()));
  const std::vector<int64_t> strides = DenseStrides(input.shape());
  GatherElements(input, output, [&](int64_t i) {
    int64_t from = 0;
    for (size_t axis = perm_.size(); axis-- > 0; i /= output.shape()[axis]) {
      from += i % output.shape()[axis] * strides[perm_[axis]];
    }
    return from;
  });
  return output;
}

std::unique_ptr<Kernel> TransposeOp::MakeKernel(const KernelRequest& request) const {
  CopyRegion all;
  for (size_t axis = 0; axis < perm_.size(); ++axis) {
    all.loops.push_back({request.output[axis], static_cast<int>(perm_[axis]), 1, static_cast<int>(axis)});
  }
  return MakeCopyKernel(request, {std::move(all)});
}

ViewLayouts TransposeOp::LayoutsOfView() const {
  if (perm_ == std::vector<int64_t>{0, 2, 3, 1}) return {Layout::Nhwc(), Layout::Nchw()};
  if (perm_ == std::vector<int64_t>{0, 3, 1, 2}) return {Layout::Nchw(), Layout::Nhwc()};
  return {};
}

std::vector<OpImporter> TransposeImporters() { return {{"Transpose", BuildTranspose}}; }

std::vector<SavedOp> TransposeOps() { return {Saved<TransposeOp>("Transpose")}; }

}  // namespace tilesmith
