#include "templates/cuda_device/walk_programs.h"

#include <algorithm>
#include <array>
#include <bit>
#include <span>
#include <string>
#include <vector>

#include "ops/dense/softmax.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/functions.h"
#include "ops/movement/concat.h"
#include "ops/movement/indexing.h"
#include "ops/movement/pad.h"
#include "ops/movement/transpose.h"
#include "ops/reduce/lrn.h"
#include "ops/reduce/normalization_kernel.h"
#include "ops/reduce/reduce.h"
#include "ops/resize/resize.h"
#include "templates/cuda_device/product_programs.h"
#include "templates/cuda_device/program_builder.h"
#include "templates/cuda_device/walks.h"

namespace tilesmith::cuda {
namespace {

int64_t Count(const Shape& shape) { return ElementCount(shape); }

// What an output axis reads: input position first + i * step along one of `extent`.
struct Source {
  int64_t first = 0, step = 1, extent = 1, stride = 0;
};
struct Arranged {
  Axes out;
  std::vector<Source> sources;
  int64_t mode = 0, value = 0, base = 0, base_images = 0;
  DataType type = DataType::kF32;
};

void AddArrange(ProgramBuilder& builder, Arranged a, size_t slot) {
  std::vector<size_t> order;
  for (size_t i = 0; i < a.out.size(); ++i)
    if (a.out[i].size != 1 || a.sources[i].first != 0) order.push_back(i);
  // Neighbouring threads write neighbouring floats.
  std::ranges::stable_sort(order, std::greater(), [&](size_t i) {
    return a.out[i].stride == kImages ? kMaxPositions : a.out[i].stride;
  });
  builder.Need(order.size() <= kAxes);
  if (order.size() > kAxes) return;
  int64_t count = 1;
  for (const Axis& axis : a.out) count *= axis.size;
  std::vector<int64_t> numbers = {count, a.value, a.base, a.base_images, std::ssize(order)};
  const auto add = [&](int64_t behind, const auto& number) {
    for (size_t d = 0; d < kAxes; ++d) numbers.push_back(d < order.size() ? number(order[d]) : behind);
  };
  add(1, [&](size_t i) { return a.out[i].size; });
  add(0, [&](size_t i) { return a.out[i].stride; });
  add(0, [&](size_t i) { return a.sources[i].first; });
  add(1, [&](size_t i) { return a.sources[i].step; });
  add(1, [&](size_t i) { return a.sources[i].extent; });
  add(0, [&](size_t i) { return a.sources[i].stride; });
  numbers.push_back(a.mode);
  numbers.push_back(ElementBytes(a.type));
  builder.NeedImage(count);
  builder.Launch("arrange", count, numbers, {Input(slot)});
}

void AddArrangement(ProgramBuilder& builder, const Op& op, const KernelRequest& request) {
  const Shape& from = request.inputs[0];
  const Axes in = AxesOf(from, request.layout);
  Arranged a{.out = AxesOf(request.output, request.layout), .sources = {}, .type = request.layout.type()};
  a.sources.resize(a.out.size());
  if (const auto* transpose = dynamic_cast<const TransposeOp*>(&op)) {
    for (size_t i = 0; i < a.out.size(); ++i) {
      const Axis& axis = in[static_cast<size_t>(transpose->perm()[i])];
      a.sources[i] = {0, 1, axis.size, axis.stride};
    }
  } else if (const auto* slice = dynamic_cast<const SliceOp*>(&op)) {
    const std::vector<SliceAxis> axes = slice->Axes(from);
    for (size_t i = 0; i < axes.size(); ++i)
      a.sources[i] = {axes[i].start, axes[i].step, in[i].size, in[i].stride};
  } else if (const auto* pad = dynamic_cast<const PadOp*>(&op)) {
    a.mode = static_cast<int64_t>(pad->mode());
    a.value = Bits(pad->value());
    for (size_t i = 0; i < in.size(); ++i) a.sources[i] = {-pad->begin()[i], 1, in[i].size, in[i].stride};
  } else {  // an ExpandOp
    const size_t missing = a.out.size() - in.size();
    for (size_t i = missing; i < a.out.size(); ++i) {
      const Axis& axis = in[i - missing];
      a.sources[i] = {0, 1, a.out[i].size, axis.size == 1 ? 0 : axis.stride};
    }
    for (size_t i = 0; i < missing; ++i) a.sources[i].extent = a.out[i].size;
  }
  AddArrange(builder, std::move(a), 0);
  builder.Stored(request.layout.type(), request.layout.type());
}

void AddConcat(ProgramBuilder& builder, const ConcatOp& op, const KernelRequest& request) {
  const Axes whole = AxesOf(request.output);
  const auto axis = static_cast<size_t>(op.axis());
  int64_t first = 0;
  for (size_t slot = 0; slot < request.inputs.size(); ++slot) {
    const Axes in = AxesOf(request.inputs[slot]);
    Arranged a{.out = whole, .sources = {}};
    for (const Axis& one : in) a.sources.push_back({0, 1, one.size, one.stride});
    a.out[axis].size = in[axis].size;
    (whole[axis].stride == kImages ? a.base_images : a.base) =
        whole[axis].stride == kImages ? first : first * whole[axis].stride;
    first += in[axis].size;
    AddArrange(builder, std::move(a), slot);
  }
}

// An operand as the output sees it.
Axes Broadcast(const Shape& shape, const Shape& output) {
  const Axes own = AxesOf(shape);
  Axes axes(output.size());
  for (size_t i = 0; i < output.size(); ++i) {
    const size_t missing = output.size() - own.size();
    axes[i] = {output[i], i < missing || own[i - missing].size == 1 ? 0 : own[i - missing].stride};
  }
  return axes;
}

void AddPair(ProgramBuilder& builder, const BinaryOp& op, const KernelRequest& request) {
  const int64_t count = Count(request.output);
  std::vector<int64_t> numbers = {count, static_cast<int64_t>(op.kind())};
  AddWalk(builder, AxesOf(request.output), numbers);
  for (const Shape& shape : request.inputs) AddWalk(builder, Broadcast(shape, request.output), numbers);
  builder.NeedImage(count);
  builder.Launch("pair", count, numbers, {Input(0), Input(1)});
}

constexpr std::array kFunctions = {FunctionKind::kAbs,      FunctionKind::kElu,  FunctionKind::kErf,
                                   FunctionKind::kExp,      FunctionKind::kGelu, FunctionKind::kGeluTanh,
                                   FunctionKind::kLog,      FunctionKind::kNeg,  FunctionKind::kReciprocal,
                                   FunctionKind::kSoftplus, FunctionKind::kSqrt, FunctionKind::kMish,
                                   FunctionKind::kSelu};

void AddFunction(ProgramBuilder& builder, const Function& function, const KernelRequest& request) {
  const auto found = std::ranges::find(kFunctions, function.kind);
  builder.Need(found != kFunctions.end());
  const int64_t count = Count(request.output);
  std::vector<int64_t> numbers = {count, found - kFunctions.begin(), Bits(function.alpha),
                                  Bits(function.beta), request.layout.element_bytes()};
  // An image lies in one row in every layout without padding.
  const int64_t images = request.output.empty() ? 1 : request.output[0];
  for (int i = 0; i < 2; ++i)
    AddWalk(builder, {{images, kImages}, {images == 0 ? 0 : count / images, 1}}, numbers);
  builder.NeedImage(count);
  builder.Launch("function", count, numbers, {Input(0)});
  builder.Stored(request.layout.type(), request.layout.type());
}

template <typename IsInner>
std::pair<Axes, Axes> Divided(const Axes& axes, const IsInner& is_inner) {
  std::pair<Axes, Axes> both;
  for (size_t i = 0; i < axes.size(); ++i)
    (is_inner(static_cast<int64_t>(i)) ? both.second : both.first).push_back(axes[i]);
  return both;
}
void AddReduce(ProgramBuilder& builder, const ReduceOp& op, const KernelRequest& request) {
  const auto [outer, inner] = Divided(AxesOf(request.inputs[0]), [&](int64_t axis) {
    return std::ranges::find(op.axes(), axis) != op.axes().end();
  });
  const int64_t groups = SizeOf(outer), count = SizeOf(inner), lanes = LanesFor(count);
  std::vector<int64_t> numbers = {groups, count, lanes, static_cast<int64_t>(op.kind())};
  AddWalk(builder, outer, numbers);
  AddWalk(builder, inner, numbers);
  AddWalk(builder, AxesOf(request.output), numbers);
  builder.Need(count > 0);
  AddGroups(builder, "reduce", groups, lanes, numbers, Input(0));
}

void AddNormalization(ProgramBuilder& builder, const Normalization& n, const KernelRequest& request) {
  constexpr size_t kNumbers = 12;  // NORMALIZE_INTS of walks.cu
  const Shape& shape = request.inputs[0];
  builder.Need(HasNormalizationKernel(shape, n) && !n.axes.empty() && Count(shape) > 0);
  if (shape.size() < 2 || n.axes.empty() || Count(shape) == 0) return;
  Shape view = shape;
  if (n.groups > 0) {
    view[1] /= n.groups;
    view.insert(view.begin() + 1, n.groups);
  }
  int64_t count = 1, pixels = 1;
  for (const int64_t axis : n.axes) count *= axis == 0 ? 1 : view[static_cast<size_t>(axis)];
  for (size_t i = 2; i < shape.size(); ++i) pixels *= shape[i];
  const int64_t groups = Count(shape) / shape[0] / count, lanes = LanesFor(count);
  const int64_t scaled = n.scale.empty() ? 0 : n.by_element ? 2 : 1;
  const int64_t numbers[] = {shape[0],
                             groups,
                             count,
                             lanes,
                             static_cast<int64_t>(n.spread),
                             Bits(n.epsilon),
                             scaled,
                             pixels,
                             std::ssize(n.scale)};
  AddGroups(builder, "normalize", Checked(shape[0]) * groups, lanes, numbers, Input(0));
  builder.PadNumbers(kNumbers);
  builder.Weights(n.scale);
  builder.Weights(n.shift);
}

std::optional<CudaProgram> ResizeProgram(const ResizeOp& op, const KernelRequest& request) {
  if (!op.HasFastKernel()) return std::nullopt;  // more than two axes, or more than two elements
  const Dims4 in = ToDims4(request.inputs[0]), out = ToDims4(request.output);
  const int64_t padded = request.layout.PaddedChannels(in.c);
  std::vector<int64_t> numbers = {in.n, in.c,  padded, request.layout.BlockFor(in.c), in.h,
                                  in.w, out.h, out.w,  request.layout.element_bytes()};
  for (const size_t axis : {2, 3})
    for (const ResizeTap& tap : ResizeTaps(op.params(), axis))
      numbers.insert(numbers.end(), {tap.low, tap.high, Bits(tap.weight)});
  ProgramBuilder builder(std::string(op.Type()), WalksText());
  const Checked elements = Checked(in.n) * padded * out.h * out.w;
  builder.NeedImage(elements);
  builder.NeedImage(Checked(padded) * in.h * in.w);
  builder.Launch("resize", elements, numbers, {Input(0)});
  builder.Stored(request.layout.type(), request.layout.type());
  return builder.Take();
}

// The data's axes in front of and behind the chosen one, the indices' between them.
std::optional<CudaProgram> GatherProgram(const GatherOp& op, const KernelRequest& request) {
  const DataType index = request.InputType(1);
  if (request.InputType(0) != DataType::kF32 || (index != DataType::kI64 && index != DataType::kI32))
    return std::nullopt;
  const auto axis = static_cast<size_t>(op.axis());
  const Axes data = AxesOf(request.inputs[0]), indices = AxesOf(request.inputs[1]);
  const int64_t count = Count(request.output);
  Axes from, chosen;
  const auto add = [&](const Axis& one, bool of_data) {
    from.push_back({one.size, of_data ? one.stride : 0});
    chosen.push_back({one.size, of_data ? 0 : one.stride});
  };
  for (size_t i = 0; i < axis; ++i) add(data[i], true);
  for (const Axis& one : indices) add(one, false);
  for (size_t i = axis + 1; i < data.size(); ++i) add(data[i], true);
  ProgramBuilder builder(std::string(op.Type()), WalksText());
  std::vector<int64_t> numbers = {count, data[axis].size, data[axis].stride, ElementBytes(index)};
  for (const Axes& axes : {from, chosen, AxesOf(request.output)}) AddWalk(builder, axes, numbers);
  builder.NeedImage(count);
  builder.Launch("gather", count, numbers, {Input(0), Input(1)}).inputs[1].element_bytes =
      ElementBytes(index);
  return builder.Take();
}

void AddLrn(ProgramBuilder& builder, const LrnParameters& p, const Shape& shape) {
  const int64_t count = Count(shape), before = (p.size - 1) / 2;
  if (count == 0) return builder.Need(false);
  const auto bits = [](double value) { return Bits(static_cast<float>(value)); };
  const int64_t numbers[] = {shape[0],
                             shape[1],
                             count / shape[0] / shape[1],
                             std::min(before, shape[1]),
                             std::min(p.size - 1 - before, shape[1]),
                             bits(p.alpha / static_cast<double>(p.size)),
                             bits(p.bias),
                             bits(p.beta)};
  builder.NeedImage(count);
  builder.Launch("lrn", count, numbers, {Input(0)});
}

bool AreOfType(const KernelRequest& request, DataType type) {
  bool of_type = request.layout.type() == type;
  for (size_t slot = 0; slot < request.inputs.size(); ++slot)
    of_type = of_type && request.InputType(slot) == type;
  return of_type;
}

bool IsArrangement(const Op& op) {
  return dynamic_cast<const TransposeOp*>(&op) != nullptr || dynamic_cast<const SliceOp*>(&op) != nullptr ||
         dynamic_cast<const PadOp*>(&op) != nullptr || dynamic_cast<const ExpandOp*>(&op) != nullptr;
}

}  // namespace

std::optional<CudaProgram> WalkProgram(const Op& op, const KernelRequest& request) {
  if (const auto* chosen = dynamic_cast<const GatherOp*>(&op)) return GatherProgram(*chosen, request);
  const bool plain = request.layout.is_nchw(), floats = AreOfType(request, DataType::kF32);
  const bool reals = floats || AreOfType(request, DataType::kBf16);
  ProgramBuilder builder(std::string(op.Type()), WalksText());
  if (IsArrangement(op) && (plain || request.layout.is_nhwc()) && reals) {
    AddArrangement(builder, op, request);
    return builder.Take();
  }
  if (!reals) return std::nullopt;
  if (const auto* resize = dynamic_cast<const ResizeOp*>(&op)) return ResizeProgram(*resize, request);
  if (const auto* function = dynamic_cast<const FunctionOp*>(&op)) {
    builder.Need(plain || request.layout.is_nhwc());
    AddFunction(builder, function->function(), request);
    return builder.Take();
  }
  if (!plain || !floats) return std::nullopt;
  if (const auto* matmul = dynamic_cast<const MatMulOp*>(&op)) return MatMulProgram(*matmul, request);
  if (const auto* attention = dynamic_cast<const AttentionOp*>(&op))
    return AttentionProgram(*attention, request);
  if (const auto* concat = dynamic_cast<const ConcatOp*>(&op)) {
    AddConcat(builder, *concat, request);
  } else if (const auto* binary = dynamic_cast<const BinaryOp*>(&op)) {
    if (request.inputs.size() != 2) return std::nullopt;
    AddPair(builder, *binary, request);
  } else if (const auto* reduce = dynamic_cast<const ReduceOp*>(&op)) {
    AddReduce(builder, *reduce, request);
  } else if (const auto* softmax = dynamic_cast<const SoftmaxOp*>(&op)) {
    const auto [outer, inner] = Divided(AxesOf(request.output), [&](int64_t axis) {
      return softmax->first_axis() <= axis && axis <= softmax->last_axis();
    });
    AddSoftmax(builder, {.outer = outer, .inner = inner, .logarithm = softmax->logarithm()}, Input(0),
               kOutput);
  } else if (const auto* lrn = dynamic_cast<const LrnOp*>(&op)) {
    AddLrn(builder, lrn->parameters(), request.output);
  } else if (const auto* normalization = dynamic_cast<const NormalizationOp*>(&op)) {
    AddNormalization(builder, normalization->normalization(), request);
  } else {
    return std::nullopt;
  }
  return builder.Take();
}

}  // namespace tilesmith::cuda
