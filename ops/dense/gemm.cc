#include "ops/dense/gemm.h"

#include <fmt/format.h>

#include <algorithm>

#include "layouts/base/check.h"
#include "layouts/base/sizes.h"
#include "layouts/base/thread_team.h"
#include "layouts/derived_tensors.h"
#include "ops/base/import_util.h"
#include "ops/base/matrix.h"
#include "ops/base/node_writer.h"
#include "ops/base/rounding.h"
#include "ops/dense/matmul.h"
#include "ops/elementwise/batch_norm.h"

namespace tilesmith {
namespace {

std::shared_ptr<const Tensor> FloatMatrix(const NodeSpec& spec, size_t index) {
  if (spec.Constant(index).type() != DataType::kF32) Refuse(spec, "only float matrices are supported");
  ShapeOfRank(spec, index, 2);
  return spec.inputs[index].constant;
}

// The constant matrix at input 1 times alpha, as {N, K}; `transposed` says that it is stated so.
std::shared_ptr<const Tensor> ImportWeights(const NodeSpec& spec, float alpha, bool transposed) {
  std::shared_ptr<const Tensor> given = FloatMatrix(spec, 1);
  if (alpha == 1 && transposed) return given;
  Derivation derivation(transposed ? "alpha * B" : "alpha * B'");
  derivation.Add(given).Add(std::span(&alpha, 1));
  return Derived(std::move(derivation), [&] {
    const int64_t rows = given->shape()[0], columns = given->shape()[1];
    auto weights = std::make_shared<Tensor>(transposed ? Shape{rows, columns} : Shape{columns, rows});
    Eigen::Map<RowMatrix<float>> result(weights->floats(), weights->shape()[0], weights->shape()[1]);
    const FloatMap matrix(given->floats(), rows, columns);
    if (transposed) {
      result = alpha * matrix;
      return weights;
    }
    constexpr int64_t kTile = 32;  // rows and columns that stay in the first-level cache
    ForEachIndex(CeilDiv(columns, kTile), [&](int64_t strip) {
      const int64_t j = strip * kTile, width = std::min(kTile, columns - j);
      for (int64_t i = 0; i < rows; i += kTile) {
        const int64_t height = std::min(kTile, rows - i);
        result.block(j, i, width, height) = alpha * matrix.block(i, j, height, width).transpose();
      }
    });
    return weights;
  });
}

// What the matrix at input 1 was dequantised from, as {N, K}, or null.
std::shared_ptr<const QuantizedTensor> StoredMatrix(const NodeInput& b, bool transposed) {
  if (transposed || b.stored == nullptr) return b.stored;
  const auto& [given, quantization] = *b.stored;
  if (!IsByte(quantization.type)) return nullptr;
  const int64_t rows = given->shape()[0], columns = given->shape()[1];
  auto stored = std::make_shared<Tensor>(Shape{columns, rows}, Layout::Nchw(given->type()));
  for (int64_t j = 0; j < columns; ++j) {
    for (int64_t i = 0; i < rows; ++i) stored->raw()[j * rows + i] = given->raw()[i * columns + j];
  }
  QuantizedTensor result{stored, quantization};
  result.quantization.axis = 1 - quantization.axis;
  return std::make_shared<const QuantizedTensor>(std::move(result));
}

// Whether C is one row of n values that are known now, or one value.
bool IsConstantRow(const NodeInput& c, int64_t n) {
  if (!c.constant) return false;
  const int64_t count = c.constant->size();
  return count == 1 || (count == n && c.shape.back() == n);
}

// C as one row of n values. Precondition: IsConstantRow.
std::shared_ptr<const Tensor> ScaledBias(const NodeSpec& spec, float beta, int64_t n) {
  const std::vector<float> values = ConstantFloats(spec, 2);
  const auto count = static_cast<int64_t>(values.size());
  auto bias = std::make_shared<Tensor>(Shape{n});
  for (int64_t i = 0; i < n; ++i) bias->floats()[i] = beta * values[count == 1 ? 0 : i];
  return bias;
}

// The product, and C, any matrix or none that is known, added to it.
BuiltOp BuildWithMatrix(const NodeSpec& spec) {
  NodeWriter writer(spec);
  Attributes attributes = spec.attributes;
  attributes.erase("beta");
  const float beta = spec.Float("beta", 1);
  const std::string c = beta == 1 ? writer.In(2) : writer.Add("Mul", {writer.In(2), writer.Float(beta)});
  const std::string product = writer.Add("Gemm", {writer.In(0), writer.In(1)}, std::move(attributes));
  writer.Add("Add", {product, c}, {}, writer.Out(0));
  return writer.Take();
}

// A Gemm of two activations, of the columns of one, or of what is known.
BuiltOp BuildProduct(const NodeSpec& spec, float beta, int64_t n) {
  MatMulParams params;
  if (spec.Int("transA", 0) != 0) params.a.perm = {1, 0};
  if (spec.Int("transB", 0) != 0) params.b.perm = {1, 0};
  params.scale = spec.Float("alpha", 1);
  if (beta != 0) params.bias = ScaledBias(spec, beta, n);
  return BuiltWithInputs(std::make_shared<MatMulOp>(std::move(params)), 2);
}

BuiltOp BuildGemm(const NodeSpec& spec) {
  NeedInputs(spec, 2, 3);
  const Shape& input = ShapeOfRank(spec, 0, 2);
  const bool transposed = spec.Int("transB", 0) != 0;
  const float beta = spec.HasInput(2) ? spec.Float("beta", 1) : 0;
  const int64_t columns = ShapeOfRank(spec, 1, 2)[transposed ? 0 : 1];
  if (beta != 0 && !IsConstantRow(spec.inputs[2], columns)) return BuildWithMatrix(spec);
  if (spec.Int("transA", 0) != 0 || !spec.inputs[1].constant || spec.inputs[0].constant)
    return BuildProduct(spec, beta, columns);
  const float alpha = spec.Float("alpha", 1);
  const std::shared_ptr<const Tensor> weights = ImportWeights(spec, alpha, transposed);
  const int64_t k = weights->shape()[1], n = weights->shape()[0];
  if (k != input[1]) {
    Refuse(spec, fmt::format("A is {} and B (transposed as asked) {}x{}: the inner sizes differ",
                             ShapeToString(input), k, n));
  }
  const std::shared_ptr<const Tensor> bias = beta != 0 ? ScaledBias(spec, beta, n) : nullptr;
  StoredWeights stored;
  if (alpha == 1) stored.weights = StoredMatrix(spec.inputs[1], transposed);
  if (beta == 1 && spec.inputs[2].constant->size() == n) stored.bias = spec.inputs[2].stored;
  return BuiltWithInputs(std::make_shared<GemmOp>(weights, bias, Activation(), false, std::move(stored)), 1);
}

BuiltOp BuildMatMul(const NodeSpec& spec) {
  NeedInputs(spec, 2, 2);
  const NodeInput &a = spec.inputs[0], &b = spec.inputs[1];
  if (a.type != DataType::kF32 || b.type != DataType::kF32) Refuse(spec, "only float matrices are supported");
  if (b.constant && b.shape.size() == 2 && !a.constant) {
    const StoredWeights stored{StoredMatrix(b, false), nullptr};
    return BuiltWithInputs(
        std::make_shared<GemmOp>(ImportWeights(spec, 1, false), nullptr, Activation(), false, stored), 1);
  }
  return BuiltWithInputs(std::make_shared<MatMulOp>(), 2);
}

}  // namespace

GemmOp::GemmOp(std::shared_ptr<const Tensor> weights, std::shared_ptr<const Tensor> bias,
               Activation activation, bool sum, StoredWeights stored)
    : weights_(std::move(weights)),
      bias_(std::move(bias)),
      activation_(activation),
      sum_(sum),
      stored_(std::move(stored)) {
  TILESMITH_CHECK(weights_ && weights_->shape().size() == 2 && (!bias_ || bias_->size() == n()));
}

std::string GemmOp::Signature() const {
  const std::string activation = ActivationToString(activation_);
  return fmt::format("Gemm k{}n{}{}{}{}{}", k(), n(), bias_ ? "+bias" : "", sum_ ? "+sum" : "",
                     activation.empty() ? "" : "+", activation);
}

Shape GemmOp::InferShape(std::span<const Shape> inputs) const {
  Shape shape = inputs[0];
  if (!shape.empty()) shape.back() = n();
  const bool fits =
      !shape.empty() && inputs[0].back() == k() && (!sum_ || (inputs.size() == 2 && inputs[1] == shape));
  if (!fits) {
    throw Error(ErrorCode::kBadModel,
                fmt::format("{} cannot multiply {}", Signature(), ShapeToString(inputs[0])));
  }
  return shape;
}

Tensor GemmOp::Reference(std::span<const Tensor* const> inputs) const {
  std::vector<Shape> shapes;
  for (const Tensor* input : inputs) shapes.push_back(input->shape());
  Tensor output(InferShape(shapes));
  const int64_t rows = n() == 0 ? 0 : output.size() / n();
  const RowMatrix<double> a = FloatMap(inputs[0]->floats(), rows, k()).cast<double>();
  constexpr int64_t kColumns = 64;
  ForEachIndex(CeilDiv(n(), kColumns), [&](int64_t block) {
    const int64_t first = block * kColumns, columns = std::min(kColumns, n() - first);
    const RowMatrix<double> b =
        FloatMap(weights_->floats(), n(), k()).middleRows(first, columns).cast<double>();
    RowMatrix<double> product(rows, columns);
    product.noalias() = a * b.transpose();
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) {
        const int64_t at = i * n() + first + j;
        double value = product(i, j);
        if (bias_) value += bias_->floats()[first + j];
        if (sum_) value += inputs[1]->floats()[at];
        output.floats()[at] = activation_.Apply(static_cast<float>(value));
      }
    }
  });
  return output;
}

