#include "ops/elementwise/logic.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <utility>

#include "layouts/base/check.h"
#include "layouts/base/sizes.h"
#include "ops/base/broadcast.h"
#include "ops/base/elements.h"
#include "ops/base/import_util.h"
#include "ops/base/node_writer.h"
#include "ops/base/op.h"
#include "ops/base/saved_op.h"
#include "ops/kernels/loop_nest.h"

namespace tilesmith {
namespace {

inline constexpr size_t kMaxRowInputs = 3;

// Elements along a dimension: of the inputs and the output the first one, and the distance to the next in
// elements.
struct ElementRow {
  std::array<const void*, kMaxRowInputs> in{};
  std::array<int64_t, kMaxRowInputs> step{};
  void* out = nullptr;
  int64_t out_step = 1;
  int64_t count = 0;
};

// Thread-safe, and throws nothing.
using RowFunction = std::function<void(const ElementRow&)>;

constexpr int64_t kPieceElements = 8192;

class RowKernel : public Kernel {
 public:
  RowKernel(const KernelRequest& request, RowFunction row)
      : request_(request), row_(std::move(row)), elements_(ElementCount(request.output)) {
    TILESMITH_CHECK(request.inputs.size() <= kMaxRowInputs, "{} inputs", request.inputs.size());
  }

  int64_t Tasks(int) const override { return CeilDiv(elements_, kPieceElements); }

  void Run(const KernelArgs& args, int, TaskRange range) const override {
    using Loops = OperandLoops<kMaxRowInputs + 1>;  // the output behind the inputs
    const MemoryDims out = MemoryDimsOf(request_.output, request_.layout, args.output.batch_stride);
    std::array<std::array<int64_t, kMaxRank + 1>, kMaxRowInputs> strides{};
    std::array<int64_t, kMaxRowInputs> bytes{};
    const size_t inputs = request_.inputs.size();
    for (size_t k = 0; k < inputs; ++k) {
      const Layout layout = Layout::Nchw(request_.InputType(k));
      strides[k] = BroadcastStrides(request_.inputs[k], request_.output, layout, args.inputs[k].batch_stride);
      bytes[k] = ElementBytes(layout.type());
    }
    Loops loops;
    for (int d = 0; d < out.rank; ++d) {
      Loops::Strides step{};
      for (size_t k = 0; k < inputs; ++k) step[k] = strides[k][d];
      step.back() = out.stride[d];
      loops.Add(out.size[d], step);
    }
    const int64_t out_bytes = ElementBytes(request_.layout.type());
    loops.ForEach(range.begin * kPieceElements, std::min(range.end * kPieceElements, elements_),
                  [&](const Loops::Part& part) {
                    ElementRow row{.out_step = part.column[kMaxRowInputs], .count = part.columns};
                    for (int64_t r = 0; r < part.rows; ++r) {
                      const auto first = [&](size_t k) { return part.offset[k] + r * part.row[k]; };
                      for (size_t k = 0; k < inputs; ++k) {
                        row.in[k] = args.inputs[k].image<std::byte>(0) + first(k) * bytes[k];
                        row.step[k] = part.column[k];
                      }
                      row.out = args.output.image<std::byte>(0) + first(kMaxRowInputs) * out_bytes;
                      row_(row);
                    }
                  });
  }

