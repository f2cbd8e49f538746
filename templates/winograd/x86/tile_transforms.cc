#include "templates/winograd/x86/tile_transforms.h"

#include "templates/base/image_strides.h"

namespace tilesmith::winograd {
namespace {

constexpr size_t kFixedBytes = 8192;  // constants

}  // namespace

TileTransforms::TileTransforms(const Schedule& schedule, const Target& cpu, const float* bias)
    : g_(schedule), bias_(schedule.out_vectors * schedule.vector_floats * sizeof(float)) {
  if (bias != nullptr) std::copy_n(bias, g_.workload.oc, bias_.floats());
  EmitInputKernels(cpu);
  EmitOutputKernels(cpu);
}

void TileTransforms::EmitInputKernels(const Target& cpu) {
  const size_t count = g_.in_rows.kinds.size() * g_.in_columns.kinds.size();
  input_code_ = std::make_unique<InputGenerator>(
      g_, cpu, kFixedBytes + count * InputGenerator::KernelBytes(g_.window()));
  std::vector<size_t> starts;
  for (const Span& rows : g_.in_rows.kinds) {
    for (const Span& columns : g_.in_columns.kinds) starts.push_back(input_code_->Emit(rows, columns));
  }
  input_code_->Finish();
  for (size_t start : starts) {
    inputs_.push_back(reinterpret_cast<InputKernel>(const_cast<uint8_t*>(input_code_->getCode()) + start));
  }
}

// All kinds for a full vector, then, where the last one is not full, all for that; and once more all of
// them streaming.
void TileTransforms::EmitOutputKernels(const Target& cpu) {
  std::vector<int> lanes = {g_.vector_floats};
  const auto partial = static_cast<int>(g_.workload.oc % g_.vector_floats);
  if (partial > 0) lanes.push_back(partial);
  const size_t count = g_.out_rows.kinds.size() * g_.out_columns.kinds.size() * lanes.size() * 2;
  output_code_ = std::make_unique<OutputGenerator>(
      g_, cpu, kFixedBytes + count * OutputGenerator::KernelBytes(g_.window()));
  std::vector<size_t> starts;
  for (int stream = 0; stream <= static_cast<int>(g_.config.stream); ++stream) {
    for (int real : lanes) {
      for (const Span& rows : g_.out_rows.kinds) {
        for (const Span& columns : g_.out_columns.kinds)
          starts.push_back(output_code_->Emit({rows.last, columns.last, real, stream == 1}));
      }
    }
  }
  output_code_->Finish();
  for (size_t start : starts) {
    outputs_.push_back(reinterpret_cast<OutputKernel>(const_cast<uint8_t*>(output_code_->getCode()) + start));
  }
}

void TileTransforms::TransformInput(const KernelArgs& args, int64_t vector, const RowPart& part,
                                    std::byte* v) const {
  const ConvWorkload& w = g_.workload;
  const InputView& view = args.inputs[0];
  const std::byte* plane = view.image<std::byte>(part.image) + g_.InVectorOffset(vector);
  const int64_t top = part.row * g_.input_step() - w.ph;
  const InputKernel* kernels = &inputs_[g_.in_rows.of_tile[part.row] * g_.in_columns.kinds.size()];
  for (int64_t x = part.column; x < part.end;) {
    const int64_t end = std::min<int64_t>(part.end, g_.in_columns.run_end[x]);
    const int64_t pixel = top * w.iw + x * g_.input_step() - w.pw;
    kernels[g_.in_columns.of_tile[x]](plane + pixel * g_.in_pixel_bytes(), v, end - x);
    v += (end - x) * g_.v_vector_bytes();
    x = end;
  }
}

void TileTransforms::TransformOutput(const KernelArgs& args, int64_t vector, const RowPart& part,
                                     const float* m) const {
  const ConvWorkload& w = g_.workload;
  const int64_t channel_offset = g_.OutVectorOffset(vector);
  std::byte* plane = args.output.image<std::byte>(part.image) + channel_offset;
  const std::byte* residual =
      w.post.sum ? args.inputs[1].image<std::byte>(part.image) + channel_offset : plane;
  const bool partial = (vector + 1) * g_.vector_floats > w.oc;
  const size_t columns = g_.out_columns.kinds.size();
  size_t first_kernel = (partial ? g_.out_rows.kinds.size() : 0) + g_.out_rows.of_tile[part.row];
  if (Streams(args)) first_kernel += outputs_.size() / 2 / columns;
  for (int64_t x = part.column; x < part.end;) {
    const int64_t end = std::min<int64_t>(part.end, g_.out_columns.run_end[x]);
    const int64_t offset = (part.row * w.ow + x) * g_.config.tile * g_.out_pixel_bytes();
    outputs_[first_kernel * columns + g_.out_columns.of_tile[x]](
        m, plane + offset, residual + offset, bias_.floats() + vector * g_.vector_floats, end - x);
    m += (end - x) * g_.vector_floats;
    x = end;
  }
  if (g_.zero_vectors > 0 && vector + 1 == g_.out_vectors) ClearPadding(args, part);
}

// Streaming stores must be aligned, which a slice of a concat need not be.
bool TileTransforms::Streams(const KernelArgs& args) const {
  const int64_t vector_bytes = g_.vector_floats * kFloatBytes;
  return g_.config.stream && reinterpret_cast<intptr_t>(args.output.data) % vector_bytes == 0 &&
         args.output.batch_stride % vector_bytes == 0;
}

// The whole vectors of padding in the output's last block.
void TileTransforms::ClearPadding(const KernelArgs& args, const RowPart& part) const {
  const ConvWorkload& w = g_.workload;
  const int64_t tile = g_.config.tile;
  std::byte* plane = args.output.image<std::byte>(part.image) + g_.OutVectorOffset(g_.out_vectors);
  const int64_t bytes = g_.zero_vectors * g_.vector_floats * g_.out.element_bytes();
  for (int64_t y = part.row * tile; y < std::min(w.oh, (part.row + 1) * tile); ++y) {
    for (int64_t x = part.column * tile; x < std::min(w.ow, part.end * tile); ++x) {
      std::fill_n(plane + (y * w.ow + x) * g_.out_pixel_bytes(), bytes, std::byte{0});
    }
  }
}

}  // namespace tilesmith::winograd
