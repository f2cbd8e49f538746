#include "templates/winograd/winograd_kernel.h"

#include <algorithm>
#include <cstring>

#include "layouts/base/check.h"
#include "templates/winograd/input_generator.h"
#include "templates/winograd/output_generator.h"
#include "templates/winograd/tile_product.h"
#include "templates/winograd/weights.h"

namespace tilesmith::winograd {

#ifdef TILESMITH_X86

namespace {

// Tiles [column, end) of one row of tiles.
struct RowPart {
  int64_t image, row, column, end;
};

class WinogradKernel : public ConvKernel {
 public:
  WinogradKernel(Geometry geometry, const CpuInfo& cpu, const ConvWeights& weights)
      : g_(std::move(geometry)), product_(g_, std::min(g_.block_tiles, g_.tiles), cpu) {
    const int64_t rest = g_.tiles % g_.block_tiles;
    if (rest > 0 && rest != product_.tiles()) rest_ = std::make_unique<TileProduct>(g_, rest, cpu);
    EmitInputKernels(cpu);
    EmitOutputKernels(cpu);
    PackWeights(cpu, weights);
  }

  int Stages() const override { return g_.config.partition == Partition::kTileBlocks ? 1 : 3; }

  int64_t Tasks(int stage) const override {
    const auto chunks = static_cast<int64_t>(product_.chunks().size());
    switch (g_.config.partition) {
      case Partition::kTileBlocks:
        return (g_.tiles + g_.block_tiles - 1) / g_.block_tiles;
      case Partition::kElements:
        if (stage == 1) return g_.elements() * chunks;
        break;
      case Partition::kOutChannels:
        if (stage == 1) return chunks;
        break;
    }
    return (stage == 0 ? g_.in_vectors : g_.out_vectors) * g_.workload.mb * g_.rows;
  }

  void Run(const KernelArgs& args, int stage, TaskRange range) const override {
    if (g_.config.partition == Partition::kTileBlocks) {
      float* scratch = args.scratch + range.thread * g_.scratch;
      for (int64_t block = range.begin; block < range.end; ++block) RunBlock(args, block, scratch);
    } else if (stage == 1) {
      RunProducts(args.scratch, range);
    } else {
      const int64_t rows = g_.workload.mb * g_.rows;
      for (int64_t task = range.begin; task < range.end; ++task) {
        const int64_t row = task % rows, vector = task / rows;
        const RowPart part = {row / g_.rows, row % g_.rows, 0, g_.columns};
        stage == 0 ? TransformInput(args, vector, part, V(args.scratch, vector, row * g_.columns))
                   : TransformOutput(args, vector, part, M(args.scratch, vector, row * g_.columns));
      }
    }
    if (g_.config.stream) __builtin_ia32_sfence();  // other threads are to see what was streamed
  }

  int64_t ScratchFloats(int threads) const override {
    return g_.config.partition == Partition::kTileBlocks ? threads * g_.scratch : g_.scratch;
  }

  std::vector<CodeBlob> Code() const override {
    std::vector<CodeBlob> blobs = {
        {"winograd input transform", {input_code_->getCode(), input_code_->getSize()}},
        {"winograd products", product_.code()},
        {"winograd output transform", {output_code_->getCode(), output_code_->getSize()}}};
    if (rest_ != nullptr) blobs.push_back({"winograd products of the last block", rest_->code()});
    return blobs;
  }
  std::span<const float> PackedWeights() const override {
    return {weights_.floats(), weights_.bytes() / sizeof(float)};
  }

 private:
  float* V(float* scratch, int64_t vector, int64_t tile) const {
    return scratch + (vector * g_.block_tiles + tile) * g_.vector_floats;
  }
  float* M(float* scratch, int64_t vector, int64_t tile) const {
    return V(scratch + g_.elements() * g_.in_element, vector, tile);
  }

  void EmitInputKernels(const CpuInfo& cpu) {
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
  void EmitOutputKernels(const CpuInfo& cpu) {
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
      outputs_.push_back(
          reinterpret_cast<OutputKernel>(const_cast<uint8_t*>(output_code_->getCode()) + start));
    }
  }

