#include "ops/reduce/reduce_kernel.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/kernels/loop_nest.h"
#include "ops/reduce/reduce_loops.h"

namespace tilesmith {
namespace {

constexpr int64_t kStripColumns = 256;  // of one task's totals, which stay in the cache
constexpr int64_t kTaskElements = 16384;

ReduceStep StepOf(ReduceKind kind) {
  switch (kind) {
    case ReduceKind::kMax:
      return ReduceStep::kMax;
    case ReduceKind::kMin:
      return ReduceStep::kMin;
    case ReduceKind::kProduct:
      return ReduceStep::kProduct;
    case ReduceKind::kL1:
      return ReduceStep::kSumAbs;
    case ReduceKind::kL2:
    case ReduceKind::kSumSquare:
      return ReduceStep::kSumSquare;
    case ReduceKind::kLogSumExp:
      return ReduceStep::kSumExp;
    case ReduceKind::kMean:
    case ReduceKind::kSum:
    case ReduceKind::kLogSum:
      break;
  }
  return ReduceStep::kSum;
}

void Join(ReduceStep step, double value, double& total) {
  switch (step) {
    case ReduceStep::kMax:
      total = std::max(total, value);
      return;
    case ReduceStep::kMin:
      total = std::min(total, value);
      return;
    case ReduceStep::kProduct:
      total *= value;
      return;
    default:
      total += value;
  }
}

double NeutralOf(ReduceStep step) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (step == ReduceStep::kMax) return -kInfinity;
  if (step == ReduceStep::kMin) return kInfinity;
  return step == ReduceStep::kProduct ? 1 : 0;
}

class ReduceKernel : public Kernel {
 public:
  ReduceKernel(const KernelRequest& request, const ReduceOp& op)
      : in_(request.inputs[0]),
        out_(request.output),
        kind_(op.kind()),
        is_reduced_(in_.size()),
        keep_dims_(op.keep_dims()),
        outputs_(ElementCount(out_)),
        run_(TILESMITH_DISPATCH(request.cpu.isa, ReduceRun)),
        rows_(TILESMITH_DISPATCH(request.cpu.isa, ReduceRows)) {
    for (const int64_t axis : op.axes()) is_reduced_[axis] = true;
    for (size_t axis = 0; axis < in_.size(); ++axis) {
      if (is_reduced_[axis]) reduced_ *= in_[axis];
      if (in_[axis] != 1) inner_is_reduced_ = is_reduced_[axis];
    }
    piece_ = std::max<int64_t>(kTaskElements / std::max<int64_t>(reduced_, 1), 1);
    if (!inner_is_reduced_) piece_ = std::max(piece_, std::min(outputs_, kStripColumns));
  }

  int64_t Tasks(int) const override { return outputs_ == 0 ? 0 : CeilDiv(outputs_, piece_); }

  void Run(const KernelArgs& args, int, TaskRange range) const override {
    const MemoryDims in = MemoryDimsOf(in_, Layout::Nchw(), args.inputs[0].batch_stride);
    const MemoryDims out = MemoryDimsOf(out_, Layout::Nchw(), args.output.batch_stride);
    OperandLoops<2> kept;     // operands: the input, the output
    OperandLoops<1> reduced;  // the input
    for (int axis = 0, out_axis = 0; axis < in.rank; ++axis) {
      if (is_reduced_[axis]) {
        reduced.Add(in.size[axis], {in.stride[axis]});
        out_axis += keep_dims_;
      } else {
        kept.Add(in.size[axis], {in.stride[axis], out.stride[out_axis++]});
      }
    }
    const float* const from = args.inputs[0].image<float>(0);
    float* const result = args.output.image<float>(0);
    kept.ForEach(range.begin * piece_, std::min(range.end * piece_, outputs_), [&](const auto& part) {
      const bool in_strips = !inner_is_reduced_ && part.column[0] == 1;
      for (int64_t row = 0; row < part.rows; ++row) {
        const float* row_in = from + part.offset[0] + row * part.row[0];
        float* row_out = result + part.offset[1] + row * part.row[1];
        const int64_t step = in_strips ? kStripColumns : 1;
        for (int64_t i = 0; i < part.columns; i += step) {
          const float* element = row_in + i * part.column[0];
          if (in_strips) {
            ReduceStrip(reduced, element, std::min(step, part.columns - i), row_out + i * part.column[1],
                        part.column[1]);
          } else {
            row_out[i * part.column[1]] = ReduceOne(reduced, element);
          }
        }
      }
    });
  }

 private:
  float ReduceOne(const OperandLoops<1>& reduced, const float* in) const {
    double shift = 0;
    if (kind_ == ReduceKind::kLogSumExp) shift = Shift(Total(reduced, in, ReduceStep::kMax, 0));
    const double total = Total(reduced, in, StepOf(kind_), shift);
    return kind_ == ReduceKind::kL2 ? Norm(reduced, in, total) : Finish(total, shift);
  }

  // The root of the sum of squares, which is taken again in doubles where floats have become infinite or 0.
  float Norm(const OperandLoops<1>& reduced, const float* in, double squares) const {
    if (squares >= 0x1p-60 && squares < 0x1p120) return static_cast<float>(std::sqrt(squares));
    squares = 0;
    reduced.ForEach(0, reduced_, [&](const OperandLoops<1>::Part& part) {
      for (int64_t row = 0; row < part.rows; ++row) {
        const float* from = in + part.offset[0] + row * part.row[0];
        for (int64_t i = 0; i < part.columns; ++i) {
          const double x = from[i * part.column[0]];
          squares += x * x;
        }
      }
    });
    return static_cast<float>(std::sqrt(squares));
  }

