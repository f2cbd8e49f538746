#include "ops/dense/attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "layouts/base/error.h"
#include "ops/base/broadcast.h"
#include "ops/base/elementary.h"
#include "ops/base/import_util.h"
#include "ops/base/matrix.h"
#include "ops/base/rounding.h"
#include "ops/base/saved_op.h"
#include "ops/dense/matmul.h"
#include "ops/dense/strided.h"

namespace tilesmith {
namespace {

// The largest Euclidean norm of a row.
double LargestRowNorm(const Tensor& matrices) {
  const int64_t width = matrices.shape().back();
  double largest = 0;
  for (int64_t at = 0; at < matrices.size(); at += width) {
    double squares = 0;
    for (int64_t i = at; i < at + width; ++i) squares += double{matrices.floats()[i]} * matrices.floats()[i];
    largest = std::max(largest, std::sqrt(squares));
  }
  return largest;
}

Shape WithMatrix(Shape leading, int64_t rows, int64_t columns) {
  leading.push_back(rows);
  leading.push_back(columns);
  return leading;
}

// Queries, keys or values of several heads: [batch, heads, rows, width], or [batch, rows, heads * width].
struct Heads {
  int64_t batch = 0, heads = 0, rows = 0, width = 0;
  bool packed = false;  // rank 3
};

Heads HeadsOf(const NodeSpec& spec, size_t index, std::string_view attribute) {
  const Shape& shape = spec.inputs[index].shape;
  if (shape.size() == 4) return {shape[0], shape[1], shape[2], shape[3], false};
  if (shape.size() != 3) {
    Refuse(spec, fmt::format("input {} has shape {}, only ranks 3 and 4 are supported", index,
                             ShapeToString(shape)));
  }
  const int64_t heads = spec.Int(attribute, 0);
  if (heads < 1 || shape[2] % heads != 0) {
    Refuse(spec, fmt::format("{} is {}, which does not divide the {} values of input {}", attribute, heads,
                             shape[2], index));
  }
  return {shape[0], heads, shape[1], shape[2] / heads, true};
}

// As [batch, groups, heads of a group, rows, width]: heads of a group of queries share one of keys and
// values.
Arrangement Grouped(const Heads& h, int64_t groups) {
  const int64_t each = h.heads / groups;
  if (!h.packed) return {{h.batch, groups, each, h.rows, h.width}, {}};
  return {{h.batch, h.rows, groups, each, h.width}, {0, 2, 3, 1, 4}};
}

// A mask for scores that are seen as [batch, groups, heads of a group, rows, keys].
Arrangement MaskArrangement(const NodeSpec& spec, int64_t heads, int64_t groups) {
  const NodeInput& mask = spec.inputs[3];
  const Shape& shape = mask.shape;
  const size_t rank = shape.size();
  const auto refuse = [&](std::string_view reason) {
    Refuse(spec, fmt::format("a mask of shape {} {}", ShapeToString(shape), reason));
  };
  if (mask.type != DataType::kF32) refuse("that is none of floats is not supported");
  if (rank < 2 || rank > 4) refuse("is not supported, only ranks 2 to 4 are");
  if (rank == 2) return {};
  const int64_t count = shape[rank - 3];
  if (count != 1 && count != heads) refuse(fmt::format("does not fit {} heads", heads));
  if (rank == 3 && count != 1 && groups != heads) refuse("for heads that share keys is not supported");
  const bool one = count == 1;
  if (rank == 3) return {{count, 1, shape[1], shape[2]}, {}};
  return {{shape[0], one ? 1 : groups, one ? 1 : heads / groups, shape[2], shape[3]}, {}};
}

BuiltOp BuildAttention(const NodeSpec& spec) {
  NeedInputs(spec, 3, 7);
  for (const size_t index : {4, 5, 6}) {
    if (spec.HasInput(index)) Refuse(spec, "a cache of keys and values is not supported");
  }
  if (spec.Float("softcap", 0) != 0) Refuse(spec, "softcap is not supported");
  const Heads q = HeadsOf(spec, 0, "q_num_heads"), k = HeadsOf(spec, 1, "kv_num_heads"),
              v = HeadsOf(spec, 2, "kv_num_heads");
  if (k.heads != v.heads || k.heads < 1 || q.heads % k.heads != 0) {
    Refuse(spec, fmt::format("{} heads of queries, {} of keys and {} of values", q.heads, k.heads, v.heads));
  }
  AttentionParams params;
  params.q = Grouped(q, k.heads), params.k = Grouped(k, k.heads), params.v = Grouped(v, k.heads);
  if (q.packed) {
    params.out_perm = {0, 2, 3, 1, 4};
    params.out_shape = {q.batch, q.rows, (Checked(q.heads) * v.width).value()};
  } else {
    params.out_shape = {q.batch, q.heads, q.rows, v.width};
  }
  const auto width = static_cast<float>(std::max<int64_t>(q.width, 1));
  params.scale = spec.Float("scale", 1 / std::sqrt(width));
  params.causal = spec.Int("is_causal", 0) != 0;
  params.masked = spec.HasInput(3);
  if (params.masked) params.mask = MaskArrangement(spec, q.heads, k.heads);
  const int inputs = params.masked ? 4 : 3;
  return BuiltWithInputs(std::make_shared<AttentionOp>(std::move(params)), inputs);
}

Shape Matrix(const Shape& seen) {
  if (seen.size() < 2) {
    throw Error(ErrorCode::kBadModel,
                fmt::format("Attention takes matrices, it got {}", ShapeToString(seen)));
  }
  return BatchOf(seen);
}

// Row t, as far as it is looked at: keys [0, count).
int64_t KeysOf(const AttentionParams& params, int64_t row, int64_t keys) {
  return params.causal ? std::min(keys, row + 1) : keys;
}

}  // namespace

AttentionShapes ShapesOf(const AttentionParams& p, std::span<const Shape> inputs) {
  AttentionShapes s{.q = p.q.Seen(inputs[0]),
                    .k = p.k.Seen(inputs[1]),
                    .v = p.v.Seen(inputs[2]),
                    .mask = {},
                    .batch = {},
                    .out = {}};
  std::vector<Shape> leading = {Matrix(s.q), Matrix(s.k), Matrix(s.v)};
  s.rows = s.q[s.q.size() - 2], s.width = s.q.back();
  s.keys = s.k[s.k.size() - 2], s.outputs = s.v.back();
  if (s.k.back() != s.width || s.v[s.v.size() - 2] != s.keys) {
    throw Error(ErrorCode::kBadModel, fmt::format("Attention of {}, {} and {}", ShapeToString(s.q),
                                                  ShapeToString(s.k), ShapeToString(s.v)));
  }
  if (p.masked) {
    s.mask = p.mask.Seen(inputs[3]);
    leading.push_back(Matrix(s.mask));
    const int64_t rows = s.mask[s.mask.size() - 2], keys = s.mask.back();
    if ((rows != 1 && rows != s.rows) || (keys != 1 && keys != s.keys)) {
      throw Error(ErrorCode::kBadModel,
                  fmt::format("Attention adds a mask {} to scores of {} rows and {} keys",
                              ShapeToString(s.mask), s.rows, s.keys));
    }
  }
  s.batch = BroadcastAll("Attention", leading);
  s.out = WithMatrix(s.batch, s.rows, s.outputs);
  return s;
}

std::string AttentionOp::Signature() const {
  const auto part = [](const char* name, const std::string& text) { return text.empty() ? "" : name + text; };
  const AttentionParams& p = params_;
  return fmt::format("Attention scale {:.9g}{}{}{}{}{}{}{}", p.scale, p.masked ? " masked" : "",
                     p.causal ? " causal" : "", part(" q:", p.q.ToString()), part(" k:", p.k.ToString()),
                     part(" v:", p.v.ToString()), part(" mask:", p.mask.ToString()),
                     part(" out:", Arrangement{p.out_shape, p.out_perm}.ToString()));
}

Shape AttentionOp::InferShape(std::span<const Shape> inputs) const {
  return WrittenAs(ShapesOf(params_, inputs).out, params_.out_perm, params_.out_shape).tensor;
}

Tensor AttentionOp::Reference(std::span<const Tensor* const> inputs) const {
  std::vector<Shape> shapes;
  for (const Tensor* input : inputs) shapes.push_back(input->shape());
  const AttentionShapes s = ShapesOf(params_, shapes);
  const Tensor q = Arranged(params_.q, *inputs[0]), k = Arranged(params_.k, *inputs[1]),
               v = Arranged(params_.v, *inputs[2]);
  const Tensor mask = params_.masked ? Arranged(params_.mask, *inputs[3]) : Tensor();
  const std::vector<int64_t> from_q = BroadcastIndices(BatchOf(s.q), s.batch);
  const std::vector<int64_t> from_k = BroadcastIndices(BatchOf(s.k), s.batch);
  const std::vector<int64_t> from_v = BroadcastIndices(BatchOf(s.v), s.batch);
  std::vector<int64_t> from_mask;
  if (params_.masked) from_mask = BroadcastIndices(s.mask, WithMatrix(s.batch, s.rows, s.keys));
  Tensor seen(s.out);
  for (size_t i = 0; i < from_q.size(); ++i) {
    const FloatMap queries(q.floats() + from_q[i] * s.rows * s.width, s.rows, s.width);
    const FloatMap keys(k.floats() + from_k[i] * s.keys * s.width, s.keys, s.width);
    const FloatMap values(v.floats() + from_v[i] * s.keys * s.outputs, s.keys, s.outputs);
    RowMatrix<double> scores = params_.scale * (queries.cast<double>() * keys.cast<double>().transpose());
    for (int64_t t = 0; t < s.rows; ++t) {
      const int64_t count = KeysOf(params_, t, s.keys);
      double largest = -std::numeric_limits<double>::infinity(), sum = 0;
      for (int64_t j = 0; j < s.keys; ++j) {
        const int64_t at = (static_cast<int64_t>(i) * s.rows + t) * s.keys + j;
        if (params_.masked) scores(t, j) += mask.floats()[from_mask[at]];
        if (j < count) largest = std::max(largest, scores(t, j));
      }
      for (int64_t j = 0; j < s.keys; ++j) {
        scores(t, j) = j < count ? elementary::Exp(scores(t, j) - largest) : 0;
        sum += scores(t, j);
      }
      for (int64_t j = 0; j < s.keys; ++j) scores(t, j) /= sum;
    }
    const RowMatrix<double> result = scores * values.cast<double>();
    for (int64_t j = 0; j < s.rows * s.outputs; ++j) {
      seen.floats()[static_cast<int64_t>(i) * s.rows * s.outputs + j] =
          static_cast<float>(result(j / s.outputs, j % s.outputs));
    }
  }
  return ArrangedBack(WrittenAs(s.out, params_.out_perm, params_.out_shape), seen);
}

double AttentionOp::Flops(std::span<const Shape> inputs) const {
  const AttentionShapes s = ShapesOf(params_, inputs);
  return 2.0 * static_cast<double>(ElementCount(s.batch)) * static_cast<double>(s.rows) *
         static_cast<double>(s.keys) * static_cast<double>(s.width + s.outputs);
}

std::unique_ptr<Kernel> AttentionOp::MakeKernel(const KernelRequest& request) const {
  return MakeAttentionKernel(request, params_);
}

// Attention of opset 23, without a cache.
std::vector<OpImporter> AttentionImporters() { return {{"Attention", BuildAttention}}; }

namespace {

// A block of scores: 32 KiB.
constexpr int64_t kRows = 64;
constexpr int64_t kKeys = 128;
static_assert(kRows <= kPanelRows && kKeys <= kPanelTerms && kKeys % kPanelColumns == 0);

class AttentionKernel : public Kernel {
 public:
  AttentionKernel(const KernelRequest& request, const AttentionParams& params)
      : AttentionKernel(request, params, ShapesOf(params, request.inputs)) {}