  void PackWeights(const CpuInfo& cpu, const ConvWeights& weights) {
    const ConvWorkload& w = g_.workload;
    const int64_t padded = g_.out_vectors * g_.vector_floats;
    element_weights_ = padded * w.ic;
    weights_ = AlignedBuffer(g_.elements() * element_weights_ * sizeof(float));
    bias_ = AlignedBuffer(padded * sizeof(float));
    if (weights.bias != nullptr) std::copy_n(weights.bias, w.oc, bias_.floats());
    const Transforms& transforms = TransformsOf(static_cast<int>(g_.config.tile));
    std::vector<double> matrix;
    for (int i = 0; i < transforms.window; ++i) {
      for (int k = 0; k < kTaps; ++k) matrix.push_back(transforms.weights(i, k));
    }
    for (const direct::Chunk& chunk : product_.chunks()) {
      ChunkWeights part;
      part.weights = weights.weights + chunk.first_channel * w.ic * kTaps * kTaps;
      part.input_channels = w.ic;
      part.lanes = static_cast<int64_t>(chunk.vectors) * g_.vector_floats;
      part.outputs = std::min(part.lanes, w.oc - chunk.first_channel);
      part.transform = matrix.data();
      part.window = transforms.window;
      part.packed = weights_.floats() + chunk.first_channel * w.ic;
      part.element_stride = element_weights_;
      TILESMITH_DISPATCH(cpu.isa, TransformWinogradWeights)(part);
    }
  }

  void RunBlock(const KernelArgs& args, int64_t block, float* scratch) const {
    const int64_t first = block * g_.block_tiles;
    const int64_t last = std::min(g_.tiles, first + g_.block_tiles);
    const TileProduct& product = last - first == product_.tiles() ? product_ : *rest_;
    for (int64_t vector = 0; vector < g_.in_vectors; ++vector) {
      ForEachRow(first, last, [&](const RowPart& part, int64_t tile) {
        TransformInput(args, vector, part, V(scratch, vector, tile));
      });
    }
    for (int64_t element = 0; element < g_.elements(); ++element) {
      for (size_t chunk = 0; chunk < product.chunks().size(); ++chunk) {
        Multiply(product, scratch, element, chunk);
      }
    }
    for (int64_t vector = 0; vector < g_.out_vectors; ++vector) {
      ForEachRow(first, last, [&](const RowPart& part, int64_t tile) {
        TransformOutput(args, vector, part, M(scratch, vector, tile));
      });
    }
  }

  void RunProducts(float* scratch, TaskRange range) const {
    const auto chunks = static_cast<int64_t>(product_.chunks().size());
    if (g_.config.partition == Partition::kElements) {
      for (int64_t task = range.begin; task < range.end; ++task)
        Multiply(product_, scratch, task / chunks, task % chunks);
      return;
    }
    // V[xi] stays in cache for all chunks of this thread.
    for (int64_t element = 0; element < g_.elements(); ++element) {
      for (int64_t chunk = range.begin; chunk < range.end; ++chunk)
        Multiply(product_, scratch, element, chunk);
    }
  }

  void Multiply(const TileProduct& product, float* scratch, int64_t element, size_t chunk) const {
    product.Run(chunk, V(scratch, 0, 0) + element * g_.in_element,
                weights_.floats() + element * element_weights_ +
                    product.chunks()[chunk].first_channel * g_.workload.ic,
                M(scratch, 0, 0) + element * g_.out_element);
  }

  // Cuts tiles [first, last) at the ends of rows: body(part, its first tile's number within the range).
  template <typename Body>
  void ForEachRow(int64_t first, int64_t last, const Body& body) const {
    for (int64_t tile = first; tile < last;) {
      const int64_t row = tile / g_.columns, column = tile % g_.columns;
      const int64_t end = std::min(g_.columns, column + last - tile);
      body({row / g_.rows, row % g_.rows, column, end}, tile - first);
      tile += end - column;
    }
  }

