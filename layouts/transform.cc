#include "layouts/transform.h"

#include <algorithm>
#include <cstring>

#include "layouts/base/check.h"
#include "layouts/base/thread_team.h"
#include "layouts/convert_transform.h"
#include "layouts/transform_moves.h"
#include "layouts/transform_plan.h"

namespace tilesmith {
namespace {

template <typename Element>
class TransformKernel : public Kernel {
 public:
  TransformKernel(MovePlan plan, Isa isa)
      : plan_(std::move(plan)),
        interleave_(TILESMITH_DISPATCH(isa, Interleave<Element>)),
        deinterleave_(TILESMITH_DISPATCH(isa, Deinterleave<Element>)),
        copy_runs_(TILESMITH_DISPATCH(isa, CopyRuns<Element>)) {}

  int64_t Tasks(int) const override { return Grid(0).tasks(); }
  TaskGrid Grid(int) const override { return plan_.Grid(); }
  bool ShiftsBlocks() const override { return plan_.kind != MoveKind::kFlat; }

  void Run(const KernelArgs& args, int, TaskRange range) const override {
    TILESMITH_CHECK(args.inputs.size() == 1, "{} inputs", args.inputs.size());
    const InputView& in = args.inputs[0];
    const MoveShifts shifts = MoveShiftsOf(args, sizeof(Element), sizeof(Element));
    for (int64_t task = range.begin; task < range.end; ++task) {
      const int64_t image = task / plan_.TasksPerImage();
      const MovePlan::TaskPart part = plan_.PartOf(task % plan_.TasksPerImage());
      for (int64_t i = part.first_move; i < part.last_move; ++i) {
        const ChannelMove move = plan_.Shifted(static_cast<size_t>(i), shifts);
        MoveChunk(in.image<Element>(image) + move.in_offset,
                  args.output.image<Element>(image) + move.out_offset, move, part.chunk, shifts);
      }
    }
  }

 private:
  void MoveChunk(const Element* in, Element* out, const ChannelMove& move, int64_t chunk,
                 const MoveShifts& shifts) const {
    switch (plan_.kind) {
      case MoveKind::kFlat:
        return CopyFlat(in, out, move);
      case MoveKind::kRuns:
        return CopyChunk(in, out, move, chunk);
      case MoveKind::kInterleave:
        return InterleaveChunk(in, out, move, chunk, plan_.pixels + shifts.in);
      case MoveKind::kDeinterleave:
        return DeinterleaveChunk(in, out, move, chunk, plan_.pixels + shifts.out);
    }
  }

  static void CopyFlat(const Element* in, Element* out, const ChannelMove& move) {
    if (move.length > 0) std::memcpy(out, in, move.length * sizeof(Element));
    std::fill(out + move.length, out + move.padded, Element{});
  }

  void CopyChunk(const Element* in, Element* out, const ChannelMove& move, int64_t chunk) const {
    const int64_t begin = plan_.ChunkBegin(chunk);
    copy_runs_({.in = in + begin * plan_.in_pixel_stride,
                .out = out + begin * plan_.out_pixel_stride,
                .in_pixel_stride = plan_.in_pixel_stride,
                .out_pixel_stride = plan_.out_pixel_stride,
                .in_run_stride = move.in_run_stride,
                .out_run_stride = move.out_run_stride,
                .pixels = plan_.ChunkBegin(chunk + 1) - begin,
                .runs = move.runs,
                .length = move.length,
                .padded = move.padded});
  }

  void InterleaveChunk(const Element* in, Element* out, const ChannelMove& move, int64_t chunk,
                       int64_t plane_stride) const {
    const int64_t begin = plan_.ChunkBegin(chunk);
    for (int64_t run = 0; run < move.runs; ++run) {
      interleave_({.in = in + run * move.in_run_stride + begin,
                   .out = out + run * move.out_run_stride + begin * plan_.out_pixel_stride,
                   .plane_stride = plane_stride,
                   .pixel_stride = plan_.out_pixel_stride,
                   .pixels = plan_.ChunkBegin(chunk + 1) - begin,
                   .channels = move.length,
                   .padded = move.padded});
    }
  }