 private:
  const KernelRequest request_;
  const RowFunction row_;
  const int64_t elements_;
};

// Calls it for rows that make up the output; inputs broadcast.
std::unique_ptr<Kernel> MakeRowKernel(const KernelRequest& request, RowFunction row) {
  return std::make_unique<RowKernel>(request, std::move(row));
}

struct PairName {
  PairKind kind;
  std::string_view name;
};
constexpr PairName kPairNames[] = {{PairKind::kEqual, "Equal"},
                                   {PairKind::kGreater, "Greater"},
                                   {PairKind::kGreaterOrEqual, "GreaterOrEqual"},
                                   {PairKind::kLess, "Less"},
                                   {PairKind::kLessOrEqual, "LessOrEqual"},
                                   {PairKind::kAnd, "And"},
                                   {PairKind::kOr, "Or"},
                                   {PairKind::kXor, "Xor"},
                                   {PairKind::kMod, "Mod"},
                                   {PairKind::kFmod, "Mod"},
                                   {PairKind::kBitAnd, "BitwiseAnd"},
                                   {PairKind::kBitOr, "BitwiseOr"},
                                   {PairKind::kBitXor, "BitwiseXor"},
                                   {PairKind::kShiftLeft, "BitShift"},
                                   {PairKind::kShiftRight, "BitShift"}};

bool IsComparison(PairKind kind) { return kind <= PairKind::kLessOrEqual; }
bool IsLogic(PairKind kind) { return kind >= PairKind::kAnd && kind <= PairKind::kXor; }
bool IsBitwise(PairKind kind) { return kind >= PairKind::kBitAnd && kind <= PairKind::kShiftRight; }

// out = combine(a, b)
template <typename A, typename B, typename Combine>
void CombineRow(const ElementRow& row, const Combine& combine) {
  const A *a = static_cast<const A*>(row.in[0]), *b = static_cast<const A*>(row.in[1]);
  B* const out = static_cast<B*>(row.out);
  const int64_t step_a = row.step[0], step_b = row.step[1], step = row.out_step;
  const bool adjacent = step == 1 && step_a == 1;
  if (adjacent && step_b == 1) {
    for (int64_t i = 0; i < row.count; ++i) out[i] = static_cast<B>(combine(a[i], b[i]));
  } else if (adjacent && step_b == 0) {
    const A same = *b;
    for (int64_t i = 0; i < row.count; ++i) out[i] = static_cast<B>(combine(a[i], same));
  } else {
    for (int64_t i = 0; i < row.count; ++i)
      out[i * step] = static_cast<B>(combine(a[i * step_a], b[i * step_b]));
  }
}

template <typename T>
T Modulo(T a, T b, bool sign_of_a) {
  if constexpr (std::is_integral_v<T>) {
    if (b == 0) throw Error(ErrorCode::kBadModel, "Mod of integers by zero");
    if constexpr (std::is_signed_v<T>) {
      if (b == -1) return 0;
      const T rest = static_cast<T>(a % b);
      return rest != 0 && !sign_of_a && (rest < 0) != (b < 0) ? static_cast<T>(rest + b) : rest;
    } else {
      return static_cast<T>(a % b);
    }
  } else {
    const double x = static_cast<double>(a), y = static_cast<double>(b), rest = std::fmod(x, y);
    return static_cast<T>(
        static_cast<float>(rest != 0 && !sign_of_a && (rest < 0) != (y < 0) ? rest + y : rest));
  }
}

template <typename T>
T Bits(PairKind kind, T a, T b) {
  using Unsigned = std::make_unsigned_t<T>;
  const auto x = static_cast<Unsigned>(a), y = static_cast<Unsigned>(b);
  const bool beyond = y >= static_cast<Unsigned>(std::numeric_limits<Unsigned>::digits);
  switch (kind) {
    case PairKind::kBitAnd:
      return static_cast<T>(x & y);
    case PairKind::kBitOr:
      return static_cast<T>(x | y);
    case PairKind::kBitXor:
      return static_cast<T>(x ^ y);
    case PairKind::kShiftLeft:
      return static_cast<T>(beyond ? 0 : static_cast<Unsigned>(uint64_t{x} << y));
    default:
      return static_cast<T>(beyond ? 0 : x >> y);
  }
}

template <typename T>
void CompareRow(PairKind kind, const ElementRow& row) {
  switch (kind) {
    case PairKind::kEqual:
      return CombineRow<T, bool>(row, std::equal_to<T>());
    case PairKind::kGreater:
      return CombineRow<T, bool>(row, std::greater<T>());
    case PairKind::kGreaterOrEqual:
      return CombineRow<T, bool>(row, std::greater_equal<T>());
    case PairKind::kLess:
      return CombineRow<T, bool>(row, std::less<T>());
    default:
      return CombineRow<T, bool>(row, std::less_equal<T>());
  }
}

void CombineBoolsRow(PairKind kind, const ElementRow& row) {
  CombineRow<bool, bool>(row, [kind](bool p, bool q) {
    return kind == PairKind::kAnd ? p && q : kind == PairKind::kOr ? p || q : p != q;
  });
}

template <typename T>
void ComputeRow(PairKind kind, const ElementRow& row) {
  if (kind == PairKind::kMod || kind == PairKind::kFmod) {
    const bool sign_of_a = kind == PairKind::kFmod;
    CombineRow<T, T>(row, [sign_of_a](T x, T y) { return Modulo<T>(x, y, sign_of_a); });
  } else if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    CombineRow<T, T>(row, [kind](T x, T y) { return Bits<T>(kind, x, y); });
  }
}

// What computes a row of inputs of the type.
RowFunction PairRow(PairKind kind, DataType type) {
  if (IsLogic(kind)) return [kind](const ElementRow& row) { CombineBoolsRow(kind, row); };
  return VisitType(type, [kind](auto tag) -> RowFunction {
    using T = typename decltype(tag)::Type;
    if (IsComparison(kind)) return [kind](const ElementRow& row) { CompareRow<T>(kind, row); };
    return [kind](const ElementRow& row) { ComputeRow<T>(kind, row); };
  });
}

template <typename T>
void WhereRow(const ElementRow& row) {
  const bool* choose = static_cast<const bool*>(row.in[0]);
  const T *a = static_cast<const T*>(row.in[1]), *b = static_cast<const T*>(row.in[2]);
  T* const out = static_cast<T*>(row.out);
  for (int64_t i = 0; i < row.count; ++i)
    out[i * row.out_step] = choose[i * row.step[0]] ? a[i * row.step[1]] : b[i * row.step[2]];
}

RowFunction WhereRowOf(DataType type) {
  return VisitType(type, [](auto tag) -> RowFunction { return WhereRow<typename decltype(tag)::Type>; });
}

template <typename T>
void TestRow(TestKind kind, const Infinities& infinities, const ElementRow& row) {
  const T* const from = static_cast<const T*>(row.in[0]);
  if (kind == TestKind::kBitNot) {
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
      T* const to = static_cast<T*>(row.out);
      for (int64_t i = 0; i < row.count; ++i) to[i * row.out_step] = static_cast<T>(~from[i * row.step[0]]);
    }
    return;
  }
  bool* to = static_cast<bool*>(row.out);
  for (int64_t i = 0; i < row.count; ++i, to += row.out_step) {
    const T x = from[i * row.step[0]];
    const double value = static_cast<double>(x);
    switch (kind) {
      case TestKind::kNot:
        *to = x == T(0);
        break;
      case TestKind::kIsNan:
        *to = std::isnan(value);
        break;
      default:
        *to = std::isinf(value) && (value < 0 ? infinities.negative : infinities.positive);
    }
  }
}

