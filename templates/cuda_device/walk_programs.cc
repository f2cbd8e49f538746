#include "templates/cuda_device/walk_programs.h"

#include <algorithm>
#include <array>
#include <bit>
#include <span>
#include <string>
#include <vector>

#include "ops/dense/attention.h"
#include "ops/dense/matmul.h"
#include "ops/dense/softmax.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/functions.h"
#include "ops/movement/concat.h"
#include "ops/movement/indexing.h"
#include "ops/movement/pad.h"
#include "ops/movement/transpose.h"
#include "ops/reduce/normalization_kernel.h"
#include "ops/reduce/reduce.h"
#include "ops/resize/resize.h"
#include "templates/cuda/text.h"
#include "templates/cuda_device/program_builder.h"

namespace tilesmith::cuda {
namespace {

constexpr size_t kAxes = 6;               // AXES of walks.cu
constexpr int64_t kImages = -2147483647;  // and IMAGES

std::string WalksText(const Activation& activation = {}) {
  return ProgramText().Activate(activation).File("walks.cu").Take();
}
CudaOperand InScratch() { return {.from = CudaOperand::From::kScratch}; }
int64_t Bits(float value) { return std::bit_cast<int32_t>(value); }
int64_t Count(const Shape& shape) { return ElementCount(shape); }

struct Axis {
  int64_t size = 1, stride = 0;
};
using Axes = std::vector<Axis>;

// The axes of a tensor in their order.
Axes AxesOf(const Shape& shape, const Layout& layout = Layout::Nchw()) {
  Axes axes(shape.size());
  int64_t stride = 1;
  const bool last = layout.is_nhwc() && shape.size() > 2;
  if (last) axes[1] = {shape[1], 1}, stride = shape[1];
  for (size_t i = shape.size(); i-- > 1;) {
    if (last && i == 1) continue;
    axes[i] = {shape[i], stride};
    stride *= shape[i];
  }
  if (!shape.empty()) axes[0] = {shape[0], kImages};
  return axes;
}

// Numbers of a Walk; axes that lie in one row are one.
void AddWalk(ProgramBuilder& builder, const Axes& given, std::vector<int64_t>& numbers) {
  Axes axes;
  for (const Axis& axis : given) {
    if (axis.size == 1) continue;
    if (!axes.empty() && axes.back().stride != kImages && axis.stride != kImages &&
        axes.back().stride == axis.size * axis.stride) {
      axes.back() = {axes.back().size * axis.size, axis.stride};
    } else {
      axes.push_back(axis);
    }
  }
  builder.Need(axes.size() <= kAxes);
  axes.resize(std::min(axes.size(), kAxes));
  numbers.push_back(static_cast<int64_t>(axes.size()));
  axes.resize(kAxes);
  for (const Axis& axis : axes) numbers.push_back(axis.size);
  for (const Axis& axis : axes) numbers.push_back(axis.stride);
}

// What an output axis reads: input position first + i * step along one of `extent`.
struct Source {
  int64_t first = 0, step = 1, extent = 1, stride = 0;
};
struct Arranged {
  Axes out;
  std::vector<Source> sources;
  int64_t mode = 0, value = 0, base = 0, base_images = 0;
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
  builder.NeedImage(count);
  builder.Launch("arrange", count, numbers, {Input(slot)});
}

void AddArrangement(ProgramBuilder& builder, const Op& op, const KernelRequest& request) {
  const Shape& from = request.inputs[0];
  const Axes in = AxesOf(from, request.layout);
  Arranged a{.out = AxesOf(request.output, request.layout), .sources = {}};
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
                                  Bits(function.beta)};
  // An image lies in one row in every layout without padding.
  const int64_t images = request.output.empty() ? 1 : request.output[0];
  for (int i = 0; i < 2; ++i)
    AddWalk(builder, {{images, kImages}, {images == 0 ? 0 : count / images, 1}}, numbers);
  builder.NeedImage(count);
  builder.Launch("function", count, numbers, {Input(0)});
}

// Threads that share a group.
int64_t LanesFor(int64_t count) {
  return std::clamp(
      static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(std::max<int64_t>(count / 4, 1)))),
      int64_t{1}, ProgramBuilder::kThreads);
}
void AddGroups(ProgramBuilder& builder, std::string function, Checked groups, int64_t lanes,
               std::span<const int64_t> numbers, const CudaOperand& input) {
  builder.NeedImage(groups * lanes);
  builder.Launch(std::move(function), groups * lanes, numbers, {input}).shared_bytes =
      ProgramBuilder::kThreads * kFloatBytes;
}