  double Total(const OperandLoops<1>& reduced, const float* in, ReduceStep step, double shift) const {
    double total = NeutralOf(step);
    reduced.ForEach(0, reduced_, [&](const OperandLoops<1>::Part& part) {
      for (int64_t row = 0; row < part.rows; ++row) {
        const float* from = in + part.offset[0] + row * part.row[0];
        const bool adjacent = part.column[0] == 1;
        const int64_t length = adjacent ? kReduceRun : 1;
        for (int64_t i = 0; i < part.columns; i += length) {
          const int64_t count = std::min(length, part.columns - i);
          Join(step, run_(step, from + i * part.column[0], count, static_cast<float>(shift)), total);
        }
      }
    });
    return total;
  }

  // `columns` outputs whose inputs are adjacent.
  void ReduceStrip(const OperandLoops<1>& reduced, const float* in, int64_t columns, float* out,
                   int64_t out_step) const {
    if (reduced_ <= kReduceRows && kind_ != ReduceKind::kLogSumExp &&
        ReduceFewRows(reduced, in, columns, out, out_step))
      return;
    double totals[kStripColumns], largest[kStripColumns];
    float shifts[kStripColumns] = {};
    if (kind_ == ReduceKind::kLogSumExp) {
      Totals(reduced, in, columns, ReduceStep::kMax, nullptr, largest);
      for (int64_t i = 0; i < columns; ++i) shifts[i] = static_cast<float>(Shift(largest[i]));
    }
    Totals(reduced, in, columns, StepOf(kind_), shifts, totals);
    for (int64_t i = 0; i < columns; ++i) {
      out[i * out_step] =
          kind_ == ReduceKind::kL2 ? Norm(reduced, in + i, totals[i]) : Finish(totals[i], shifts[i]);
    }
  }

  // The same where the rows are equally far from each other, and so few that floats hold their totals. False
  // where they are not.
  bool ReduceFewRows(const OperandLoops<1>& reduced, const float* in, int64_t columns, float* out,
                     int64_t out_step) const {
    bool done = false;
    reduced.ForEach(0, reduced_, [&](const OperandLoops<1>::Part& part) {
      if (part.rows * part.columns != reduced_ || (part.rows > 1 && part.columns > 1)) return;
      float sums[kStripColumns];
      float* const totals = out_step == 1 ? out : sums;
      const int64_t stride = part.columns == 1 ? part.row[0] : part.column[0];
      rows_(StepOf(kind_), {in + part.offset[0], stride, reduced_, columns, nullptr, totals});
      if (kind_ == ReduceKind::kL2) {
        for (int64_t i = 0; i < columns; ++i) out[i * out_step] = Norm(reduced, in + i, totals[i]);
      } else {
        FinishRow(totals, columns, out, out_step);
      }
      done = true;
    });
    return done;
  }

  void FinishRow(const float* totals, int64_t columns, float* out, int64_t out_step) const {
    if (kind_ == ReduceKind::kMean) {
      const double count = static_cast<double>(reduced_);
      for (int64_t i = 0; i < columns; ++i) out[i * out_step] = static_cast<float>(totals[i] / count);
    } else if (kind_ == ReduceKind::kLogSum) {
      for (int64_t i = 0; i < columns; ++i) out[i * out_step] = Finish(totals[i], 0);
    } else if (totals != out) {
      for (int64_t i = 0; i < columns; ++i) out[i * out_step] = totals[i];
    }
  }

  void Totals(const OperandLoops<1>& reduced, const float* in, int64_t columns, ReduceStep step,
              const float* shifts, double* totals) const {
    std::fill_n(totals, columns, NeutralOf(step));
    float sums[kStripColumns];
    const auto take = [&](const float* first, int64_t stride, int64_t count) {
      for (int64_t row = 0; row < count; row += kReduceRows) {
        rows_(step,
              {first + row * stride, stride, std::min(kReduceRows, count - row), columns, shifts, sums});
        for (int64_t i = 0; i < columns; ++i) Join(step, sums[i], totals[i]);
      }
    };
    reduced.ForEach(0, reduced_, [&](const OperandLoops<1>::Part& part) {
      const float* first = in + part.offset[0];
      if (part.columns == 1) return take(first, part.row[0], part.rows);
      for (int64_t row = 0; row < part.rows; ++row)
        take(first + row * part.row[0], part.column[0], part.columns);
    });
  }

  // What is subtracted from all elements before e is raised to them: the largest, if that is a number.
  static double Shift(double largest) { return std::isfinite(largest) ? largest : 0; }

  float Finish(double total, double shift) const {
    switch (kind_) {
      case ReduceKind::kMean:
        return static_cast<float>(total / static_cast<double>(reduced_));
      case ReduceKind::kLogSum:
        return static_cast<float>(std::log(total));
      case ReduceKind::kLogSumExp:
        return static_cast<float>(std::log(total) + shift);
      default:
        return static_cast<float>(total);
    }
  }

  const Shape in_, out_;
  const ReduceKind kind_;
  std::vector<bool> is_reduced_;  // by axis
  const bool keep_dims_;
  bool inner_is_reduced_ = false;  // the last axis that is larger than 1
  int64_t reduced_ = 1;            // inputs of one output
  const int64_t outputs_;
  int64_t piece_;  // outputs of a task
  double (*const run_)(ReduceStep, const float*, int64_t, float);
  void (*const rows_)(ReduceStep, const ReduceRowsArgs&);
};

}  // namespace

std::unique_ptr<Kernel> MakeReduceKernel(const KernelRequest& request, const ReduceOp& op) {
  return std::make_unique<ReduceKernel>(request, op);
}

}  // namespace tilesmith
