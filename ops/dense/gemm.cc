#include "ops/dense/gemm.h"

#include <fmt/format.h>

#include <Eigen/Core>
#include <algorithm>

#include "layouts/base/check.h"
#include "ops/base/broadcast.h"
#include "ops/base/import_util.h"
#include "ops/dense/dense_kernel.h"

namespace tilesmith {
namespace {

template <typename T>
using RowMatrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using FloatMap = Eigen::Map<const RowMatrix<float>>;

std::shared_ptr<const Tensor> FloatMatrix(const NodeSpec& spec, size_t index) {
  if (spec.Constant(index).type() != DataType::kF32) Refuse(spec, "only float matrices are supported");
  ShapeOfRank(spec, index, 2);
  return spec.inputs[index].constant;
}

std::shared_ptr<const Tensor> ScaledWeights(const NodeSpec& spec, float alpha, bool transposed) {
  const std::shared_ptr<const Tensor> given = FloatMatrix(spec, 1);
  if (alpha == 1 && !transposed) return given;
  const int64_t rows = given->shape()[0], columns = given->shape()[1];
  auto weights = std::make_shared<Tensor>(transposed ? Shape{columns, rows} : Shape{rows, columns});
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      const float value = alpha * given->floats()[i * columns + j];
      weights->floats()[transposed ? j * rows + i : i * columns + j] = value;
    }
  }
  return weights;
}

// C as one row of n values; refuses what differs from row to row.
std::shared_ptr<const Tensor> ScaledBias(const NodeSpec& spec, float beta, int64_t n) {
  const std::vector<float> values = ConstantFloats(spec, 2);
  const Shape& shape = spec.inputs[2].constant->shape();
  const int64_t count = static_cast<int64_t>(values.size());
  const bool row = count == n && (shape.empty() || shape.back() == n);
  if (count != 1 && !row) {
    Refuse(spec, fmt::format("C has shape {}, supported are a scalar and one row of {} values",
                             ShapeToString(shape), n));
  }
  auto bias = std::make_shared<Tensor>(Shape{n});
  for (int64_t i = 0; i < n; ++i) bias->floats()[i] = beta * values[count == 1 ? 0 : i];
  return bias;
}

BuiltOp BuildGemm(const NodeSpec& spec) {
  NeedInputs(spec, 2, 3);
  const Shape& input = ShapeOfRank(spec, 0, 2);
  if (spec.Int("transA", 0) != 0) Refuse(spec, "transA is 1, which is not supported for activations");
  const std::shared_ptr<const Tensor> weights =
      ScaledWeights(spec, spec.Float("alpha", 1), spec.Int("transB", 0) != 0);
  if (weights->shape()[0] != input[1]) {
    Refuse(spec, fmt::format("A is {} and B (transposed as asked) {}: the inner sizes differ",
                             ShapeToString(input), ShapeToString(weights->shape())));
  }
  const float beta = spec.Float("beta", 1);
  const bool has_bias = spec.HasInput(2) && beta != 0;
  const std::shared_ptr<const Tensor> bias = has_bias ? ScaledBias(spec, beta, weights->shape()[1]) : nullptr;
  return BuiltWithInputs(std::make_shared<GemmOp>(weights, bias), 1);
}

BuiltOp BuildMatMul(const NodeSpec& spec) {
  NeedInputs(spec, 2, 2);
  const NodeInput &a = spec.inputs[0], &b = spec.inputs[1];
  if (a.type != DataType::kF32 || b.type != DataType::kF32) Refuse(spec, "only float matrices are supported");
  if (a.shape.size() < 2 || b.shape.size() < 2) Refuse(spec, "vectors are not supported, only matrices");
  if (b.constant && b.shape.size() == 2 && !a.constant) {
    return BuiltWithInputs(std::make_shared<GemmOp>(b.constant, nullptr), 1);
  }
  return BuiltWithInputs(std::make_shared<MatMulOp>(), 2);
}

}  // namespace

GemmOp::GemmOp(std::shared_ptr<const Tensor> weights, std::shared_ptr<const Tensor> bias,
               Activation activation)
    : weights_(std::move(weights)), bias_(std::move(bias)), activation_(activation) {
  TILESMITH_CHECK(weights_ && weights_->shape().size() == 2 && (!bias_ || bias_->size() == n()));
}