  int64_t Tasks(int) const override { return count_ * row_blocks_; }
  int64_t ScratchBytes(int threads) const override { return (Checked(threads) * thread_bytes_).value(); }

  void Run(const KernelArgs& args, int, TaskRange range) const override {
    Work work;
    work.packed = args.scratch_at<float>(range.thread * thread_bytes_);
    work.sums = work.packed + kPanelTerms * kPanelColumns;
    work.scores = work.sums + kRows * kPanelColumns;
    work.out = work.scores + kRows * kKeys;
    for (int64_t task = range.begin; task < range.end; ++task) {
      work.index = task / row_blocks_;
      work.first_row = task % row_blocks_ * block_rows_;
      work.rows = std::min(block_rows_, rows_ - work.first_row);
      RunBlock(args, work);
    }
  }

 private:
  struct Work {
    float *packed, *sums, *scores, *out;  // out: panels of kRows x kPanelColumns
    int64_t index, first_row, rows;
    std::array<SoftmaxState, kRows> states;
  };

  AttentionKernel(const KernelRequest& request, const AttentionParams& params, const AttentionShapes& s)
      : scale_(params.scale),
        causal_(params.causal),
        loops_(request.cpu),
        rows_(s.rows),
        keys_(s.keys),
        width_(s.width),
        outputs_(s.outputs),
        count_(ElementCount(s.batch)),
        row_blocks_(CeilDiv(rows_, kRows)),
        block_rows_(row_blocks_ == 0 ? 0 : CeilDiv(rows_, row_blocks_)),
        panels_(CeilDiv(outputs_, kPanelColumns)),
        thread_bytes_(((Checked(panels_) * (kRows * kPanelColumns) + kPanelTerms * kPanelColumns +
                        kRows * kPanelColumns + kRows * kKeys) *
                       int64_t{sizeof(float)})
                          .value()),
        q_(s.q, StridesOf(params.q, request.inputs[0]), s.batch),
        k_(s.k, StridesOf(params.k, request.inputs[1]), s.batch),
        v_(s.v, StridesOf(params.v, request.inputs[2]), s.batch),
        out_(MakeOut(params, s)) {
    if (!params.masked) return;
    mask_.emplace(s.mask, StridesOf(params.mask, request.inputs[3]), s.batch);
    mask_rows_ = s.mask[s.mask.size() - 2] > 1;
    mask_keys_ = s.mask.back() > 1;
  }

