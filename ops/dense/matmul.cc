#include "ops/dense/matmul.h"

#include <fmt/format.h>

#include <algorithm>

#include "layouts/base/error.h"
#include "layouts/base/sizes.h"
#include "ops/base/broadcast.h"
#include "ops/dense/matmul_kernel.h"
#include "ops/dense/matrix.h"

namespace tilesmith {
namespace {

std::string PostText(const MatMulParams& p) {
  std::string text;
  if (p.scale != 1) text += fmt::format("+scale:{:.9g}", p.scale);
  if (p.bias) text += "+bias";
  const std::string activation = ActivationToString(p.activation);
  return activation.empty() ? text : text + "+" + activation;
}

}  // namespace

int64_t DefaultPanelColumns(int64_t m, int64_t n, int64_t k, const Target& cpu) {
  constexpr int64_t kPanelsPerCore = 4, kWide[] = {kMaxPanelColumns, 96, 64};
  const int64_t row_panels = std::max<int64_t>(CeilDiv(m, kPanelRows), 1);
  const Checked left = Checked(CeilDiv(m, row_panels)) * k * int64_t{sizeof(float)};
  if (left.value() <= cpu.l2_bytes / 2) return kPanelColumns;
  for (const int64_t columns : kWide)
    if (n >= columns && row_panels * (n / columns) >= kPanelsPerCore * cpu.cores) return columns;
  return kPanelColumns;
}

MatMulShapes ShapesOf(const MatMulParams& params, std::span<const Shape> inputs) {
  MatMulShapes s{.a = params.a.Seen(inputs[0]), .b = params.b.Seen(inputs[1]), .batch = {}, .out = {}};
  const bool row = s.a.size() == 1, column = s.b.size() == 1;
  if (row) s.a.insert(s.a.begin(), 1);
  if (column) s.b.push_back(1);
  std::optional<Shape> batch;
  if (s.a.size() >= 2 && s.b.size() >= 2 && s.a.back() == s.b[s.b.size() - 2]) {
    batch = BroadcastShapes(BatchOf(s.a), BatchOf(s.b));
  }
  if (!batch) {
    throw Error(ErrorCode::kBadModel,
                fmt::format("MatMul cannot multiply {} by {}", ShapeToString(s.a), ShapeToString(s.b)));
  }
  s.batch = *batch;
  s.m = s.a[s.a.size() - 2], s.k = s.a.back(), s.n = s.b.back();
  s.out = s.batch;
  if (!row) s.out.push_back(s.m);
  if (!column) s.out.push_back(s.n);
  if (params.bias && params.bias->size() != s.n) {
    throw Error(ErrorCode::kBadModel,
                fmt::format("MatMul adds {} values to {} columns", params.bias->size(), s.n));
  }
  return s;
}

std::string MatMulOp::Signature() const {
  const auto part = [](const char* name, const std::string& text) { return text.empty() ? "" : name + text; };
  const Arrangement out{params_.out_shape, params_.out_perm};
  return "MatMul" + part(" a:", params_.a.ToString()) + part(" b:", params_.b.ToString()) +
         part(" out:", out.ToString()) + PostText(params_);
}

Shape MatMulOp::InferShape(std::span<const Shape> inputs) const {
  return WrittenAs(ShapesOf(params_, inputs).out, params_.out_perm, params_.out_shape).tensor;
}

Tensor MatMulOp::Reference(std::span<const Tensor* const> inputs) const {
  const Shape shapes[] = {inputs[0]->shape(), inputs[1]->shape()};
  const MatMulShapes s = ShapesOf(params_, shapes);
  const Tensor a = Arranged(params_.a, *inputs[0]), b = Arranged(params_.b, *inputs[1]);
  Tensor seen(s.out);
  const std::vector<int64_t> from_a = BroadcastIndices(BatchOf(s.a), s.batch);
  const std::vector<int64_t> from_b = BroadcastIndices(BatchOf(s.b), s.batch);
  for (size_t i = 0; i < from_a.size(); ++i) {
    const FloatMap left(a.floats() + from_a[i] * s.m * s.k, s.m, s.k);
    const FloatMap right(b.floats() + from_b[i] * s.k * s.n, s.k, s.n);
    const RowMatrix<double> product = left.cast<double>() * right.cast<double>();
    for (int64_t j = 0; j < s.m * s.n; ++j) {
      const double bias = params_.bias ? params_.bias->floats()[j % s.n] : 0.0;
      const auto value = static_cast<float>(params_.scale * product(j / s.n, j % s.n) + bias);
      seen.floats()[static_cast<int64_t>(i) * s.m * s.n + j] = params_.activation.Apply(value);
    }
  }
  return ArrangedBack(WrittenAs(s.out, params_.out_perm, params_.out_shape), seen);
}

double MatMulOp::Flops(std::span<const Shape> inputs) const {
  const MatMulShapes s = ShapesOf(params_, inputs);
  return 2.0 * static_cast<double>(ElementCount(s.out)) * static_cast<double>(s.k);
}

std::unique_ptr<Kernel> MatMulOp::MakeKernel(const KernelRequest& request) const {
  return MakeMatMulKernel(request, params_);
}

}  // namespace tilesmith
