#include <algorithm>
#include <array>
#include <limits>

#include "ops/dense/matmul_kernel.h"
#include "ops/dense/strided.h"

namespace tilesmith {
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

}  // namespace tilesmith