double GemmOp::Flops(std::span<const Shape> inputs) const { return 2.0 * ElementCount(inputs[0]) * n(); }

// Gemm (constant B, C constant and the same for every row), and MatMul, which is one where its right side is
// a constant matrix.
std::vector<OpImporter> GemmImporters() { return {{"Gemm", BuildGemm}, {"MatMul", BuildMatMul}}; }

Tensor GemmOp::RoundingBound(const OpRun& run) const {
  const Tensor& input = *run.inputs[0];
  const int64_t rows = n() == 0 ? 0 : run.output.size() / n();
  const float* weights = weights_->floats();
  std::vector<double> columns(n(), 0);
  for (int64_t i = 0; i < k() * n(); ++i) columns[i / k()] += double{weights[i]} * weights[i];
  Tensor magnitudes(run.output.shape());
  for (int64_t r = 0; r < rows; ++r) {
    double squares = 0;
    for (int64_t i = 0; i < k(); ++i)
      squares += double{input.floats()[r * k() + i]} * input.floats()[r * k() + i];
    for (int64_t j = 0; j < n(); ++j) {
      const double bias = bias_ ? std::abs(bias_->floats()[j]) : 0;
      magnitudes.floats()[r * n() + j] = static_cast<float>(std::sqrt(squares * columns[j]) + bias);
    }
  }
  return BoundsOf(magnitudes, SumRoundings(static_cast<double>(k() + 1)), activation_);
}

