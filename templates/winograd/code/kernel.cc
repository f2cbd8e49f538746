#include <algorithm>

#include "layouts/base/check.h"
#include "templates/base/image_strides.h"
#include "templates/direct/code/row_kernels.h"
#include "templates/winograd/code/tile_transforms.h"
#include "templates/winograd/schedule.h"
#include "templates/winograd/weights.h"

namespace tilesmith::winograd {

namespace {

using direct::RowProduct;

class WinogradKernel : public ConvKernel {
 public:
  WinogradKernel(Schedule schedule, const Target& cpu, const ConvWeights& weights)
      : g_(std::move(schedule)),
        product_(ProductOf(g_.workload, std::min(g_.block_tiles, g_.tiles), g_.vector_floats),
                 g_.config.product, g_.block_tiles, cpu, weights.parts),
        transforms_(g_, cpu, weights) {
    const int64_t rest = g_.tiles % g_.block_tiles;
    if (rest > 0 && rest != product_.positions()) {
      rest_ = std::make_unique<RowProduct>(ProductOf(g_.workload, rest, g_.vector_floats), g_.config.product,
                                           g_.block_tiles, cpu, weights.parts);
    }
    const auto bytes = static_cast<size_t>(g_.elements() * ElementWeightBytes());
    weights_ = DataPart(
        weights.parts, bytes, [&] { return PackWeights(cpu, weights); }, [&] { return PackingKey(); });
  }

  int Stages() const override { return g_.config.partition == Partition::kTileBlocks ? 1 : 3; }

  int64_t Tasks(int stage) const override { return Grid(stage).tasks(); }
  bool ShiftsBlocks() const override { return true; }
  TaskGrid Grid(int stage) const override {
    TaskGrid grid = GridOf(g_);
    if (stage == 0 && Stages() > 1) grid.channels = g_.in_vectors;
    if (stage != 1) return grid;
    const auto chunks = static_cast<int64_t>(product_.chunks().size());
    if (g_.config.partition == Partition::kElements) return TaskGrid::List(g_.elements() * chunks);
    return {.channels = chunks, .height = 1};
  }

  void Run(const KernelArgs& args, int stage, TaskRange range) const override {
    if (g_.config.partition == Partition::kTileBlocks) {
      auto* const scratch = args.scratch_at<std::byte>(range.thread * g_.scratch_bytes);
      for (int64_t block = range.begin; block < range.end; ++block) RunBlock(args, block, scratch);
    } else if (stage == 1) {
      RunProducts(static_cast<std::byte*>(args.scratch), range);
    } else {
      const int64_t rows = g_.workload.mb * g_.rows;
      auto* const scratch = static_cast<std::byte*>(args.scratch);
      for (int64_t task = range.begin; task < range.end; ++task) {
        const int64_t row = task % rows, vector = task / rows;
        const RowPart part = {row / g_.rows, row % g_.rows, 0, g_.columns};
        stage == 0 ? transforms_.TransformInput(args, vector, part, V(scratch, vector, row * g_.columns))
                   : transforms_.TransformOutput(args, vector, part, M(scratch, vector, row * g_.columns));
      }
    }
    if (g_.config.stream) code::FenceStreams();  // other threads are to see what was streamed
  }

  int64_t ScratchBytes(int threads) const override {
    return (g_.config.partition == Partition::kTileBlocks ? threads : 1) * g_.scratch_bytes;
  }

  std::vector<CodeBlob> Code() const override {
    std::vector<CodeBlob> blobs = {{"winograd input transform", transforms_.input_code()},
                                   {"winograd products", product_.code()},
                                   {"winograd output transform", transforms_.output_code()}};
    if (rest_ == nullptr) return blobs;
    CodeBlob& rest = blobs.emplace_back();  // not a temporary: GCC 12 sees its string moved out of bounds
    rest.name = "winograd products of the last block";
    rest.bytes = rest_->code();
    return blobs;
  }
  std::span<const std::byte> PackedWeights() const override { return weights_.bytes(); }

 private:
  std::byte* V(std::byte* scratch, int64_t vector, int64_t tile) const {
    return scratch + (vector * g_.block_tiles + tile) * g_.v_vector_bytes();
  }
  float* M(std::byte* scratch, int64_t vector, int64_t tile) const {
    return reinterpret_cast<float*>(scratch + g_.m_bytes) +
           (vector * g_.block_tiles + tile) * g_.vector_floats;
  }

  PartKey PackingKey() const {
    PartKey key("winograd weights");
    key.Add(g_.workload.ic, g_.workload.oc, g_.config.tile, g_.elements(), g_.out_vectors, g_.vector_floats,
            g_.v_type());
    for (const direct::Chunk& chunk : product_.chunks()) key.Add(chunk.first_channel, chunk.vectors);
    return key;
  }

