#include "ops/dense/matmul_kernel.h"

#include <algorithm>

#include "ops/dense/strided.h"

namespace tilesmith {
namespace {

// The strides of an operand, the axis that makes a vector a matrix among them.
SeenStrides MatrixStrides(const Arrangement& arrangement, const Shape& tensor, bool row, bool column) {
  SeenStrides seen = StridesOf(arrangement, tensor);
  if (row) {
    seen.strides.insert(seen.strides.begin(), 0);
    if (seen.image >= 0) ++seen.image;
  }
  if (column) seen.strides.push_back(0);
  return seen;
}

class MatMulKernel : public Kernel {
 public:
  MatMulKernel(const KernelRequest& request, const MatMulParams& params)
      : MatMulKernel(request, params, ShapesOf(params, request.inputs)) {}

  int64_t Tasks(int) const override { return count_ * row_panels_ * column_panels_; }
  int64_t ScratchBytes(int threads) const override { return threads * kThreadBytes; }

  void Run(const KernelArgs& args, int, TaskRange range) const override {
    float* const sums = args.scratch_at<float>(range.thread * kThreadBytes);
    float* const packed = sums + kPanelRows * kPanelColumns;
    const Images<const float> left = FloatsOf(args.inputs[0]), right = FloatsOf(args.inputs[1]);
    const Images<float> out = FloatsOf(args.output);
    const int64_t a_row = a_.row(left.stride), a_term = a_.column(left.stride);
    const int64_t b_term = b_.row(right.stride), b_column = b_.column(right.stride);
    const int64_t out_row = out_.row(out.stride), out_column = out_.column(out.stride);
    for (int64_t task = range.begin; task < range.end; ++task) {
      const int64_t index = task / column_panels_ / row_panels_;
      const int64_t row = task / column_panels_ % row_panels_ * panel_rows_;
      const int64_t column = task % column_panels_ * kPanelColumns;
      const int64_t rows = std::min(panel_rows_, m_ - row), columns = std::min(kPanelColumns, n_ - column);
      const float* a = left.data + a_.Offset(index, left.stride) + row * a_row;
      const float* b = right.data + b_.Offset(index, right.stride) + column * b_column;
      std::fill_n(sums, rows * kPanelColumns, 0.0f);
      for (int64_t k = 0; k < k_; k += kPanelTerms) {
        const int64_t terms = std::min(kPanelTerms, k_ - k);
        PanelProduct product{.a = a + k * a_term,
                             .a_row = a_row,
                             .a_term = a_term,
                             .rows = rows,
                             .terms = terms,
                             .sums = sums};
        SetRight(loops_, {b + k * b_term, b_term, b_column, terms, columns}, packed, product);
        loops_.add(product);
      }
      loops_.store({.sums = sums,
                    .out = out.data + out_.Offset(index, out.stride) + row * out_row + column * out_column,
                    .out_row = out_row,
                    .out_column = out_column,
                    .rows = rows,
                    .columns = columns,
                    .scale = params_.scale,
                    .bias = params_.bias ? params_.bias->floats() + column : nullptr,
                    .activation = params_.activation});
    }
  }

 private:
  static constexpr int64_t kThreadBytes = (kPanelRows + kPanelTerms) * kPanelColumns * sizeof(float);

  MatMulKernel(const KernelRequest& request, const MatMulParams& params, const MatMulShapes& s)
      : params_(params),
        loops_(request.cpu.isa),
        m_(s.m),
        n_(s.n),
        k_(s.k),
        count_(ElementCount(s.batch)),
        row_panels_(CeilDiv(m_, kPanelRows)),
        panel_rows_(row_panels_ == 0 ? 0 : CeilDiv(m_, row_panels_)),
        column_panels_(CeilDiv(n_, kPanelColumns)),
        a_(s.a, MatrixStrides(params.a, request.inputs[0], IsVector(params.a, request.inputs[0]), false),
           s.batch),
        b_(s.b, MatrixStrides(params.b, request.inputs[1], false, IsVector(params.b, request.inputs[1])),
           s.batch),
        out_(MakeOut(request, params, s)) {}

  static bool IsVector(const Arrangement& arrangement, const Shape& tensor) {
    return arrangement.Seen(tensor).size() == 1;
  }

  static StridedBatch MakeOut(const KernelRequest& request, const MatMulParams& params,
                              const MatMulShapes& s) {
    const Written written = WrittenAs(s.out, params.out_perm, params.out_shape);
    SeenStrides strides = StridesOf(written.arrangement, written.tensor);
    const auto at = [&](size_t from_end) {  // where an axis that was dropped has its place
      strides.strides.insert(strides.strides.end() - static_cast<int64_t>(from_end), 0);
      if (strides.image >= static_cast<int>(strides.strides.size() - 1 - from_end)) ++strides.image;
    };
    if (IsVector(params.b, request.inputs[1])) at(0);
    if (IsVector(params.a, request.inputs[0])) at(1);
    Shape seen = s.batch;
    seen.push_back(s.m);
    seen.push_back(s.n);
    return {seen, strides, s.batch};
  }

  const MatMulParams params_;
  const ProductLoops loops_;
  const int64_t m_, n_, k_, count_, row_panels_, panel_rows_, column_panels_;
  const StridedBatch a_, b_, out_;
};

}  // namespace

std::unique_ptr<Kernel> MakeMatMulKernel(const KernelRequest& request, const MatMulParams& params) {
  return std::make_unique<MatMulKernel>(request, params);
}

}  // namespace tilesmith
