#include "ops/reduce/reduce.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "layouts/base/error.h"
#include "ops/base/elementary.h"
#include "ops/base/elements.h"
#include "ops/base/import_util.h"
#include "ops/base/op_registry.h"
#include "ops/base/rounding.h"
#include "ops/base/saved_op.h"
#include "ops/kernels/loop_nest.h"
#include "ops/movement/view.h"
#include "ops/pool/pool.h"
#include "ops/reduce/reduce_loops.h"

namespace tilesmith {
namespace {

enum class IntegerReduceKind { kSum, kMean, kMax, kMin, kProduct, kL1, kSumSquare };

// Over `axes` (ascending), the others staying; sums and products wrap around, a mean is cut off toward zero.
// Reducing nothing is possible for sums and products only. A bool's maximum is whether any is true.
class IntegerReduceOp : public Op {
 public:
  IntegerReduceOp(IntegerReduceKind kind, std::vector<int64_t> axes, bool keep_dims)
      : kind_(kind), axes_(std::move(axes)), keep_dims_(keep_dims) {}
  std::string_view Type() const override;  // "ReduceMax", ...
  std::string Signature() const override;
  Shape InferShape(std::span<const Shape> inputs) const override;
  DataType OutputType(std::span<const DataType> inputs) const override { return inputs[0]; }
  Tensor Reference(std::span<const Tensor* const> inputs) const override;
  Tensor RoundingBound(const OpRun& run) const override { return RoundedTwice(run); }
  auto Parameters() const { return std::tie(kind_, axes_, keep_dims_); }

