#include "ops/dense/matmul.h"

#include <fmt/format.h>

#include <algorithm>

#include "layouts/base/error.h"
#include "layouts/base/sizes.h"
#include "ops/base/broadcast.h"
#include "ops/base/matrix.h"
#include "ops/base/rounding.h"
#include "ops/base/saved_op.h"
#include "ops/dense/strided.h"

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

Tensor MatMulOp::RoundingBound(const OpRun& run) const {
  MatMulParams params = params_;
  params.scale = std::abs(params.scale);
  params.activation = {};
  if (params.bias) params.bias = std::make_shared<const Tensor>(Absolute(*params.bias));
  const Shape shapes[] = {run.inputs[0]->shape(), run.inputs[1]->shape()};
  const auto terms = static_cast<double>(ShapesOf(params, shapes).k);
  return BoundsOf(OfAbsolutes(MatMulOp(params), run.inputs), 2 + SumRoundings(terms), params_.activation);
}

std::vector<SavedOp> MatMulOps() { return {Saved<MatMulOp>("MatMul")}; }

}  // namespace tilesmith