RowFunction TestRowOf(TestKind kind, const Infinities& infinities, DataType type) {
  return VisitType(type, [=](auto tag) -> RowFunction {
    using T = typename decltype(tag)::Type;
    return [=](const ElementRow& row) { TestRow<T>(kind, infinities, row); };
  });
}

// All of an output, on one thread.
template <size_t kInputs>
void ComputeRows(const RowFunction& compute, std::span<const Tensor* const> inputs, Tensor& out) {
  std::array<Shape, kInputs> shapes;
  for (size_t k = 0; k < kInputs; ++k) shapes[k] = inputs[k]->shape();
  ForEachBroadcastRow<kInputs>(
      shapes, out.shape(), [&](int64_t at, const auto& starts, const auto& steps, int64_t count) {
        ElementRow row{.out = out.raw() + at * ElementBytes(out.type()), .count = count};
        for (size_t k = 0; k < kInputs; ++k) {
          row.in[k] = inputs[k]->raw() + starts[k] * ElementBytes(inputs[k]->type());
          row.step[k] = steps[k];
        }
        compute(row);
      });
}

void NeedType(DataType type, DataType wanted, std::string_view what) {
  if (type != wanted) throw Error(ErrorCode::kBadModel, fmt::format("its inputs must be {}", what));
}

template <PairKind kKind>
BuiltOp BuildPair(const NodeSpec& spec) {
  NeedInputs(spec, 2, 2);
  return BuiltWithInputs(std::make_shared<PairOp>(kKind), 2);
}