  static StridedBatch MakeOut(const AttentionParams& params, const AttentionShapes& s) {
    const Written written = WrittenAs(s.out, params.out_perm, params.out_shape);
    return {s.out, StridesOf(written.arrangement, written.tensor), s.batch};
  }

  void RunBlock(const KernelArgs& args, Work& work) const {
    work.states.fill({-std::numeric_limits<float>::infinity(), 0});
    const int64_t keys = causal_ ? std::min(keys_, work.first_row + work.rows) : keys_;
    if (keys == 0) std::fill_n(work.out, panels_ * kRows * kPanelColumns, 0.0f);
    for (int64_t key = 0; key < keys; key += kKeys) {
      const int64_t count = std::min(kKeys, keys - key);
      MakeScores(args, work, key, count);
      for (int64_t r = 0; r < work.rows; ++r) AddRow(args, work, r, {key, count});
      AddValues(args, work, key, count);
    }
    Finish(args, work);
  }

  void MakeScores(const KernelArgs& args, const Work& work, int64_t key, int64_t count) const {
    const Images<const float> q = FloatsOf(args.inputs[0]), k = FloatsOf(args.inputs[1]);
    const int64_t q_row = q_.row(q.stride), q_term = q_.column(q.stride);
    const int64_t k_row = k_.row(k.stride), k_term = k_.column(k.stride);
    const float* queries = q.data + q_.Offset(work.index, q.stride) + work.first_row * q_row;
    const float* keys = k.data + k_.Offset(work.index, k.stride) + key * k_row;
    for (int64_t column = 0; column < count; column += kPanelColumns) {
      const int64_t columns = std::min(kPanelColumns, count - column);
      if (width_ == 0) std::fill_n(work.sums, work.rows * kPanelColumns, 0.0f);
      for (int64_t term = 0; term < width_; term += kPanelTerms) {
        const int64_t terms = std::min(kPanelTerms, width_ - term);
        PanelProduct product{.a = queries + term * q_term,
                             .a_row = q_row,
                             .a_term = q_term,
                             .rows = work.rows,
                             .terms = terms,
                             .sums = work.sums,
                             .fresh = term == 0};
        SetRight(loops_, {keys + column * k_row + term * k_term, k_term, k_row, terms, columns}, work.packed,
                 product);
        loops_.add(product);
      }
      loops_.store({.sums = work.sums,
                    .out = work.scores + column,
                    .out_row = kKeys,
                    .rows = work.rows,
                    .columns = columns,
                    .scale = scale_});
    }
  }