 private:
  IntegerReduceKind kind_;
  std::vector<int64_t> axes_;
  bool keep_dims_;
};

struct IntegerKind {
  IntegerReduceKind kind;
  std::string_view name;
};
constexpr IntegerKind kIntegerKinds[] = {{IntegerReduceKind::kSum, "ReduceSum"},
                                         {IntegerReduceKind::kMean, "ReduceMean"},
                                         {IntegerReduceKind::kMax, "ReduceMax"},
                                         {IntegerReduceKind::kMin, "ReduceMin"},
                                         {IntegerReduceKind::kProduct, "ReduceProd"},
                                         {IntegerReduceKind::kL1, "ReduceL1"},
                                         {IntegerReduceKind::kSumSquare, "ReduceSumSquare"}};

// Sums and products in 64 bits without a sign, which may overflow; of floats in double.
template <typename T>
using Accumulator = std::conditional_t<std::is_integral_v<T>, uint64_t, double>;

template <typename T>
void Take(IntegerReduceKind kind, T value, T& extreme, Accumulator<T>& sum) {
  const auto wide = static_cast<Accumulator<T>>(+value);
  switch (kind) {
    case IntegerReduceKind::kMax:
      if (extreme < value) extreme = value;
      return;
    case IntegerReduceKind::kMin:
      if (value < extreme) extreme = value;
      return;
    case IntegerReduceKind::kProduct:
      sum *= wide;
      return;
    case IntegerReduceKind::kL1:
      if constexpr (std::is_unsigned_v<T>) {
        sum += wide;
      } else {
        sum += value < T(0) ? -wide : wide;
      }
      return;
    case IntegerReduceKind::kSumSquare:
      sum += wide * wide;
      return;
    default:
      sum += wide;
  }
}

// The largest of no numbers is below all others, the smallest above.
template <typename T>
T ExtremeOfNone(IntegerReduceKind kind) {
  const bool max = kind == IntegerReduceKind::kMax;
  if constexpr (std::is_integral_v<T>) {
    return max ? std::numeric_limits<T>::lowest() : std::numeric_limits<T>::max();
  } else {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    return static_cast<T>(max ? -kInfinity : kInfinity);
  }
}

template <typename T>
T Finish(IntegerReduceKind kind, T extreme, Accumulator<T> sum, int64_t count) {
  if (kind == IntegerReduceKind::kMax || kind == IntegerReduceKind::kMin) return extreme;
  if constexpr (std::is_integral_v<T>) {
    if (kind == IntegerReduceKind::kMean) {
      if (count == 0) return 0;  // as ONNX Runtime has it
      return static_cast<T>(std::is_signed_v<T> ? static_cast<uint64_t>(static_cast<int64_t>(sum) / count)
                                                : sum / static_cast<uint64_t>(count));
    }
    return static_cast<T>(sum);
  } else {
    return static_cast<T>(
        static_cast<float>(kind == IntegerReduceKind::kMean ? sum / static_cast<double>(count) : sum));
  }
}

std::string_view IntegerReduceOp::Type() const {
  return std::ranges::find(kIntegerKinds, kind_, &IntegerKind::kind)->name;
}

std::string IntegerReduceOp::Signature() const {
  return fmt::format("{} of integers [{}]{}", Type(), fmt::join(axes_, ","), keep_dims_ ? "" : " squeezed");
}

Shape IntegerReduceOp::InferShape(std::span<const Shape> inputs) const {
  Shape shape = inputs[0];
  for (size_t i = axes_.size(); i-- > 0;) {
    if (axes_[i] >= std::ssize(inputs[0])) {
      throw Error(ErrorCode::kBadModel, fmt::format("{} of {}", Signature(), ShapeToString(inputs[0])));
    }
    shape[axes_[i]] = 1;
    if (!keep_dims_) shape.erase(shape.begin() + axes_[i]);
  }
  return shape;
}

Tensor IntegerReduceOp::Reference(std::span<const Tensor* const> inputs) const {
  const Tensor& x = *inputs[0];
  const Shape shapes[] = {x.shape()};
  Tensor out(InferShape(shapes), Layout::Nchw(x.type()));
  Shape kept = x.shape();
  for (const int64_t axis : axes_) kept[axis] = 1;
  std::vector<int64_t> strides = DenseStrides(kept);
  for (const int64_t axis : axes_) strides[axis] = 0;
  VisitType(x.type(), [&](auto tag) {
    using T = typename decltype(tag)::Type;
    const T* from = x.data<T>();
    const int64_t count = x.size(), results = out.size();
    std::vector<char> started(results, 0);
    std::vector<Accumulator<T>> sums(results, kind_ == IntegerReduceKind::kProduct ? 1 : 0);
    T* extremes = out.data<T>();
    if (count == 0) std::fill_n(extremes, results, ExtremeOfNone<T>(kind_));
    std::vector<int64_t> index(strides.size(), 0);
    int64_t to = 0;
    for (int64_t i = 0; i < count; ++i) {
      if (!started[to]) extremes[to] = from[i], started[to] = 1;
      Take<T>(kind_, from[i], extremes[to], sums[to]);
      for (size_t axis = strides.size(); axis-- > 0;) {
        to += strides[axis];
        if (++index[axis] < x.shape()[axis]) break;
        to -= strides[axis] * x.shape()[axis];
        index[axis] = 0;
      }
    }
    for (int64_t i = 0; i < results; ++i) {
      extremes[i] = Finish<T>(kind_, extremes[i], sums[i], count / results);
    }
  });
  return out;
}

// A Reduce* node whose input has another type than f32. Refuses those that are defined for floats only.
BuiltOp BuildIntegerReduce(const NodeSpec& spec, std::vector<int64_t> axes, bool keep_dims) {
  const auto found = std::ranges::find(kIntegerKinds, spec.op_type, &IntegerKind::name);
  if (found == std::end(kIntegerKinds)) Refuse(spec, "only float inputs are supported");
  return BuiltWithInputs(std::make_shared<IntegerReduceOp>(found->kind, std::move(axes), keep_dims), 1);
}

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
        if (axis == 0) reduced.KeepApart();  // so that sums are the same wherever images lie
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
        return static_cast<float>(elementary::Log(total));
      case ReduceKind::kLogSumExp:
        return static_cast<float>(elementary::Log(total) + shift);
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

// ReduceOp's formula. Tasks are parts of the output: one output alone is one task, however large the input.
std::unique_ptr<Kernel> MakeReduceKernel(const KernelRequest& request, const ReduceOp& op) {
  return std::make_unique<ReduceKernel>(request, op);
}

struct NamedKind {
  ReduceKind kind;
  std::string_view name;
};
constexpr NamedKind kReduceNames[] = {
    {ReduceKind::kMean, "ReduceMean"},     {ReduceKind::kSum, "ReduceSum"},
    {ReduceKind::kMax, "ReduceMax"},       {ReduceKind::kMin, "ReduceMin"},
    {ReduceKind::kProduct, "ReduceProd"},  {ReduceKind::kL1, "ReduceL1"},
    {ReduceKind::kL2, "ReduceL2"},         {ReduceKind::kSumSquare, "ReduceSumSquare"},
    {ReduceKind::kLogSum, "ReduceLogSum"}, {ReduceKind::kLogSumExp, "ReduceLogSumExp"}};

// As GlobalPoolOp has it; nullopt for the others.
std::optional<PoolKind> PoolOf(ReduceKind kind) {
  if (kind == ReduceKind::kMean) return PoolKind::kAverage;
  if (kind == ReduceKind::kMax) return PoolKind::kMax;
  return std::nullopt;
}

BuiltOp BuildReduce(const NodeSpec& spec, ReduceKind kind) {
  NeedInputs(spec, 1, 2);
  const size_t rank = spec.inputs[0].shape.size();
  std::vector<int64_t> axes =
      NormalAxes(spec, IntsFromAttributeOrInput(spec, "axes", 1).value_or(std::vector<int64_t>()), rank);
  if (axes.empty()) {
    if (spec.Int("noop_with_empty_axes", 0) != 0) {
      return BuiltWithInputs(std::make_shared<ViewOp>("Identity"), 1);
    }
    for (size_t axis = 0; axis < rank; ++axis) axes.push_back(static_cast<int64_t>(axis));
  }
  const bool keep_dims = spec.Int("keepdims", 1) != 0;
  if (spec.inputs[0].type != DataType::kF32) return BuildIntegerReduce(spec, std::move(axes), keep_dims);
  const std::optional<PoolKind> pool = PoolOf(kind);
  if (pool && rank == 4 && axes == std::vector<int64_t>{2, 3}) {
    return BuiltWithInputs(std::make_shared<GlobalPoolOp>(*pool, keep_dims), 1);
  }
  return BuiltWithInputs(std::make_shared<ReduceOp>(kind, axes, keep_dims), 1);
}

double Start(ReduceKind kind) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (kind == ReduceKind::kMax) return -kInfinity;
  if (kind == ReduceKind::kMin) return kInfinity;
  return kind == ReduceKind::kProduct ? 1 : 0;
}

void Take(ReduceKind kind, double value, double& result) {
  switch (kind) {
    case ReduceKind::kMean:
    case ReduceKind::kSum:
    case ReduceKind::kLogSum:
      result += value;
      return;
    case ReduceKind::kMax:
      if (value > result) result = value;
      return;
    case ReduceKind::kMin:
      if (value < result) result = value;
      return;
    case ReduceKind::kProduct:
      result *= value;
      return;
    case ReduceKind::kL1:
      result += std::abs(value);
      return;
    case ReduceKind::kL2:
    case ReduceKind::kSumSquare:
      result += value * value;
      return;
    case ReduceKind::kLogSumExp:
      result += elementary::Exp(value);
      return;
  }
}

double Finish(ReduceKind kind, double result, double count) {
  if (kind == ReduceKind::kMean) return result / count;
  if (kind == ReduceKind::kL2) return std::sqrt(result);
  return kind == ReduceKind::kLogSum || kind == ReduceKind::kLogSumExp ? elementary::Log(result) : result;
}

}  // namespace

