// Ops along one axis whose elements depend on those before. Plain, through the reference.
#include <fmt/format.h>

#include "ops/base/elements.h"
#include "ops/base/import_util.h"
#include "ops/base/op.h"
#include "ops/base/saved_op.h"

namespace tilesmith {
namespace {

// Integers in 64 bits without a sign, which may overflow; floats in double.
template <typename T>
using RunningSum = std::conditional_t<std::is_integral_v<T>, uint64_t, double>;

// out[i] = sum of x[j] for j <= i, or j < i (exclusive); from the end in reverse. Integers wrap around.
class CumSumOp : public Op {
 public:
  CumSumOp(int64_t axis, bool exclusive, bool reverse)
      : axis_(axis), exclusive_(exclusive), reverse_(reverse) {}
  std::string_view Type() const override { return "CumSum"; }
  std::string Signature() const override {
    return fmt::format("CumSum axis {}{}{}", axis_, exclusive_ ? " exclusive" : "",
                       reverse_ ? " reverse" : "");
  }
  Shape InferShape(std::span<const Shape> inputs) const override {
    if (axis_ < std::ssize(inputs[0])) return inputs[0];
    throw Error(ErrorCode::kBadModel, fmt::format("{} of {}", Signature(), ShapeToString(inputs[0])));
  }
  DataType OutputType(std::span<const DataType> inputs) const override { return inputs[0]; }
  Tensor Reference(std::span<const Tensor* const> inputs) const override {
    const Tensor& x = *inputs[0];
    Tensor out(x.shape(), Layout::Nchw(x.type()));
    if (x.size() == 0) return out;
    const int64_t size = x.shape()[axis_], inner = DenseStrides(x.shape())[axis_];
    const int64_t outer = x.size() / (size * inner);
    VisitType(x.type(), [&](auto tag) {
      using T = typename decltype(tag)::Type;
      std::vector<RunningSum<T>> sums(inner);
      for (int64_t o = 0; o < outer; ++o) {
        std::ranges::fill(sums, RunningSum<T>(0));
        for (int64_t i = 0; i < size; ++i) {
          const int64_t at = (o * size + (reverse_ ? size - 1 - i : i)) * inner;
          for (int64_t n = 0; n < inner; ++n) {
            const RunningSum<T> before = sums[n];
            sums[n] += static_cast<RunningSum<T>>(x.data<T>()[at + n]);
            out.data<T>()[at + n] = static_cast<T>(exclusive_ ? before : sums[n]);
          }
        }
      }
    });
    return out;
  }
  Tensor RoundingBound(const OpRun& run) const override { return RoundedTwice(run); }
  auto Parameters() const { return std::tie(axis_, exclusive_, reverse_); }

 private:
  int64_t axis_;
  bool exclusive_, reverse_;
};

// The first lengths[b] elements of each sequence backwards, the rest as it is. The input has the axes time
// and batch, in either order, first.
class ReverseSequenceOp : public Op {
 public:
  explicit ReverseSequenceOp(bool batch_first) : batch_first_(batch_first) {}
  std::string_view Type() const override { return "ReverseSequence"; }
  std::string Signature() const override {
    return batch_first_ ? "ReverseSequence batch first" : "ReverseSequence";
  }
  Shape InferShape(std::span<const Shape> inputs) const override {
    const Shape& x = inputs[0];
    if (x.size() >= 2 && inputs[1] == Shape{x[batch_first_ ? 0 : 1]}) return x;
    throw Error(ErrorCode::kBadModel, fmt::format("{} of {} with lengths {}", Signature(), ShapeToString(x),
                                                  ShapeToString(inputs[1])));
  }
  DataType OutputType(std::span<const DataType> inputs) const override { return inputs[0]; }
  Tensor Reference(std::span<const Tensor* const> inputs) const override {
    const Tensor &x = *inputs[0], &lengths = *inputs[1];
    if (!IsInteger(lengths.type())) throw Error(ErrorCode::kBadModel, "its lengths must be integers");
    Tensor out(x.shape(), Layout::Nchw(x.type()));
    const int64_t batch = x.shape()[batch_first_ ? 0 : 1], time = x.shape()[batch_first_ ? 1 : 0];
    const int64_t inner = DenseStrides(x.shape())[1];
    const int64_t batch_step = batch_first_ ? time * inner : inner,
                  time_step = batch_first_ ? inner : batch * inner;
    const std::vector<int64_t> counts = ElementsAs<int64_t>(lengths);
    for (int64_t b = 0; b < batch; ++b) {
      const int64_t length = counts[b];
      if (length < 0 || length > time) {
        throw Error(ErrorCode::kBadModel, fmt::format("a length of {} in {}", length, time));
      }
      for (int64_t t = 0; t < time; ++t) {
        const int64_t from = t < length ? length - 1 - t : t;
        CopyElements(x, b * batch_step + from * time_step, out, b * batch_step + t * time_step, inner);
      }
    }
    return out;
  }
  Tensor RoundingBound(const OpRun& run) const override { return RoundedTwice(run); }
  auto Parameters() const { return std::tie(batch_first_); }

 private:
  bool batch_first_;
};

BuiltOp BuildCumSum(const NodeSpec& spec) {
  NeedInputs(spec, 2, 2);
  NeedKnown(spec, 1, "its axis");
  const std::vector<int64_t> axes = ConstantInts(spec, 1);
  if (axes.size() != 1) Refuse(spec, "its axis must be one number");
  const int64_t axis = NormalAxis(spec, axes[0], spec.inputs[0].shape.size());
  const bool exclusive = spec.Int("exclusive", 0) != 0, reverse = spec.Int("reverse", 0) != 0;
  return BuiltWithInputs(std::make_shared<CumSumOp>(axis, exclusive, reverse), 1);
}

BuiltOp BuildReverseSequence(const NodeSpec& spec) {
  NeedInputs(spec, 2, 2);
  const int64_t batch = spec.Int("batch_axis", 1), time = spec.Int("time_axis", 0);
  if (batch + time != 1 || batch < 0 || time < 0) {
    Refuse(spec, fmt::format("batch_axis {} and time_axis {}, supported are 0 and 1", batch, time));
  }
  return BuiltWithInputs(std::make_shared<ReverseSequenceOp>(batch == 0), 2);
}

}  // namespace

// CumSum, ReverseSequence.
std::vector<OpImporter> ScanImporters() {
  return {{"CumSum", BuildCumSum}, {"ReverseSequence", BuildReverseSequence}};
}

std::vector<SavedOp> ScanOps() {
  return {Saved<CumSumOp>("CumSum"), Saved<ReverseSequenceOp>("ReverseSequence")};
}

}  // namespace tilesmith