OpPtr GemmOp::WithActivation(const Activation& activation) const {
  if (activation_.kind != ActivationKind::kNone) return nullptr;
  return std::make_shared<GemmOp>(weights_, bias_, activation, sum_);
}

OpPtr GemmOp::WithResidual() const {
  if (sum_ || activation_.kind != ActivationKind::kNone) return nullptr;
  return std::make_shared<GemmOp>(weights_, bias_, Activation(), true);
}

// Channels are along axis 1, the columns of a matrix; in other ranks one value for all of them fits, too.
OpPtr GemmOp::WithScaleShift(const ScaleShiftOp& op, const Shape& output) const {
  if (sum_ || activation_.kind != ActivationKind::kNone) return nullptr;
  const auto differs = [](const std::vector<float>& values) {
    return values.empty() || std::ranges::any_of(values, [&](float value) { return value != values[0]; });
  };
  const bool matrix = output.size() == 2;
  if (!matrix && (differs(op.scale()) || differs(op.shift()))) return nullptr;
  const ScaleShiftOp columns =
      matrix ? op
             : ScaleShiftOp(std::vector<float>(n(), op.scale()[0]), std::vector<float>(n(), op.shift()[0]));
  return std::make_shared<GemmOp>(columns.ScaledWeights(weights_, k()), columns.ScaledBias(bias_.get()),
                                  op.activation());
}

}  // namespace tilesmith
