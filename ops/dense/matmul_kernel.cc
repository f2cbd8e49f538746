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

constexpr int64_t kCacheLine = 64;

class MatMulKernel : public Kernel {
 public:
  MatMulKernel(const KernelRequest& request, const MatMulParams& params)
      : MatMulKernel(request, params, ShapesOf(params, request.inputs)) {}

  int64_t Tasks(int) const override { return count_ * row_panels_ * column_panels_; }
  int64_t ScratchBytes(int threads) const override { return (Checked(threads) * thread_bytes_).value(); }

  void Run(const KernelArgs& args, int, TaskRange range) const override {
    Work work;
    work.sums = args.scratch_at<float>(range.thread * thread_bytes_);
    work.right = work.sums + panel_rows_ * schedule_.panel_columns;
    work.left = work.right + schedule_.panel_terms * schedule_.panel_columns;
    const Images<const float> left = FloatsOf(args.inputs[0]), right = FloatsOf(args.inputs[1]);
    const Images<float> out = FloatsOf(args.output);
    work.a_row = a_.row(left.stride), work.a_term = a_.column(left.stride);
    work.b_term = b_.row(right.stride), work.b_column = b_.column(right.stride);
    work.out_row = out_.row(out.stride), work.out_column = out_.column(out.stride);
    const int64_t panels = row_panels_ * column_panels_;
    for (int64_t task = range.begin; task < range.end; ++task) {
      const int64_t index = task / panels, panel = task % panels;
      const bool inner = schedule_.rows_inner;
      work.row = (inner ? panel % row_panels_ : panel / column_panels_) * panel_rows_;
      work.column = (inner ? panel / row_panels_ : panel % column_panels_) * schedule_.panel_columns;
      work.rows = std::min(panel_rows_, m_ - work.row);
      work.columns = std::min(schedule_.panel_columns, n_ - work.column);
      work.a = left.data + a_.Offset(index, left.stride) + work.row * work.a_row;
      work.b = right.data + b_.Offset(index, right.stride) + work.column * work.b_column;
      work.out =
          out.data + out_.Offset(index, out.stride) + work.row * work.out_row + work.column * work.out_column;
      RunPanel(work);
    }
  }

 private:
  // A panel, and the thread's scratch.
  struct Work {
    float *sums, *right, *left;
    int64_t a_row, a_term, b_term, b_column, out_row, out_column;
    int64_t row, column, rows, columns;
    const float *a, *b;
    float* out;
  };

  void RunPanel(const Work& work) const {
    if (k_ == 0) std::fill_n(work.sums, work.rows * schedule_.panel_columns, 0.0f);
    for (int64_t k = 0; k < k_; k += schedule_.panel_terms) {
      const int64_t terms = std::min(schedule_.panel_terms, k_ - k);
      PanelProduct product{.a = work.a + k * work.a_term,
                           .a_row = work.a_row,
                           .a_term = work.a_term,
                           .rows = work.rows,
                           .terms = terms,
                           .sums = work.sums,
                           .sums_row = schedule_.panel_columns,
                           .fresh = k == 0,
                           .tile_rows = schedule_.tile_rows,
                           .tile_vectors = schedule_.tile_vectors};
      if (schedule_.pack_left) {
        PackBlock(loops_, {product.a, work.a_term, work.a_row, terms, work.rows},
                  {work.left, panel_rows_, work.rows});
        product.a = work.left, product.a_row = 1, product.a_term = panel_rows_;
      }
      SetRight(loops_, {work.b + k * work.b_term, work.b_term, work.b_column, terms, work.columns},
               work.right, product, schedule_.pack_right);
      loops_.add(product);
    }
    loops_.store({.sums = work.sums,
                  .sums_row = schedule_.panel_columns,
                  .out = work.out,
                  .out_row = work.out_row,
                  .out_column = work.out_column,
                  .rows = work.rows,
                  .columns = work.columns,
                  .scale = params_.scale,
                  .bias = params_.bias ? params_.bias->floats() + work.column : nullptr,
                  .activation = params_.activation});
  }

  MatMulKernel(const KernelRequest& request, const MatMulParams& params, const MatMulShapes& s)
      : params_(params),
        schedule_(Completed(params.schedule, s, request.cpu)),
        loops_(request.cpu),
        m_(s.m),
        n_(s.n),
        k_(s.k),
        count_(ElementCount(s.batch)),
        column_panels_(CeilDiv(n_, schedule_.panel_columns)),
        a_(s.a, MatrixStrides(params.a, request.inputs[0], IsVector(params.a, request.inputs[0]), false),
           s.batch),
        b_(s.b, MatrixStrides(params.b, request.inputs[1], false, IsVector(params.b, request.inputs[1])),
           s.batch),
        out_(MakeOut(request, params, s)),
        row_panels_(CeilDiv(m_, MostPanelRows())),
        panel_rows_(row_panels_ == 0 ? 0 : CeilDiv(m_, row_panels_)),
        thread_bytes_(ThreadBytes()) {}

  static MatMulSchedule Completed(MatMulSchedule schedule, const MatMulShapes& s, const Target& cpu) {
    if (schedule.panel_columns == 0) schedule.panel_columns = DefaultPanelColumns(s.m, s.n, s.k, cpu);
    return schedule;
  }

  // A right side that must be transposed is so once for each panel of rows: the panels are higher then.
  int64_t MostPanelRows() const {
    if (schedule_.panel_rows > 0) return schedule_.panel_rows;
    return b_.column(0) == 1 ? kPanelRows : 2 * kPanelRows;
  }

  int64_t ThreadBytes() const {
    const Checked sums = Checked(panel_rows_) * schedule_.panel_columns;
    const Checked right = Checked(schedule_.panel_terms) * schedule_.panel_columns;
    const Checked left = Checked(schedule_.pack_left ? schedule_.panel_terms : 0) * panel_rows_;
    return CeilDiv(((sums + right + left) * int64_t{sizeof(float)}).value(), kCacheLine) * kCacheLine;
  }

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
  const MatMulSchedule schedule_;
  const ProductLoops loops_;
  const int64_t m_, n_, k_, count_, column_panels_;
  const StridedBatch a_, b_, out_;
  const int64_t row_panels_, panel_rows_, thread_bytes_;
};

}  // namespace

std::unique_ptr<Kernel> MakeMatMulKernel(const KernelRequest& request, const MatMulParams& params) {
  return std::make_unique<MatMulKernel>(request, params);
}

}  // namespace tilesmith