  struct KeyRange {
    int64_t first, count;
  };

  // Scores of one row become weights; what the row has so far becomes relative to the largest score by now.
  void AddRow(const KernelArgs& args, Work& work, int64_t r, KeyRange keys) const {
    float* scores = work.scores + r * kKeys;
    const int64_t row = work.first_row + r;
    const int64_t count = causal_ ? std::clamp<int64_t>(row + 1 - keys.first, 0, keys.count) : keys.count;
    std::fill_n(scores + count, keys.count - count, 0.0f);
    if (count == 0) return;
    ScoreBlock block{.scores = scores, .count = count};
    if (mask_) {
      const Images<const float> mask = FloatsOf(args.inputs[3]);
      block.mask = mask.data + mask_->Offset(work.index, mask.stride) +
                   (mask_rows_ ? row * mask_->row(mask.stride) : 0) + (mask_keys_ ? keys.first : 0);
      block.mask_step = mask_keys_ ? 1 : 0;
    }
    const float factor = loops_.add_scores(block, work.states[r]);
    if (keys.first == 0 || factor == 1) return;
    for (int64_t panel = 0; panel < panels_; ++panel) {
      loops_.scale_row(work.out + (panel * kRows + r) * kPanelColumns, kPanelColumns, factor);
    }
  }