  AlignedBuffer PackWeights(const Target& cpu, const ConvWeights& weights) const {
    const ConvWorkload& w = g_.workload;
    const int64_t padded = g_.out_vectors * g_.vector_floats;
    const int64_t element_stride = padded * w.ic;
    AlignedBuffer packed(g_.elements() * element_stride * sizeof(float), NewMemory::kAnything);
    const Transforms& transforms = g_.transforms();
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
      part.packed = packed.floats() + chunk.first_channel * w.ic;
      part.element_stride = element_stride;
      TILESMITH_DISPATCH(cpu.isa, TransformWinogradWeights)(part);
    }
    return g_.v_type() == DataType::kBf16 ? InPairs(packed) : std::move(packed);
  }

  // The products of pairs of channels in bf16.
  AlignedBuffer InPairs(const AlignedBuffer& floats) const {
    const int64_t channels = g_.workload.ic, pairs = g_.config.product.Steps(channels);
    AlignedBuffer packed(g_.elements() * ElementWeightBytes(), NewMemory::kAnything);
    auto* to = static_cast<uint32_t*>(packed.data());
    const float* from = floats.floats();
    for (int64_t element = 0; element < g_.elements(); ++element) {
      for (const direct::Chunk& chunk : product_.chunks()) {
        const int64_t lanes = static_cast<int64_t>(chunk.vectors) * g_.vector_floats;
        for (int64_t pair = 0; pair < pairs; ++pair, to += lanes) {
          const float* const first = from + 2 * pair * lanes;
          const bool whole = 2 * pair + 1 < channels;
          for (int64_t lane = 0; lane < lanes; ++lane)
            to[lane] = Bf16Bits(first[lane]) | (whole ? Bf16Bits(first[lanes + lane]) << 16 : 0U);
        }
        from += channels * lanes;
      }
    }
    return packed;
  }

  // Of U[xi], and of that in front of a chunk.
  int64_t ElementWeightBytes() const { return ChannelWeightBytes(g_.out_vectors * g_.vector_floats); }
  int64_t ChannelWeightBytes(int64_t out_channels) const {
    const direct::DirectConfig& product = g_.config.product;
    return product.Steps(g_.workload.ic) * out_channels * product.weight_word_bytes();
  }

  void RunBlock(const KernelArgs& args, int64_t block, std::byte* scratch) const {
    const int64_t first = block * g_.block_tiles;
    const int64_t last = std::min(g_.tiles, first + g_.block_tiles);
    const RowProduct& product = last - first == product_.positions() ? product_ : *rest_;
    for (int64_t vector = 0; vector < g_.in_vectors; ++vector) {
      transforms_.ForEachRow(first, last, [&](const RowPart& part, int64_t tile) {
        transforms_.TransformInput(args, vector, part, V(scratch, vector, tile));
      });
    }
    for (int64_t element = 0; element < g_.elements(); ++element) {
      for (size_t chunk = 0; chunk < product.chunks().size(); ++chunk) {
        Multiply(product, scratch, element, chunk);
      }
    }
    for (int64_t vector = 0; vector < g_.out_vectors; ++vector) {
      transforms_.ForEachRow(first, last, [&](const RowPart& part, int64_t tile) {
        transforms_.TransformOutput(args, vector, part, M(scratch, vector, tile));
      });
    }
  }

  void RunProducts(std::byte* scratch, TaskRange range) const {
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

  void Multiply(const RowProduct& product, std::byte* scratch, int64_t element, size_t chunk) const {
    const int64_t channel = product.chunks()[chunk].first_channel;
    const std::byte* const u = weights_.bytes().data();
    product.Run(chunk, {.v = scratch + element * g_.in_element * ElementBytes(g_.v_type()),
                        .v_vector_bytes = g_.block_tiles * g_.v_vector_bytes(),
                        .u = u + element * ElementWeightBytes() + ChannelWeightBytes(channel),
                        .m = M(scratch, channel / g_.vector_floats, 0) + element * g_.out_element});
  }

  Schedule g_;
  RowProduct product_;
  std::unique_ptr<RowProduct> rest_;  // for the last block, where it is smaller
  TileTransforms transforms_;
  SharedBuffer weights_;
};

}  // namespace

std::unique_ptr<ConvKernel> BuildKernel(Schedule schedule, const Target& cpu, const ConvWeights& weights) {
  return std::make_unique<WinogradKernel>(std::move(schedule), cpu, weights);
}

}  // namespace tilesmith::winograd