template <typename IsInner>
std::pair<Axes, Axes> Divided(const Axes& axes, const IsInner& is_inner) {
  std::pair<Axes, Axes> both;
  for (size_t i = 0; i < axes.size(); ++i)
    (is_inner(static_cast<int64_t>(i)) ? both.second : both.first).push_back(axes[i]);
  return both;
}
int64_t SizeOf(const Axes& axes) {
  int64_t size = 1;
  for (const Axis& axis : axes) size *= axis.size;
  return size;
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

void AddSoftmax(ProgramBuilder& builder, const Axes& outer, const Axes& inner, bool logarithm,
                const CudaOperand& input, CudaOperand output) {
  const int64_t groups = SizeOf(outer), count = SizeOf(inner), lanes = LanesFor(count);
  std::vector<int64_t> numbers = {groups, count, lanes, logarithm};
  for (int i = 0; i < 2; ++i) {
    AddWalk(builder, outer, numbers);
    AddWalk(builder, inner, numbers);
  }
  AddGroups(builder, "softmax", groups, lanes, numbers, input);
  builder.last().output = output;
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

// Where matrices lie: their two strides, and batches' axes.
struct Matrices {
  int64_t row = 0, column = 0;
  Axes batch;
};
Matrices MatricesOf(const Shape& seen, const SeenStrides& strides, const Shape& batch) {
  const auto at = [&](size_t axis) { return strides.At(axis, kImages); };
  const size_t rank = seen.size();
  Matrices m{at(rank - 2), at(rank - 1), {}};
  const size_t missing = batch.size() + 2 - rank;
  for (size_t axis = 0; axis < batch.size(); ++axis) {
    const bool repeats = axis < missing || seen[axis - missing] == 1;
    m.batch.push_back({batch[axis], repeats ? 0 : at(axis - missing)});
  }
  return m;
}
Matrices InRows(const Shape& batch, int64_t rows, int64_t columns) {
  return {columns, 1, {{ElementCount(batch), rows * columns}}};
}
Matrices Turned(Matrices m) {
  std::swap(m.row, m.column);
  return m;
}

struct Product {
  int64_t m = 0, n = 0, k = 0;
  float factor = 1;
  bool has_bias = false;
  Matrices a, b, out;
};
void AddProduct(ProgramBuilder& builder, const Product& p, std::vector<CudaOperand> inputs,
                CudaOperand output) {
  constexpr int64_t kTile = 64, kTerms = 16;
  const int64_t count = SizeOf(p.out.batch);
  std::vector<int64_t> numbers = {count,   p.m,        p.n,     p.k,        Bits(p.factor), p.has_bias,
                                  p.a.row, p.a.column, p.b.row, p.b.column, p.out.row,      p.out.column};
  for (const Matrices* side : {&p.a, &p.b, &p.out}) AddWalk(builder, side->batch, numbers);
  numbers.push_back(0);  // to MATMUL_INTS
  builder.NeedImage(Checked(p.m) * p.n);
  builder.NeedImage(Checked(p.m) * p.k);
  CudaLaunch& launch = builder.Launch("matmul", 1, numbers, std::move(inputs));
  builder.SetBlocks(launch, CeilDiv(p.n, kTile), CeilDiv(p.m, kTile), std::min(count, kMaxGrid));
  launch.shared_bytes = 2 * kTile * kTerms * kFloatBytes;
  launch.output = output;
}

constexpr CudaOperand kOutput = {.from = CudaOperand::From::kOutput};

std::optional<CudaProgram> MatMulProgram(const MatMulOp& op, const KernelRequest& request) {
  const MatMulParams& params = op.params();
  for (const auto& [side, slot] : {std::pair(&params.a, 0), {&params.b, 1}})
    if (side->Seen(request.inputs[static_cast<size_t>(slot)]).size() < 2) return std::nullopt;
  const MatMulShapes s = ShapesOf(params, request.inputs);
  const Written written = WrittenAs(s.out, params.out_perm, params.out_shape);
  ProgramBuilder builder(std::string(op.Type()), WalksText(params.activation));
  AddProduct(builder,
             {.m = s.m,
              .n = s.n,
              .k = s.k,
              .factor = params.scale,
              .has_bias = params.bias != nullptr,
              .a = MatricesOf(s.a, StridesOf(params.a, request.inputs[0]), s.batch),
              .b = MatricesOf(s.b, StridesOf(params.b, request.inputs[1]), s.batch),
              .out = MatricesOf(s.out, StridesOf(written.arrangement, written.tensor), s.batch)},
             {Input(0), Input(1)}, kOutput);
  if (params.bias) builder.Weights({params.bias->floats(), params.bias->floats() + s.n});
  return builder.Take();
}

// Scores of all rows are a tensor in scratch.
std::optional<CudaProgram> AttentionProgram(const AttentionOp& op, const KernelRequest& request) {
  const AttentionParams& params = op.params();
  if (params.masked || params.causal) return std::nullopt;
  const AttentionShapes s = ShapesOf(params, request.inputs);
  const Written written = WrittenAs(s.out, params.out_perm, params.out_shape);
  const Matrices scores = InRows(s.batch, s.rows, s.keys);
  const auto side = [&](const Shape& seen, const Arrangement& arrangement, size_t slot) {
    return MatricesOf(seen, StridesOf(arrangement, request.inputs[slot]), s.batch);
  };
  ProgramBuilder builder(std::string(op.Type()), WalksText());
  const int64_t count = ElementCount(s.batch);
  builder.Scratch(Checked(count) * s.rows * s.keys * kFloatBytes);
  AddProduct(builder,
             {.m = s.rows,
              .n = s.keys,
              .k = s.width,
              .factor = params.scale,
              .a = side(s.q, params.q, 0),
              .b = Turned(side(s.k, params.k, 1)),
              .out = scores},
             {Input(0), Input(1)}, InScratch());
  AddSoftmax(builder, {{count * s.rows, s.keys}}, {{s.keys, 1}}, false, InScratch(), InScratch());
  AddProduct(builder,
             {.m = s.rows,
              .n = s.outputs,
              .k = s.keys,
              .a = scores,
              .b = side(s.v, params.v, 2),
              .out = MatricesOf(s.out, StridesOf(written.arrangement, written.tensor), s.batch)},
             {InScratch(), Input(2)}, kOutput);
  return builder.Take();
}

std::optional<CudaProgram> ResizeProgram(const ResizeOp& op, const KernelRequest& request) {
  if (!op.HasFastKernel()) return std::nullopt;  // more than two axes, or more than two elements
  const Dims4 in = ToDims4(request.inputs[0]), out = ToDims4(request.output);
  const int64_t padded = request.layout.PaddedChannels(in.c);
  std::vector<int64_t> numbers = {in.n, in.c, padded, request.layout.BlockFor(in.c),
                                  in.h, in.w, out.h,  out.w};
  for (const size_t axis : {2, 3})
    for (const ResizeTap& tap : ResizeTaps(op.params(), axis))
      numbers.insert(numbers.end(), {tap.low, tap.high, Bits(tap.weight)});
  ProgramBuilder builder(std::string(op.Type()), WalksText());
  const Checked elements = Checked(in.n) * padded * out.h * out.w;
  builder.NeedImage(elements);
  builder.NeedImage(Checked(padded) * in.h * in.w);
  builder.Launch("resize", elements, numbers, {Input(0)});
  return builder.Take();
}

bool IsArrangement(const Op& op) {
  return dynamic_cast<const TransposeOp*>(&op) != nullptr || dynamic_cast<const SliceOp*>(&op) != nullptr ||
         dynamic_cast<const PadOp*>(&op) != nullptr || dynamic_cast<const ExpandOp*>(&op) != nullptr;
}

}  // namespace

std::optional<CudaProgram> WalkProgram(const Op& op, const KernelRequest& request) {
  if (const auto* resize = dynamic_cast<const ResizeOp*>(&op)) return ResizeProgram(*resize, request);
  const bool plain = request.layout.is_nchw();
  ProgramBuilder builder(std::string(op.Type()), WalksText());
  if (const auto* function = dynamic_cast<const FunctionOp*>(&op)) {
    builder.Need(plain || request.layout.is_nhwc());
    AddFunction(builder, function->function(), request);
    return builder.Take();
  }
  if (IsArrangement(op) && (plain || request.layout.is_nhwc())) {
    AddArrangement(builder, op, request);
    return builder.Take();
  }
  if (!plain) return std::nullopt;
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
    AddSoftmax(builder, outer, inner, softmax->logarithm(), Input(0), kOutput);
  } else if (const auto* normalization = dynamic_cast<const NormalizationOp*>(&op)) {
    AddNormalization(builder, normalization->normalization(), request);
  } else {
    return std::nullopt;
  }
  return builder.Take();
}

}  // namespace tilesmith::cuda
