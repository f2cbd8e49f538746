#include "templates/cuda_device/op_programs.h"

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <span>
#include <string>
#include <typeindex>
#include <vector>

#include "layouts/base/sizes.h"
#include "ops/dense/attention.h"
#include "ops/dense/matmul.h"
#include "ops/dense/softmax.h"
#include "ops/elementwise/activations.h"
#include "ops/elementwise/batch_norm.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/functions.h"
#include "ops/elementwise/kinds.h"
#include "ops/movement/concat.h"
#include "ops/movement/indexing.h"
#include "ops/movement/pad.h"
#include "ops/movement/transpose.h"
#include "ops/pool/pool.h"
#include "ops/reduce/normalization.h"
#include "ops/reduce/reduce.h"
#include "ops/resize/resize.h"
#include "templates/cuda/limits.h"
#include "templates/cuda/text.h"
#include "templates/cuda_device/program_builder.h"
#include "templates/cuda_device/walks.h"

namespace tilesmith::cuda {
namespace {

bool AreOfOneType(const KernelRequest& request) {
  bool of_one = true;
  for (size_t slot = 0; slot < request.inputs.size(); ++slot)
    of_one = of_one && request.InputType(slot) == request.layout.type();
  return of_one;
}

bool IsPlain(const KernelRequest& request) { return request.layout.is_nchw(); }
bool AreReals(const KernelRequest& request) {
  const DataType type = request.layout.type();
  return AreOfOneType(request) && (type == DataType::kF32 || type == DataType::kBf16);
}
bool ArePlainFloats(const KernelRequest& request) {
  return IsPlain(request) && AreOfOneType(request) && request.layout.type() == DataType::kF32;
}
// In an order in which axes have strides.
bool AreRealsInRows(const KernelRequest& request) {
  return AreReals(request) && (IsPlain(request) || request.layout.is_nhwc());
}

bool IsByteType(DataType type) { return type == DataType::kU8 || type == DataType::kI8; }
bool IsMoved(DataType type) { return type == DataType::kF32 || type == DataType::kBf16 || IsByteType(type); }

std::string OpsText() { return ProgramText().File("ops.cu").Take(); }
// The program of one that walks over plain tensors.
ProgramBuilder Walking(const Op& op) { return {std::string(op.Type()), WalksText()}; }

// Images, channels and pixels of a tensor that has more dimensions than four only in NCHW.
struct Planes {
  int64_t images = 1, channels = 1, pixels = 1;
};
Planes PlanesOf(const Shape& shape) {
  Planes planes;
  if (!shape.empty()) planes.images = shape[0];
  if (shape.size() > 1) planes.channels = shape[1];
  for (size_t i = 2; i < shape.size(); ++i) planes.pixels = (Checked(planes.pixels) * shape[i]).value();
  return planes;
}

struct Moved {
  Planes planes;
  Layout from, to;
  int64_t all_channels = 0;  // of the output
  int64_t first = 0, count = 0;
};
void Move(ProgramBuilder& builder, const Moved& m, size_t slot) {
  const Planes& p = m.planes;
  const int64_t in_block = m.from.BlockFor(p.channels), out_block = m.to.BlockFor(m.all_channels);
  const int64_t numbers[] = {p.images,
                             p.channels,
                             p.pixels,
                             in_block,
                             out_block,
                             m.first,
                             m.count,
                             m.from.element_bytes(),
                             m.to.element_bytes()};
  builder.NeedImage(Checked(m.to.PaddedChannels(m.all_channels)) * p.pixels);
  builder.NeedImage(Checked(m.from.PaddedChannels(p.channels)) * p.pixels);
  builder.Launch("move", Checked(p.images) * m.count * p.pixels, numbers, {Input(slot)});
}

// Joins channels; padding is behind the last input's.
std::optional<CudaProgram> ChannelsProgram(const KernelRequest& request) {
  ProgramBuilder builder("Concat", OpsText());
  const int64_t all = request.output[1];
  int64_t first = 0;
  for (size_t slot = 0; slot < request.inputs.size(); ++slot) {
    const Planes planes = PlanesOf(request.inputs[slot]);
    const int64_t end =
        slot + 1 < request.inputs.size() ? first + planes.channels : request.layout.PaddedChannels(all);
    Move(builder, {planes, request.layout, request.layout, all, first, end - first}, slot);
    first += planes.channels;
  }
  builder.Stored(request.layout.type(), request.layout.type());
  return builder.Take();
}

std::optional<CudaProgram> PoolProgram(const PoolOp& op, const KernelRequest& request) {
  const PoolWindow& w = op.window();
  const Dims4 in = ToDims4(request.inputs[0]), out = ToDims4(request.output);
  const int64_t padded = request.layout.PaddedChannels(in.c), block = request.layout.BlockFor(in.c);
  const int64_t numbers[] = {in.n,
                             in.c,
                             padded,
                             block,
                             in.h,
                             in.w,
                             out.h,
                             out.w,
                             w.kh,
                             w.kw,
                             w.sh,
                             w.sw,
                             w.dh,
                             w.dw,
                             w.top,
                             w.left,
                             w.bottom,
                             w.right,
                             w.kind == PoolKind::kMax,
                             w.count_include_pad,
                             request.layout.element_bytes()};
  ProgramBuilder builder(std::string(op.Type()), OpsText());
  // A tap's place in the padded input, and so in the input.
  builder.NeedImage(Checked(in.h + w.top + w.bottom + w.kh * w.dh) * (in.w + w.left + w.right + w.kw * w.dw) *
                    padded);
  builder.NeedImage(Checked(padded) * out.h * out.w);
  builder.Launch("pool", Checked(in.n) * padded * out.h * out.w, numbers, {Input(0)});
  builder.Stored(request.layout.type(), request.layout.type());
  return builder.Take();
}

std::optional<CudaProgram> GlobalPoolProgram(const GlobalPoolOp& op, const KernelRequest& request) {
  const Dims4 in = ToDims4(request.inputs[0]);
  const int64_t padded = request.layout.PaddedChannels(in.c), pixels = (Checked(in.h) * in.w).value();
  const int64_t numbers[] = {in.n,
                             in.c,
                             padded,
                             request.layout.BlockFor(in.c),
                             pixels,
                             op.kind() == PoolKind::kMax,
                             request.layout.element_bytes()};
  ProgramBuilder builder(std::string(op.Type()), OpsText());
  builder.NeedImage(Checked(padded) * pixels);
  builder.Launch("global_pool", Checked(in.n) * padded, numbers, {Input(0)});
  builder.Stored(request.layout.type(), request.layout.type());
  return builder.Take();
}

// Operands of fewer dimensions than the output's, and powers, are for PairProgram.
std::optional<CudaProgram> SameRankProgram(const BinaryOp& op, const KernelRequest& request) {
  const Shape& output = request.output;
  const auto same_rank = [&](const Shape& shape) { return shape.size() == output.size(); };
  if (op.kind() == BinaryKind::kPow || output.size() > 4 || request.inputs.size() != 2 ||
      !std::ranges::all_of(request.inputs, same_rank))
    return std::nullopt;
  const Dims4 out = ToDims4(output);
  const int64_t padded = request.layout.PaddedChannels(out.c);
  std::vector<int64_t> numbers = {static_cast<int64_t>(op.kind()), padded, request.layout.element_bytes()};
  for (const Shape& shape : {output, request.inputs[0], request.inputs[1]}) {
    const Dims4 dims = ToDims4(shape);
    numbers.insert(numbers.end(), {dims.n, dims.c, dims.h, dims.w, request.layout.BlockFor(dims.c)});
  }
  ProgramBuilder builder(std::string(op.Type()), OpsText());
  builder.NeedImage(Checked(padded) * out.h * out.w);
  builder.Launch("binary", Checked(out.n) * padded * out.h * out.w, numbers, {Input(0), Input(1)});
  builder.Stored(request.layout.type(), request.layout.type());
  return builder.Take();
}

std::optional<CudaProgram> MapProgram(std::string name, const Activation& activation,
                                      const ScaleShiftOp* scale_shift, const KernelRequest& request) {
  constexpr size_t kNumbers = 8;  // in front of scale and shift in map.cu
  ProgramText text;
  text.Activate(activation).Constant("HAS_SCALE", scale_shift != nullptr).File("map.cu");
  const Planes p = PlanesOf(request.output);
  const int64_t padded = request.layout.PaddedChannels(p.channels);
  const int64_t numbers[] = {p.images,
                             p.channels,
                             padded,
                             p.pixels,
                             request.layout.BlockFor(p.channels),
                             request.layout.element_bytes()};
  ProgramBuilder builder(std::move(name), text.Take());
  builder.NeedImage(Checked(padded) * p.pixels);
  builder.Launch("map", Checked(p.images) * padded * p.pixels, numbers, {Input(0)});
  builder.Stored(request.layout.type(), request.layout.type());
  if (scale_shift != nullptr) {
    builder.PadNumbers(kNumbers);
    builder.Weights(scale_shift->scale());
    builder.Weights(scale_shift->shift());
  }
  return builder.Take();
}

std::optional<CudaProgram> ActivationProgram(const ActivationOp& op, const KernelRequest& request) {
  return MapProgram(std::string(op.Type()), op.activation(), nullptr, request);
}

std::optional<CudaProgram> ScaleShiftProgram(const ScaleShiftOp& op, const KernelRequest& request) {
  return MapProgram("ScaleShift", op.activation(), &op, request);
}

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

// The input seen through the sources of each of the output's axes.
std::optional<CudaProgram> ArrangementProgram(const Op& op, const KernelRequest& request, Arranged arranged) {
  ProgramBuilder builder = Walking(op);
  arranged.out = AxesOf(request.output, request.layout);
  arranged.type = request.layout.type();
  AddArrange(builder, std::move(arranged), 0);
  builder.Stored(request.layout.type(), request.layout.type());
  return builder.Take();
}

std::optional<CudaProgram> TransposeProgram(const TransposeOp& op, const KernelRequest& request) {
  const Axes in = AxesOf(request.inputs[0], request.layout);
  Arranged a;
  for (const int64_t from : op.perm()) {
    const Axis& axis = in[static_cast<size_t>(from)];
    a.sources.push_back({0, 1, axis.size, axis.stride});
  }
  return ArrangementProgram(op, request, std::move(a));
}

std::optional<CudaProgram> SliceProgram(const SliceOp& op, const KernelRequest& request) {
  const Axes in = AxesOf(request.inputs[0], request.layout);
  const std::vector<SliceAxis> axes = op.Axes(request.inputs[0]);
  Arranged a;
  for (size_t i = 0; i < axes.size(); ++i)
    a.sources.push_back({axes[i].start, axes[i].step, in[i].size, in[i].stride});
  return ArrangementProgram(op, request, std::move(a));
}

std::optional<CudaProgram> PadProgram(const PadOp& op, const KernelRequest& request) {
  const Axes in = AxesOf(request.inputs[0], request.layout);
  Arranged a;
  a.mode = static_cast<int64_t>(op.mode());
  a.value = Bits(op.value());
  for (size_t i = 0; i < in.size(); ++i) a.sources.push_back({-op.begin()[i], 1, in[i].size, in[i].stride});
  return ArrangementProgram(op, request, std::move(a));
}

std::optional<CudaProgram> ExpandProgram(const ExpandOp& op, const KernelRequest& request) {
  const Axes in = AxesOf(request.inputs[0], request.layout);
  const size_t missing = request.output.size() - in.size();
  Arranged a;
  for (size_t i = 0; i < request.output.size(); ++i) {
    const bool repeats = i < missing || in[i - missing].size == 1;
    a.sources.push_back({0, 1, request.output[i], repeats ? 0 : in[i - missing].stride});
  }
  return ArrangementProgram(op, request, std::move(a));
}

std::optional<CudaProgram> ConcatProgram(const ConcatOp& op, const KernelRequest& request) {
  if (op.axis() == 1 && request.output.size() >= 2 && AreOfOneType(request) && IsMoved(request.layout.type()))
    return ChannelsProgram(request);
  if (!ArePlainFloats(request)) return std::nullopt;
  ProgramBuilder builder = Walking(op);
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
  return builder.Take();
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

std::optional<CudaProgram> PairProgram(const BinaryOp& op, const KernelRequest& request) {
  if (auto program = SameRankProgram(op, request)) return program;
  if (!ArePlainFloats(request) || request.inputs.size() != 2) return std::nullopt;
  ProgramBuilder builder = Walking(op);
  const int64_t count = Count(request.output);
  std::vector<int64_t> numbers = {count, static_cast<int64_t>(op.kind())};
  AddWalk(builder, AxesOf(request.output), numbers);
  for (const Shape& shape : request.inputs) AddWalk(builder, Broadcast(shape, request.output), numbers);
  builder.NeedImage(count);
  builder.Launch("pair", count, numbers, {Input(0), Input(1)});
  return builder.Take();
}

constexpr std::array kFunctions = {FunctionKind::kAbs,      FunctionKind::kElu,  FunctionKind::kErf,
                                   FunctionKind::kExp,      FunctionKind::kGelu, FunctionKind::kGeluTanh,
                                   FunctionKind::kLog,      FunctionKind::kNeg,  FunctionKind::kReciprocal,
                                   FunctionKind::kSoftplus, FunctionKind::kSqrt, FunctionKind::kMish,
                                   FunctionKind::kSelu};

std::optional<CudaProgram> FunctionProgram(const FunctionOp& op, const KernelRequest& request) {
  const Function& function = op.function();
  ProgramBuilder builder = Walking(op);
  builder.Need(IsPlain(request) || request.layout.is_nhwc());
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
  return builder.Take();
}

template <typename IsInner>
std::pair<Axes, Axes> Divided(const Axes& axes, const IsInner& is_inner) {
  std::pair<Axes, Axes> both;
  for (size_t i = 0; i < axes.size(); ++i)
    (is_inner(static_cast<int64_t>(i)) ? both.second : both.first).push_back(axes[i]);
  return both;
}

std::optional<CudaProgram> ReduceProgram(const ReduceOp& op, const KernelRequest& request) {
  ProgramBuilder builder = Walking(op);
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
  return builder.Take();
}

std::optional<CudaProgram> SoftmaxProgram(const SoftmaxOp& op, const KernelRequest& request) {
  ProgramBuilder builder = Walking(op);
  const auto [outer, inner] = Divided(AxesOf(request.output), [&](int64_t axis) {
    return op.first_axis() <= axis && axis <= op.last_axis();
  });
  AddSoftmax(builder, {.outer = outer, .inner = inner, .logarithm = op.logarithm()}, Input(0), kOutput);
  return builder.Take();
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

// The mask is added to the scores.
void AddMask(ProgramBuilder& builder, const AttentionShapes& s, const SeenStrides& strides) {
  Matrices mask = MatricesOf(s.mask, strides, s.batch);
  const Shape& seen = s.mask;
  mask.batch.push_back({s.rows, seen[seen.size() - 2] == 1 ? 0 : mask.row});
  mask.batch.push_back({s.keys, seen.back() == 1 ? 0 : mask.column});
  const int64_t count = SizeOf(mask.batch);
  std::vector<int64_t> numbers = {count, static_cast<int64_t>(BinaryKind::kAdd)};
  for (int i = 0; i < 2; ++i) AddWalk(builder, {{count, 1}}, numbers);
  AddWalk(builder, mask.batch, numbers);
  builder.NeedImage(count);
  builder.Launch("pair", count, numbers, {InScratch(), Input(3)}).output = InScratch();
}

// None where a side is no matrix, and where numbers do not fit an int.
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

// Scores of all rows, the mask added, are a tensor in scratch. None where that would be too large.
std::optional<CudaProgram> AttentionProgram(const AttentionOp& op, const KernelRequest& request) {
  const AttentionParams& params = op.params();
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
  if (params.masked) AddMask(builder, s, StridesOf(params.mask, request.inputs[3]));
  AddSoftmax(builder,
             {.outer = {{count * s.rows, s.keys}},
              .inner = {{s.keys, 1}},
              .causal_rows = params.causal ? s.rows : 0},
             InScratch(), InScratch());
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

std::optional<CudaProgram> NormalizationProgram(const NormalizationOp& op, const KernelRequest& request) {
  const Normalization& n = op.normalization();
  ProgramBuilder builder = Walking(op);
  constexpr size_t kNumbers = 12;  // NORMALIZE_INTS of walks.cu
  const Shape& shape = request.inputs[0];
  builder.Need(HasNormalizationKernel(shape, n) && !n.axes.empty() && Count(shape) > 0);
  if (shape.size() < 2 || n.axes.empty() || Count(shape) == 0) return builder.Take();
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
  return builder.Take();
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
  ProgramBuilder builder = Walking(op);
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
  ProgramBuilder builder = Walking(op);
  std::vector<int64_t> numbers = {count, data[axis].size, data[axis].stride, ElementBytes(index)};
  for (const Axes& axes : {from, chosen, AxesOf(request.output)}) AddWalk(builder, axes, numbers);
  builder.NeedImage(count);
  builder.Launch("gather", count, numbers, {Input(0), Input(1)}).inputs[1].element_bytes =
      ElementBytes(index);
  return builder.Take();
}

std::optional<CudaProgram> LrnProgram(const LrnOp& op, const KernelRequest& request) {
  const LrnParameters& p = op.parameters();
  const Shape& shape = request.output;
  ProgramBuilder builder = Walking(op);
  const int64_t count = Count(shape), before = (p.size - 1) / 2;
  builder.Need(count > 0);
  if (count == 0) return builder.Take();
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
  return builder.Take();
}

// How a type of op is computed, and of which tensors at all.
struct Maker {
  bool (*takes)(const KernelRequest&);
  std::optional<CudaProgram> (*make)(const Op&, const KernelRequest&);
};
using Makers = std::map<std::type_index, Maker>;

bool TakesAny(const KernelRequest&) { return true; }

template <typename T, auto make>
Makers::value_type For(bool (*takes)(const KernelRequest&)) {
  return {typeid(T), {takes, [](const Op& op, const KernelRequest& request) {
                        return make(static_cast<const T&>(op), request);
                      }}};
}

}  // namespace

std::optional<CudaProgram> ProgramOf(const Op& op, const KernelRequest& request) {
  static const Makers makers = {
      For<ActivationOp, ActivationProgram>(AreReals),
      For<AttentionOp, AttentionProgram>(ArePlainFloats),
      For<BinaryOp, PairProgram>(AreReals),
      For<ConcatOp, ConcatProgram>(TakesAny),
      For<ExpandOp, ExpandProgram>(AreRealsInRows),
      For<FunctionOp, FunctionProgram>(AreReals),
      For<GatherOp, GatherProgram>(TakesAny),
      For<GlobalPoolOp, GlobalPoolProgram>(AreReals),
      For<LrnOp, LrnProgram>(ArePlainFloats),
      For<MatMulOp, MatMulProgram>(ArePlainFloats),
      For<NormalizationOp, NormalizationProgram>(ArePlainFloats),
      For<PadOp, PadProgram>(AreRealsInRows),
      For<PoolOp, PoolProgram>(AreReals),
      For<ReduceOp, ReduceProgram>(ArePlainFloats),
      For<ResizeOp, ResizeProgram>(AreReals),
      For<ScaleShiftOp, ScaleShiftProgram>(AreReals),
      For<SliceOp, SliceProgram>(AreRealsInRows),
      For<SoftmaxOp, SoftmaxProgram>(ArePlainFloats),
      For<TransposeOp, TransposeProgram>(AreRealsInRows),
  };
  const auto found = makers.find(typeid(op));
  if (found == makers.end() || !found->second.takes(request)) return std::nullopt;
  return found->second.make(op, request);
}

std::optional<CudaProgram> TransformProgram(const Shape& shape, const Layout& from, const Layout& to) {
  if (!IsMoved(from.type()) || !IsMoved(to.type())) return std::nullopt;
  if (from.type() != to.type() && (IsByteType(from.type()) || IsByteType(to.type()))) return std::nullopt;
  const Planes planes = PlanesOf(shape);
  ProgramBuilder builder(from.ToString() + " -> " + to.ToString(), OpsText());
  Move(builder, {planes, from, to, planes.channels, 0, to.PaddedChannels(planes.channels)}, 0);
  builder.Stored(from.type(), to.type());
  return builder.Take();
}

}  // namespace tilesmith::cuda