std::string_view ReduceOp::Type() const {
  return std::ranges::find(kReduceNames, kind_, &NamedKind::kind)->name;
}

std::string ReduceOp::Signature() const {
  return fmt::format("{} [{}]{}", Type(), fmt::join(axes_, ","), keep_dims_ ? "" : " squeezed");
}

Shape ReduceOp::InferShape(std::span<const Shape> inputs) const {
  Shape shape = inputs[0];
  for (size_t i = axes_.size(); i-- > 0;) {
    if (axes_[i] >= static_cast<int64_t>(inputs[0].size())) {
      throw Error(ErrorCode::kBadModel, fmt::format("{} of {}", Signature(), ShapeToString(inputs[0])));
    }
    shape[axes_[i]] = 1;
    if (!keep_dims_) shape.erase(shape.begin() + axes_[i]);
  }
  return shape;
}

Tensor ReduceOp::Reference(std::span<const Tensor* const> inputs) const {
  const Tensor& input = *inputs[0];
  const Shape shapes[] = {input.shape()};
  Tensor output(InferShape(shapes));
  Shape kept = input.shape();
  for (const int64_t axis : axes_) kept[axis] = 1;
  const std::vector<int64_t> strides = DenseStrides(kept);
  const auto take_all = [&](ReduceKind kind, const std::vector<double>& shifts,
                            std::vector<double>& results) {
    for (int64_t i = 0; i < input.size(); ++i) {
      int64_t rest = i, to = 0;
      for (size_t axis = strides.size(); axis-- > 0; rest /= input.shape()[axis]) {
        if (kept[axis] != 1) to += rest % input.shape()[axis] * strides[axis];
      }
      Take(kind, input.floats()[i] - shifts[to], results[to]);
    }
  };
  std::vector<double> shifts(output.size(), 0.0), results(output.size(), Start(kind_));
  if (kind_ == ReduceKind::kLogSumExp) {
    std::vector<double> largest(output.size(), Start(ReduceKind::kMax));
    take_all(ReduceKind::kMax, shifts, largest);
    std::ranges::transform(largest, shifts.begin(), [](double x) { return std::isfinite(x) ? x : 0; });
  }
  take_all(kind_, shifts, results);
  const double count = results.empty() ? 1 : static_cast<double>(input.size()) / results.size();
  for (size_t i = 0; i < results.size(); ++i)
    output.floats()[i] = static_cast<float>(Finish(kind_, results[i], count) + shifts[i]);
  return output;
}