BuiltOp BuildMod(const NodeSpec& spec) {
  NeedInputs(spec, 2, 2);
  const bool fmod = spec.Int("fmod", 0) != 0;
  if (!fmod && IsFloating(spec.inputs[0].type)) Refuse(spec, "fmod must be 1 where the inputs are floats");
  return BuiltWithInputs(std::make_shared<PairOp>(fmod ? PairKind::kFmod : PairKind::kMod), 2);
}

BuiltOp BuildBitShift(const NodeSpec& spec) {
  NeedInputs(spec, 2, 2);
  const std::string direction = spec.String("direction", "");
  if (direction != "LEFT" && direction != "RIGHT") {
    Refuse(spec, fmt::format("direction \"{}\" is unknown (known: LEFT, RIGHT)", direction));
  }
  const PairKind kind = direction == "LEFT" ? PairKind::kShiftLeft : PairKind::kShiftRight;
  return BuiltWithInputs(std::make_shared<PairOp>(kind), 2);
}

template <TestKind kKind>
BuiltOp BuildTest(const NodeSpec& spec) {
  NeedInputs(spec, 1, 1);
  return BuiltWithInputs(std::make_shared<TestOp>(kKind), 1);
}

BuiltOp BuildIsInf(const NodeSpec& spec) {
  NeedInputs(spec, 1, 1);
  const Infinities found{spec.Int("detect_negative", 1) != 0, spec.Int("detect_positive", 1) != 0};
  return BuiltWithInputs(std::make_shared<TestOp>(TestKind::kIsInfinite, found), 1);
}

BuiltOp BuildWhere(const NodeSpec& spec) {
  NeedInputs(spec, 3, 3);
  if (spec.inputs[0].type != DataType::kBool)
    Refuse(spec, fmt::format("its condition must be boolean, it is {}", DataTypeName(spec.inputs[0].type)));
  return BuiltWithInputs(std::make_shared<WhereOp>(), 3);
}

}  // namespace

std::string_view PairOp::Type() const { return std::ranges::find(kPairNames, kind_, &PairName::kind)->name; }

std::string PairOp::Signature() const {
  if (kind_ == PairKind::kFmod) return "Mod of a's sign";
  if (kind_ == PairKind::kShiftLeft) return "BitShift left";
  return std::string(Type());
}

Shape PairOp::InferShape(std::span<const Shape> inputs) const { return BroadcastAll(Type(), inputs); }

DataType PairOp::OutputType(std::span<const DataType> inputs) const {
  const DataType type = SharedType(inputs);
  if (IsComparison(kind_)) return DataType::kBool;
  if (IsLogic(kind_)) NeedType(type, DataType::kBool, "bools");
  if (IsBitwise(kind_) && !IsInteger(type)) {
    throw Error(ErrorCode::kBadModel, "its inputs must be integers");
  }
  return type;
}

Tensor PairOp::Reference(std::span<const Tensor* const> inputs) const {
  const Tensor &a = *inputs[0], &b = *inputs[1];
  const Shape shapes[] = {a.shape(), b.shape()};
  const DataType types[] = {a.type(), b.type()};
  Tensor out(InferShape(shapes), Layout::Nchw(OutputType(types)));
  ComputeRows<2>(PairRow(kind_, a.type()), inputs, out);
  return out;
}

std::unique_ptr<Kernel> PairOp::MakeKernel(const KernelRequest& request) const {
  return MakeRowKernel(request, PairRow(kind_, request.InputType(0)));
}

// Mod may divide by zero.
bool PairOp::KernelTakes(std::span<const DataType>) const {
  return kind_ != PairKind::kMod && kind_ != PairKind::kFmod;
}

std::string_view TestOp::Type() const {
  switch (kind_) {
    case TestKind::kNot:
      return "Not";
    case TestKind::kBitNot:
      return "BitwiseNot";
    case TestKind::kIsNan:
      return "IsNaN";
    default:
      return "IsInf";
  }
}