  void TransformInput(const KernelArgs& args, int64_t vector, const RowPart& part, float* v) const {
    const ConvWorkload& w = g_.workload;
    const InputView& view = args.inputs[0];
    const float* plane = view.data + part.image * view.batch_stride + g_.InVectorOffset(vector);
    const int64_t top = part.row * g_.config.tile - w.ph;
    const InputKernel* kernels = &inputs_[g_.in_rows.of_tile[part.row] * g_.in_columns.kinds.size()];
    for (int64_t x = part.column; x < part.end;) {
      const int64_t end = std::min<int64_t>(part.end, g_.in_columns.run_end[x]);
      const int64_t pixel = top * w.iw + x * g_.config.tile - w.pw;
      kernels[g_.in_columns.of_tile[x]](plane + pixel * g_.in_pixel(), v, end - x);
      v += (end - x) * g_.vector_floats;
      x = end;
    }
  }

  void TransformOutput(const KernelArgs& args, int64_t vector, const RowPart& part, const float* m) const {
    const ConvWorkload& w = g_.workload;
    const int64_t channel_offset = g_.OutVectorOffset(vector);
    float* plane = args.output.data + part.image * args.output.batch_stride + channel_offset;
    const float* residual =
        w.post.sum ? args.inputs[1].data + part.image * args.inputs[1].batch_stride + channel_offset : plane;
    const bool partial = (vector + 1) * g_.vector_floats > w.oc;
    const size_t columns = g_.out_columns.kinds.size();
    size_t first_kernel = (partial ? g_.out_rows.kinds.size() : 0) + g_.out_rows.of_tile[part.row];
    if (Streams(args)) first_kernel += outputs_.size() / 2 / columns;
    for (int64_t x = part.column; x < part.end;) {
      const int64_t end = std::min<int64_t>(part.end, g_.out_columns.run_end[x]);
      const int64_t offset = (part.row * w.ow + x) * g_.config.tile * g_.out_pixel();
      outputs_[first_kernel * columns + g_.out_columns.of_tile[x]](
          m, plane + offset, residual + offset, bias_.floats() + vector * g_.vector_floats, end - x);
      m += (end - x) * g_.vector_floats;
      x = end;
    }
    if (g_.zero_vectors > 0 && vector + 1 == g_.out_vectors) ClearPadding(args, part);
  }

  // Streaming stores must be aligned, which a slice of a concat need not be.
  bool Streams(const KernelArgs& args) const {
    const auto vector_bytes = static_cast<uintptr_t>(g_.vector_floats) * sizeof(float);
    return g_.config.stream && reinterpret_cast<uintptr_t>(args.output.data) % vector_bytes == 0 &&
           args.output.batch_stride % g_.vector_floats == 0;
  }

  // The whole vectors of padding in the output's last block.
  void ClearPadding(const KernelArgs& args, const RowPart& part) const {
    const ConvWorkload& w = g_.workload;
    const int64_t tile = g_.config.tile;
    float* plane =
        args.output.data + part.image * args.output.batch_stride + g_.OutVectorOffset(g_.out_vectors);
    for (int64_t y = part.row * tile; y < std::min(w.oh, (part.row + 1) * tile); ++y) {
      for (int64_t x = part.column * tile; x < std::min(w.ow, part.end * tile); ++x) {
        std::fill_n(plane + (y * w.ow + x) * g_.out_pixel(), g_.zero_vectors * g_.vector_floats, 0.0F);
      }
    }
  }

  static constexpr size_t kFixedBytes = 8192;  // constants

  Geometry g_;
  TileProduct product_;
  std::unique_ptr<TileProduct> rest_;  // for the last block, where it is smaller
  std::unique_ptr<InputGenerator> input_code_;
  std::unique_ptr<OutputGenerator> output_code_;
  std::vector<InputKernel> inputs_;    // at row kind * column kinds + column kind
  std::vector<OutputKernel> outputs_;  // likewise, in the order of EmitOutputKernels
  AlignedBuffer weights_, bias_;
  int64_t element_weights_ = 0;  // floats of U[xi]
};

}  // namespace

std::unique_ptr<ConvKernel> BuildWinogradKernel(Geometry geometry, const CpuInfo& cpu,
                                                const ConvWeights& weights) {
  return std::make_unique<WinogradKernel>(std::move(geometry), cpu, weights);
}

#else

std::unique_ptr<ConvKernel> BuildWinogradKernel(Geometry, const CpuInfo&, const ConvWeights&) {
  TILESMITH_CHECK(false, "the winograd template generates x86 code");
}

#endif  // TILESMITH_X86

}  // namespace tilesmith::winograd