std::unique_ptr<Kernel> ReduceOp::MakeKernel(const KernelRequest& request) const {
  return MakeReduceKernel(request, *this);
}

// ReduceMean, ReduceSum, ReduceMax, ReduceMin, ReduceProd, ReduceL1, ReduceL2, ReduceSumSquare, ReduceLogSum,
// ReduceLogSumExp.
std::vector<OpImporter> ReduceImporters() {
  std::vector<OpImporter> importers;
  for (const NamedKind& named : kReduceNames) {
    importers.push_back(
        {named.name, [kind = named.kind](const NodeSpec& spec) { return BuildReduce(spec, kind); }});
  }
  return importers;
}

Tensor ReduceOp::RoundingBound(const OpRun& run) const {
  const double terms =
      static_cast<double>(run.inputs[0]->size()) / std::max(static_cast<double>(run.output.size()), 1.0);
  const bool takes_logarithm = kind_ == ReduceKind::kLogSum || kind_ == ReduceKind::kLogSumExp;
  if (takes_logarithm) return BoundsOfLargest(run, kFunctionRoundings + SumRoundings(terms));
  return BoundsOf(OfAbsolutes(*this, run.inputs), 2 + SumRoundings(terms));
}

std::vector<SavedOp> ReduceOps() {
  return {Saved<ReduceOp>("Reduce"), Saved<IntegerReduceOp>("IntegerReduce")};
}

}  // namespace tilesmith