std::string TestOp::Signature() const {
  std::string text(Type());
  if (kind_ == TestKind::kIsInfinite && !infinities_.negative) text += " positive";
  if (kind_ == TestKind::kIsInfinite && !infinities_.positive) text += " negative";
  return text;
}

DataType TestOp::OutputType(std::span<const DataType> inputs) const {
  if (kind_ == TestKind::kNot) NeedType(inputs[0], DataType::kBool, "bools");
  if (kind_ == TestKind::kBitNot) {
    if (!IsInteger(inputs[0])) throw Error(ErrorCode::kBadModel, "its input must be of integers");
    return inputs[0];
  }
  return DataType::kBool;
}

Tensor TestOp::Reference(std::span<const Tensor* const> inputs) const {
  const Tensor& x = *inputs[0];
  const DataType types[] = {x.type()};
  Tensor out(x.shape(), Layout::Nchw(OutputType(types)));
  ComputeRows<1>(TestRowOf(kind_, infinities_, x.type()), inputs, out);
  return out;
}

std::unique_ptr<Kernel> TestOp::MakeKernel(const KernelRequest& request) const {
  return MakeRowKernel(request, TestRowOf(kind_, infinities_, request.InputType(0)));
}

Shape WhereOp::InferShape(std::span<const Shape> inputs) const { return BroadcastAll("Where", inputs); }

DataType WhereOp::OutputType(std::span<const DataType> inputs) const {
  if (inputs[0] != DataType::kBool) throw Error(ErrorCode::kBadModel, "its condition must be boolean");
  return SharedType(inputs.subspan(1));
}

Tensor WhereOp::Reference(std::span<const Tensor* const> inputs) const {
  const Tensor &condition = *inputs[0], &a = *inputs[1], &b = *inputs[2];
  const Shape shapes[] = {condition.shape(), a.shape(), b.shape()};
  Tensor out(InferShape(shapes), Layout::Nchw(a.type()));
  ComputeRows<3>(WhereRowOf(a.type()), inputs, out);
  return out;
}

std::unique_ptr<Kernel> WhereOp::MakeKernel(const KernelRequest& request) const {
  return MakeRowKernel(request, WhereRowOf(request.layout.type()));
}

BuiltOp BuildClipByNodes(const NodeSpec& spec) {
  NodeWriter writer(spec);
  std::string x = writer.In(0);
  if (spec.HasInput(1)) x = writer.Add("Max", {x, writer.In(1)});
  if (spec.HasInput(2)) x = writer.Add("Min", {x, writer.In(2)});
  writer.Add("Identity", {x}, {}, writer.Out(0));
  return writer.Take();
}

// Equal, Greater, GreaterOrEqual, Less, LessOrEqual, And, Or, Xor, Not, Mod, BitwiseAnd, BitwiseOr,
// BitwiseXor, BitwiseNot, BitShift, Where, IsNaN, IsInf.
std::vector<OpImporter> LogicImporters() {
  return {{"Equal", BuildPair<PairKind::kEqual>},
          {"Greater", BuildPair<PairKind::kGreater>},
          {"GreaterOrEqual", BuildPair<PairKind::kGreaterOrEqual>},
          {"Less", BuildPair<PairKind::kLess>},
          {"LessOrEqual", BuildPair<PairKind::kLessOrEqual>},
          {"And", BuildPair<PairKind::kAnd>},
          {"Or", BuildPair<PairKind::kOr>},
          {"Xor", BuildPair<PairKind::kXor>},
          {"Mod", BuildMod},
          {"BitwiseAnd", BuildPair<PairKind::kBitAnd>},
          {"BitwiseOr", BuildPair<PairKind::kBitOr>},
          {"BitwiseXor", BuildPair<PairKind::kBitXor>},
          {"BitShift", BuildBitShift},
          {"Not", BuildTest<TestKind::kNot>},
          {"BitwiseNot", BuildTest<TestKind::kBitNot>},
          {"IsNaN", BuildTest<TestKind::kIsNan>},
          {"IsInf", BuildIsInf},
          {"Where", BuildWhere}};
}

std::vector<SavedOp> LogicOps() {
  return {Saved<PairOp>("Pair"), Saved<TestOp>("Test"), Saved<WhereOp>("Where")};
}

}  // namespace tilesmith