  void AddValues(const KernelArgs& args, const Work& work, int64_t key, int64_t count) const {
    const Images<const float> v = FloatsOf(args.inputs[2]);
    const int64_t v_row = v_.row(v.stride), v_column = v_.column(v.stride);
    const float* values = v.data + v_.Offset(work.index, v.stride) + key * v_row;
    for (int64_t panel = 0; panel < panels_; ++panel) {
      const int64_t column = panel * kPanelColumns, columns = std::min(kPanelColumns, outputs_ - column);
      PanelProduct product{.a = work.scores,
                           .a_row = kKeys,
                           .a_term = 1,
                           .rows = work.rows,
                           .terms = count,
                           .sums = work.out + panel * kRows * kPanelColumns,
                           .fresh = key == 0};
      SetRight(loops_, {values + column * v_column, v_row, v_column, count, columns}, work.packed, product);
      loops_.add(product);
    }
  }

  void Finish(const KernelArgs& args, const Work& work) const {
    const Images<float> images = FloatsOf(args.output);
    const int64_t stride = images.stride, row = out_.row(stride), column = out_.column(stride);
    float* out = images.data + out_.Offset(work.index, stride) + work.first_row * row;
    for (int64_t r = 0; r < work.rows; ++r) {
      const SoftmaxState& state = work.states[r];
      const bool nothing = state.largest == -std::numeric_limits<float>::infinity();
      float factor = nothing ? std::numeric_limits<float>::quiet_NaN() : 1 / state.sum;
      if (keys_ == 0) factor = 0;
      for (int64_t panel = 0; panel < panels_; ++panel) {
        loops_.scale_row(work.out + (panel * kRows + r) * kPanelColumns, kPanelColumns, factor);
      }
    }
    for (int64_t panel = 0; panel < panels_; ++panel) {
      const int64_t first = panel * kPanelColumns;
      loops_.store({.sums = work.out + panel * kRows * kPanelColumns,
                    .out = out + first * column,
                    .out_row = row,
                    .out_column = column,
                    .rows = work.rows,
                    .columns = std::min(kPanelColumns, outputs_ - first)});
    }
  }

  const float scale_;
  const bool causal_;
  const ProductLoops loops_;
  const int64_t rows_, keys_, width_, outputs_, count_, row_blocks_, block_rows_, panels_, thread_bytes_;
  const StridedBatch q_, k_, v_, out_;
  std::optional<StridedBatch> mask_;
  bool mask_rows_ = false, mask_keys_ = false;
};

}  // namespace

std::unique_ptr<Kernel> MakeAttentionKernel(const KernelRequest& request, const AttentionParams& params) {
  return std::make_unique<AttentionKernel>(request, params);
}

// An error of a score is one of its weight, as a share of it, and at most as large a share of their sum; what
// the weights are multiplied with makes errors as any sum does.
Tensor AttentionOp::RoundingBound(const OpRun& run) const {
  std::vector<Shape> shapes;
  for (const Tensor* input : run.inputs) shapes.push_back(input->shape());
  const AttentionShapes s = ShapesOf(params_, shapes);
  if (s.width == 0 || s.keys == 0) return Tensor(InferShape(shapes));
  const double score = std::abs(params_.scale) * LargestRowNorm(Arranged(params_.q, *run.inputs[0])) *
                           LargestRowNorm(Arranged(params_.k, *run.inputs[1])) +
                       (params_.masked ? LargestFinite(*run.inputs[3]) : 0);
  const Tensor values = Absolute(*run.inputs[2]);
  std::vector<const Tensor*> of_absolutes(run.inputs.begin(), run.inputs.end());
  of_absolutes[2] = &values;
  const double of_score = (3 + SumRoundings(static_cast<double>(s.width))) * score + kFunctionRoundings;
  return BoundsOf(Reference(of_absolutes), 2 * (of_score + SumRoundings(static_cast<double>(s.keys))));
}

std::vector<SavedOp> AttentionOps() { return {Saved<AttentionOp>("Attention")}; }

}  // namespace tilesmith
