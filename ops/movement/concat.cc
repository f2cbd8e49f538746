#include "ops/movement/concat.h"

#include <fmt/format.h>

#include <algorithm>

#include "layouts/base/error.h"
#include "ops/base/elements.h"
#include "ops/base/import_util.h"
#include "ops/base/saved_op.h"
#include "ops/kernels/block_kernel.h"
#include "ops/kernels/lane_copy.h"
#include "ops/movement/strided_copy.h"

namespace tilesmith {
namespace {

BuiltOp BuildConcat(const NodeSpec& spec) {
  NeedInputs(spec, 1, 1 << 16);
  for (size_t i = 0; i < spec.inputs.size(); ++i) {
    if (!spec.HasInput(i)) Refuse(spec, fmt::format("input {} is missing", i));
  }
  const int64_t axis = NormalAxis(spec, spec.Int("axis", 1), spec.inputs[0].shape.size());
  const auto op = std::make_shared<ConcatOp>(axis);
  std::vector<Shape> shapes;
  std::vector<DataType> types;
  std::vector<int> parts;  // which of the inputs have elements
  for (size_t i = 0; i < spec.inputs.size(); ++i) {
    shapes.push_back(spec.inputs[i].shape);
    types.push_back(spec.inputs[i].type);
    if (ElementCount(shapes[i]) > 0) parts.push_back(static_cast<int>(i));
  }
  if (parts.empty() || parts.size() == spec.inputs.size()) {
    return BuiltWithInputs(op, static_cast<int>(spec.inputs.size()));
  }
  op->OutputType(types);
  op->InferShape(shapes);
  return {op, std::move(parts)};
}

}  // namespace

std::string ConcatOp::Signature() const { return fmt::format("Concat axis {}", axis_); }

Shape ConcatOp::InferShape(std::span<const Shape> inputs) const {
  Shape shape = inputs[0];
  if (axis_ >= static_cast<int64_t>(shape.size())) {
    throw Error(ErrorCode::kBadModel, fmt::format("Concat along axis {} of {}", axis_, ShapeToString(shape)));
  }
  for (const Shape& input : inputs.subspan(1)) {
    Shape same = input;
    if (same.size() == shape.size()) same[axis_] = shape[axis_];
    if (same != shape) {
      throw Error(ErrorCode::kBadModel, fmt::format("Concat along axis {} of {} and {}", axis_,
                                                    ShapeToString(inputs[0]), ShapeToString(input)));
    }
    shape[axis_] = (Checked(shape[axis_]) + input[axis_]).value();
  }
  return shape;
}

Tensor ConcatOp::Reference(std::span<const Tensor* const> inputs) const {
  std::vector<Shape> shapes;
  for (const Tensor* input : inputs) shapes.push_back(input->shape());
  Tensor output(InferShape(shapes), Layout::Nchw(inputs[0]->type()));
  int64_t outer = 1;
  for (int64_t axis = 0; axis < axis_; ++axis) outer *= shapes[0][axis];
  const int64_t row = outer == 0 ? 0 : output.size() / outer;
  int64_t at = 0;
  for (const Tensor* input : inputs) {
    const int64_t part = outer == 0 ? 0 : input->size() / outer;
    for (int64_t i = 0; i < outer; ++i) CopyElements(*input, i * part, output, i * row + at, part);
    at += part;
  }
  return output;
}

bool ConcatOp::RunsIn(const Layout& layout, std::span<const Shape> inputs) const {
  return layout.is_nchw() || (axis_ == 1 && inputs[0].size() <= 4);
}

std::vector<OpImporter> ConcatImporters() { return {{"Concat", BuildConcat}}; }

namespace {

// Lanes [lane, lane + count) of one output block come from an input's block, or are padding (input -1).
struct Segment {
  int input;
  int64_t lane, count;
  int64_t source_offset;  // elements from the input image's start
  int64_t source_block;
  int64_t source_lanes;
};

class ConcatKernel : public BlockKernel {
 public:
  explicit ConcatKernel(const KernelRequest& request)
      : BlockKernel(BlockDimsOf(request.output, request.layout)),
        bytes_(ElementBytes(request.layout.type())),
        segments_(dims().blocks) {
    int64_t channel = 0;
    for (size_t i = 0; i < request.inputs.size(); ++i) {
      const BlockDims in = BlockDimsOf(request.inputs[i], request.layout);
      for (int64_t c = 0; c < in.channels;) {
        const int64_t lane = channel % dims().lanes, source_lane = c % in.lanes;
        const int64_t count = std::min({in.channels - c, in.lanes - source_lane, dims().lanes - lane});
        segments_[channel / dims().lanes].push_back({static_cast<int>(i), lane, count,
                                                     c / in.lanes * in.block_floats() + source_lane,
                                                     c / in.lanes, in.lanes});
        c += count;
        channel += count;
      }
    }
    if (dims().has_padding()) {
      const int64_t used = dims().UsedLanes(dims().blocks - 1);
      segments_.back().push_back({-1, used, dims().lanes - used, 0, 0, 0});
    }
  }

 private:
  void RunPiece(const KernelArgs& args, const BlockPiece& piece) const override {
    const int64_t lanes = dims().lanes;
    const int64_t first = (piece.offset - piece.block * dims().block_floats()) / lanes;
    for (const Segment& segment : segments_[piece.block]) {
      std::byte* const out = args.output.image<std::byte>(piece.image) +
                             (piece.offset + segment.lane) * bytes_ + piece.block * args.output.block_shift;
      if (segment.input < 0) {
        for (int64_t p = 0; p < piece.pixels; ++p)
          std::fill_n(out + p * lanes * bytes_, segment.count * bytes_, std::byte{0});
        continue;
      }
      const InputView& view = args.inputs[segment.input];
      const std::byte* const in = view.image<std::byte>(piece.image) +
                                  (segment.source_offset + first * segment.source_lanes) * bytes_ +
                                  segment.source_block * view.block_shift;
      CopyLanes(ElementLanes({in, out, segment.source_lanes, lanes, segment.count, piece.pixels}, bytes_));
    }
  }

  const int64_t bytes_;                         // of an element
  std::vector<std::vector<Segment>> segments_;  // by output block
};

}  // namespace

std::optional<RowWindows> ConcatOp::RowsReadOf(size_t, std::span<const Shape>, const Shape& output) const {
  if (output.size() != 4 || axis_ != 1) return std::nullopt;
  return RowWindows();
}

std::unique_ptr<Kernel> ConcatOp::MakeKernel(const KernelRequest& request) const {
  if (!request.layout.is_nchw()) return std::make_unique<ConcatKernel>(request);
  std::vector<CopyRegion> regions;
  int64_t at = 0;
  for (size_t slot = 0; slot < request.inputs.size(); ++slot) {
    const Shape& shape = request.inputs[slot];
    CopyRegion& region = regions.emplace_back();
    region.input = static_cast<int>(slot);
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      region.loops.push_back({shape[axis], static_cast<int>(axis), 1, static_cast<int>(axis)});
    }
    region.out_start.resize(shape.size());
    region.out_start[axis_] = at;
    at += shape[axis_];
  }
  return MakeCopyKernel(request, std::move(regions));
}

std::vector<SavedOp> ConcatOps() { return {Saved<ConcatOp>("Concat")}; }

}  // namespace tilesmith