  void DeinterleaveChunk(const Element* in, Element* out, const ChannelMove& move, int64_t chunk,
                         int64_t plane_stride) const {
    const int64_t begin = plan_.ChunkBegin(chunk);
    for (int64_t run = 0; run < move.runs; ++run) {
      deinterleave_({.in = in + run * move.in_run_stride + begin * plan_.in_pixel_stride,
                     .out = out + run * move.out_run_stride + begin,
                     .plane_stride = plane_stride,
                     .pixel_stride = plan_.in_pixel_stride,
                     .pixels = plan_.ChunkBegin(chunk + 1) - begin,
                     .channels = move.length,
                     .padded = move.length});
    }
  }

  const MovePlan plan_;
  void (*const interleave_)(const PlaneMove<Element>&);
  void (*const deinterleave_)(const PlaneMove<Element>&);
  void (*const copy_runs_)(const RunMove<Element>&);
};

void CheckTypes(const Layout& from, const Layout& to) {
  if (from.type() == to.type() || AreConverted(from.type(), to.type())) return;
  throw Error(ErrorCode::kBadModel,
              fmt::format("a layout transform converts between f32 and f16 or bf16 only: from {} to {}",
                          from.ToString(), to.ToString()));
}

// One element of one of the types into one of the other.
void ConvertOne(const std::byte* from, DataType from_type, std::byte* to, DataType to_type) {
  if (from_type == to_type) {
    std::memcpy(to, from, static_cast<size_t>(ElementBytes(to_type)));
    return;
  }
  VisitType(from_type, [&](auto from_tag) {
    typename decltype(from_tag)::Type value;
    std::memcpy(&value, from, sizeof(value));
    VisitType(to_type, [&](auto to_tag) {
      const auto converted = ConvertElement<typename decltype(to_tag)::Type>(value);
      std::memcpy(to, &converted, sizeof(converted));
    });
  });
}

}  // namespace

Tensor TransformGeneric(const Tensor& source, const Layout& to) {
  const Shape& shape = source.shape();
  CheckTypes(source.layout(), to);
  Tensor result(shape, to);
  if (shape.size() > 4) {
    TILESMITH_CHECK(source.layout().is_nchw() && to.is_nchw(), "{} from {} to {}", ShapeToString(shape),
                    source.layout().ToString(), to.ToString());
    for (int64_t i = 0; i < source.size(); ++i) {
      ConvertOne(source.raw() + i * source.layout().element_bytes(), source.type(),
                 result.raw() + i * to.element_bytes(), to.type());
    }
    return result;
  }
  const Dims4 dims = ToDims4(shape);
  const int64_t from_size = source.layout().element_bytes(), to_size = to.element_bytes();
  Dims4 at;
  for (at.n = 0; at.n < dims.n; ++at.n) {
    for (at.c = 0; at.c < dims.c; ++at.c) {
      for (at.h = 0; at.h < dims.h; ++at.h) {
        for (at.w = 0; at.w < dims.w; ++at.w) {
          ConvertOne(source.raw() + ElementOffset(dims, source.layout(), at) * from_size, source.type(),
                     result.raw() + ElementOffset(dims, to, at) * to_size, to.type());
        }
      }
    }
  }
  return result;
}

bool TransformGivesRows(const Shape& shape, const Layout& from, const Layout& to) {
  return shape.size() == 4 && PlanTransform(shape, from, to).Grid().GivesRows(shape[0], shape[2]);
}

std::unique_ptr<Kernel> MakeTransformKernel(const Shape& shape, const Layout& from, const Layout& to,
                                            const Target& cpu) {
  CheckTypes(from, to);
  MovePlan plan = PlanTransform(shape, from, to);
  if (from.type() != to.type()) return MakeConvertKernel(std::move(plan), {from.type(), to.type()}, cpu);
  switch (to.element_bytes()) {
    case 1:
      return std::make_unique<TransformKernel<uint8_t>>(std::move(plan), cpu.isa);
    case 2:
      return std::make_unique<TransformKernel<uint16_t>>(std::move(plan), cpu.isa);
    case 4:
      return std::make_unique<TransformKernel<float>>(std::move(plan), cpu.isa);
    default:
      return std::make_unique<TransformKernel<uint64_t>>(std::move(plan), cpu.isa);
  }
}

Tensor Transform(const Tensor& source, const Layout& to, const Target& cpu, int threads) {
  Tensor result(source.shape(), to);
  const std::unique_ptr<Kernel> kernel = MakeTransformKernel(source.shape(), source.layout(), to, cpu);
  const InputView in = source.input_view();
  RunKernel(*kernel, {.inputs = {&in, 1}, .output = result.output_view(), .scratch = nullptr}, threads);
  return result;
}

}  // namespace tilesmith
