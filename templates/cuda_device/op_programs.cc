#include "templates/cuda_device/op_programs.h"

#include <algorithm>
#include <span>
#include <string>

#include "layouts/base/sizes.h"
#include "ops/elementwise/activations.h"
#include "ops/elementwise/batch_norm.h"
#include "ops/elementwise/binary.h"
#include "ops/movement/concat.h"
#include "ops/pool/pool.h"
#include "templates/cuda/limits.h"
#include "templates/cuda/text.h"
#include "templates/cuda_device/program_builder.h"
#include "templates/cuda_device/walk_programs.h"

namespace tilesmith::cuda {
namespace {

bool AreOfOneType(const KernelRequest& request) {
  bool of_one = true;
  for (size_t slot = 0; slot < request.inputs.size(); ++slot)
    of_one = of_one && request.InputType(slot) == request.layout.type();
  return of_one;
}

bool IsByteType(DataType type) { return type == DataType::kU8 || type == DataType::kI8; }
bool IsMoved(DataType type) { return type == DataType::kF32 || type == DataType::kBf16 || IsByteType(type); }

std::string OpsText() { return ProgramText().File("ops.cu").Take(); }

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
std::optional<CudaProgram> ConcatProgram(const KernelRequest& request) {
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

// Operands of fewer dimensions than the output's, and powers, are for WalkProgram.
std::optional<CudaProgram> BinaryProgram(const BinaryOp& op, const KernelRequest& request) {
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

}  // namespace

std::optional<CudaProgram> TransformProgram(const Shape& shape, const Layout& from, const Layout& to) {
  if (!IsMoved(from.type()) || !IsMoved(to.type())) return std::nullopt;
  if (from.type() != to.type() && (IsByteType(from.type()) || IsByteType(to.type()))) return std::nullopt;
  const Planes planes = PlanesOf(shape);
  ProgramBuilder builder(from.ToString() + " -> " + to.ToString(), OpsText());
  Move(builder, {planes, from, to, planes.channels, 0, to.PaddedChannels(planes.channels)}, 0);
  builder.Stored(from.type(), to.type());
  return builder.Take();
}

std::optional<CudaProgram> ProgramOf(const Op& op, const KernelRequest& request) {
  const DataType type = request.layout.type();
  if (!AreOfOneType(request) || !IsMoved(type)) return WalkProgram(op, request);
  const auto* concat = dynamic_cast<const ConcatOp*>(&op);
  if (concat != nullptr && concat->axis() == 1 && request.output.size() >= 2) return ConcatProgram(request);
  if (IsByteType(type)) return WalkProgram(op, request);
  if (const auto* pool = dynamic_cast<const PoolOp*>(&op)) return PoolProgram(*pool, request);
  if (const auto* pool = dynamic_cast<const GlobalPoolOp*>(&op)) return GlobalPoolProgram(*pool, request);
  if (const auto* binary = dynamic_cast<const BinaryOp*>(&op)) {
    if (auto program = BinaryProgram(*binary, request)) return program;
  }
  if (const auto* act = dynamic_cast<const ActivationOp*>(&op))
    return MapProgram(std::string(op.Type()), act->activation(), nullptr, request);
  if (const auto* scale = dynamic_cast<const ScaleShiftOp*>(&op))
    return MapProgram("ScaleShift", scale->activation(), scale, request);
  return WalkProgram(op, request);
}

}  // namespace tilesmith::cuda