std::string GemmOp::Signature() const {
  const std::string activation = ActivationToString(activation_);
  return fmt::format("Gemm k{}n{}{}{}{}", k(), n(), bias_ ? "+bias" : "", activation.empty() ? "" : "+",
                     activation);
}

Shape GemmOp::InferShape(std::span<const Shape> inputs) const {
  if (inputs[0].size() < 2 || inputs[0].back() != k()) {
    throw Error(ErrorCode::kBadModel,
                fmt::format("{} cannot multiply {}", Signature(), ShapeToString(inputs[0])));
  }
  Shape shape = inputs[0];
  shape.back() = n();
  return shape;
}

Tensor GemmOp::Reference(std::span<const Tensor* const> inputs) const {
  const Shape shapes[] = {inputs[0]->shape()};
  Tensor output(InferShape(shapes));
  const int64_t rows = n() == 0 ? 0 : output.size() / n();
  const RowMatrix<double> a = FloatMap(inputs[0]->floats(), rows, k()).cast<double>();
  constexpr int64_t kColumns = 64;
#pragma omp parallel for schedule(dynamic)
  for (int64_t first = 0; first < n(); first += kColumns) {
    const int64_t columns = std::min(kColumns, n() - first);
    const RowMatrix<double> b =
        FloatMap(weights_->floats(), k(), n()).middleCols(first, columns).cast<double>();
    RowMatrix<double> product(rows, columns);
    product.noalias() = a * b;
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) {
        const double value = product(i, j) + (bias_ ? bias_->floats()[first + j] : 0.0f);
        output.floats()[i * n() + first + j] = activation_.Apply(static_cast<float>(value));
      }
    }
  }
  return output;
}

std::unique_ptr<Kernel> GemmOp::MakeKernel(const KernelRequest& request) const {
  return MakeGemmKernel(request, *weights_, bias_.get(), activation_);
}

double GemmOp::Flops(std::span<const Shape> inputs) const { return 2.0 * ElementCount(inputs[0]) * n(); }

Shape MatMulOp::InferShape(std::span<const Shape> inputs) const {
  const Shape &a = inputs[0], &b = inputs[1];
  std::optional<Shape> batch;
  if (a.size() >= 2 && b.size() >= 2 && a.back() == b[b.size() - 2]) {
    batch = BroadcastShapes(Shape(a.begin(), a.end() - 2), Shape(b.begin(), b.end() - 2));
  }
  if (!batch) {
    throw Error(ErrorCode::kBadModel,
                fmt::format("MatMul cannot multiply {} by {}", ShapeToString(a), ShapeToString(b)));
  }
  batch->push_back(a[a.size() - 2]);
  batch->push_back(b.back());
  return *batch;
}

Tensor MatMulOp::Reference(std::span<const Tensor* const> inputs) const {
  const Shape shapes[] = {inputs[0]->shape(), inputs[1]->shape()};
  Tensor output(InferShape(shapes));
  const Shape &a = shapes[0], &b = shapes[1], &out = output.shape();
  const int64_t m = a[a.size() - 2], k = a.back(), n = b.back();
  const Shape batch(out.begin(), out.end() - 2);
  const std::vector<int64_t> from_a = BroadcastIndices(Shape(a.begin(), a.end() - 2), batch);
  const std::vector<int64_t> from_b = BroadcastIndices(Shape(b.begin(), b.end() - 2), batch);
  for (size_t i = 0; i < from_a.size(); ++i) {
    const FloatMap left(inputs[0]->floats() + from_a[i] * m * k, m, k);
    const FloatMap right(inputs[1]->floats() + from_b[i] * k * n, k, n);
    Eigen::Map<RowMatrix<float>>(output.floats() + i * m * n, m, n) =
        (left.cast<double>() * right.cast<double>()).cast<float>();
  }
  return output;
}

double MatMulOp::Flops(std::span<const Shape> inputs) const {
  return 2.0 * ElementCount(InferShape(inputs)) * inputs[0].back();
}

std::vector<OpImporter> GemmImporters() { return {{"Gemm", BuildGemm}, {"MatMul", BuildMatMul}}; }

}  // namespace tilesmith
