#include <algorithm>
#include <memory>
#include <vector>

#include "layouts/base/check.h"
#include "templates/base/image_strides.h"
#include "templates/direct/packing.h"
#include "templates/direct/x86/row_product.h"
#include "templates/strassen/schedule.h"
#include "templates/strassen/x86/generator.h"

namespace tilesmith::strassen {

namespace {

using direct::RowProduct;

// B of one product, out channels by in channels of a half each.
std::vector<float> ProductWeights(const Schedule& g, const std::vector<direct::Chunk>& chunks,
                                  const float* weights, int product) {
  const int64_t ic = g.workload.ic, in_half = ic / 2;
  std::vector<float> combined;
  combined.reserve(in_half * g.workload.oc / 2);
  for (const direct::Chunk& chunk : chunks) {
    const Halves halves = g.HalvesOf(chunk);
    for (int64_t o = 0; o < halves.channels; ++o) {
      const float* first = weights + (halves.first + o) * ic;
      const float* second = weights + (halves.second + o) * ic;
      for (int64_t i = 0; i < in_half; ++i) {
        const double b11 = first[i], b12 = second[i], b21 = first[i + in_half], b22 = second[i + in_half];
        const double t1 = b12 - b11, t2 = b22 - t1;
        const double value[kProducts] = {b11, b21, b22, t2 - b21, t1, t2, b22 - b12};
        combined.push_back(static_cast<float>(value[product]));
      }
    }
  }
  return combined;
}

class StrassenKernel : public ConvKernel {
 public:
  StrassenKernel(Schedule schedule, const Target& cpu, const ConvWeights& weights)
      : g_(std::move(schedule)),
        row_(ProductOf(g_.workload, g_.config.row), g_.config.product, g_.config.row, cpu),
        halves_(g_, cpu),
        grid_(GridOf(g_)) {
    const int64_t rest = g_.BlockAt(g_.image_blocks - 1).pairs % g_.config.row;
    if (rest > 0) {
      rest_ =
          std::make_unique<RowProduct>(ProductOf(g_.workload, rest), g_.config.product, g_.config.row, cpu);
    }
    PackWeights(cpu, weights);
  }

  int Stages() const override { return staged() ? 2 : 1; }

  int64_t Tasks(int stage) const override { return Grid(stage).tasks(); }
  TaskGrid Grid(int stage) const override {
    return staged() && stage == 0 ? TaskGrid::List(g_.blocks()) : grid_;
  }

  void Run(const KernelArgs& args, int stage, TaskRange range) const override {
    float* own = static_cast<float*>(args.scratch) + SharedFloats() + range.thread * ThreadFloats();
    float* own_v = own + g_.m_floats();
    switch (g_.config.partition) {
      case Partition::kBlocks:
        for (int64_t task = range.begin; task < range.end; ++task)
          RunChunks(args, g_.BlockAt(task), {0, chunks()}, own_v, own);
        break;
      case Partition::kOutChannels:
        stage == 0 ? AddUpBlocks(args, range) : MultiplyChunks(args, range, own);
        break;
      case Partition::kOwnSums:
        RunImages(args, range, own_v, own);
        break;
    }
  }

  int64_t ScratchBytes(int threads) const override {
    return (SharedFloats() + threads * ThreadFloats()) * kFloatBytes;
  }

  std::vector<CodeBlob> Code() const override {
    std::vector<CodeBlob> blobs = {{"strassen additions", halves_.code()},
                                   {"strassen products", row_.code()}};
    if (rest_ == nullptr) return blobs;
    CodeBlob& rest = blobs.emplace_back();  // not a temporary: GCC 12 sees its string moved out of bounds
    rest.name = "strassen products of the last row";
    rest.bytes = rest_->code();
    return blobs;
  }
  std::span<const std::byte> PackedWeights() const override { return weights_.bytes(); }

 private:
  bool staged() const { return g_.config.partition == Partition::kOutChannels; }
  int64_t chunks() const { return static_cast<int64_t>(row_.chunks().size()); }
  int64_t SharedFloats() const { return staged() ? g_.blocks() * g_.v_floats() : 0; }
  int64_t ThreadFloats() const { return g_.m_floats() + (staged() ? 0 : g_.v_floats()); }
  // Floats of a chunk's weights for one product.
  int64_t WeightFloats(int64_t chunk) const {
    return g_.workload.ic / 2 * row_.chunks()[chunk].vectors * g_.vector_floats;
  }
  // All products of a chunk lie one after the other.
  int64_t WeightOffset(int64_t chunk) const {
    return kProducts * g_.workload.ic / 2 * row_.chunks()[chunk].first_channel;
  }

  void PackWeights(const Target& cpu, const ConvWeights& weights) {
    const ConvWorkload& w = g_.workload;
    const direct::Schedule packing =
        direct::MakeSchedule(ProductOf(w, row_.positions()), g_.config.product, g_.vector_floats);
    AlignedBuffer all(kProducts * w.ic / 2 * w.oc / 2 * sizeof(float));
    for (int product = 0; product < kProducts; ++product) {
      const std::vector<float> combined = ProductWeights(g_, row_.chunks(), weights.weights, product);
      const direct::PackedWeights packed = direct::PackWeights(packing, cpu, {.weights = combined.data()});
      for (int64_t chunk = 0; chunk < chunks(); ++chunk) {
        std::copy_n(packed.weights.floats() + packed.offsets[chunk], WeightFloats(chunk),
                    all.floats() + WeightOffset(chunk) + product * WeightFloats(chunk));
      }
    }
    weights_ = Pooled(std::move(all), weights.pool);
    if (weights.bias == nullptr) return;
    bias_ = AlignedBuffer(w.oc * sizeof(float));
    std::copy_n(weights.bias, w.oc, bias_.floats());
  }

  const float* ImageOf(const KernelArgs& args, const Block& block) const {
    return args.inputs[0].image<float>(block.image);
  }

  // V of a block.
  void AddUp(const KernelArgs& args, const Block& block, float* v) const {
    const float* image = ImageOf(args, block);
    for (int64_t vector = 0; vector < g_.in_vectors; ++vector) {
      const float* a = image + g_.InVectorOffset(vector);
      float* operands = v + vector * g_.config.block() * g_.vector_floats;
      for (int64_t pair = 0, count = 0; pair < block.pairs; pair += count) {
        const int64_t first = block.first + pair, second = block.second + pair;
        count = std::min({block.pairs - pair, EvenRun(first), EvenRun(second)});
        halves_.sum()(a + g_.InPixelOffset(first), a + g_.InPixelOffset(second),
                      operands + pair * g_.vector_floats, count);
      }
    }
  }

  // Pixels from this one on whose inputs lie one step apart: to the end of the row, of the image without
  // stride.
  int64_t EvenRun(int64_t pixel) const {
    const ConvWorkload& w = g_.workload;
    return w.sh == 1 && w.sw == 1 ? g_.pixels - pixel : w.ow - pixel % w.ow;
  }

  struct Chunks {
    int64_t begin, end;
  };
  void RunChunks(const KernelArgs& args, const Block& block, const Chunks& range, float* v, float* m) const {
    AddUp(args, block, v);
    for (int64_t chunk = range.begin; chunk < range.end; ++chunk) Multiply(args, block, chunk, v, m);
  }

  // Tasks are chunks of images.
  void RunImages(const KernelArgs& args, const TaskRange& range, float* v, float* m) const {
    for (int64_t task = range.begin; task < range.end;) {
      const int64_t image = task / chunks(), first = task % chunks();
      const Chunks some = {first, std::min(chunks(), first + range.end - task)};
      for (int64_t i = 0; i < g_.image_blocks; ++i)
        RunChunks(args, g_.BlockAt(image * g_.image_blocks + i), some, v, m);
      task += some.end - some.begin;
    }
  }

  float* SharedV(const KernelArgs& args, int64_t block) const {
    return args.scratch_at<float>(block * g_.v_floats() * kFloatBytes);
  }

  void AddUpBlocks(const KernelArgs& args, const TaskRange& range) const {
    for (int64_t block = range.begin; block < range.end; ++block)
      AddUp(args, g_.BlockAt(block), SharedV(args, block));
  }

  // Tasks are blocks of chunks.
  void MultiplyChunks(const KernelArgs& args, const TaskRange& range, float* m) const {
    for (int64_t task = range.begin; task < range.end; ++task) {
      const int64_t block = task % g_.blocks();
      Multiply(args, g_.BlockAt(block), task / g_.blocks(), SharedV(args, block), m);
    }
  }

  // The outputs of a block and a chunk from its V.
  void Multiply(const KernelArgs& args, const Block& block, int64_t chunk, const float* v, float* m) const {
    for (int64_t pair = 0; pair < block.pairs; pair += g_.config.row) {
      const int64_t pairs = std::min(g_.config.row, block.pairs - pair);
      const RowProduct& row = pairs == row_.positions() ? row_ : *rest_;
      for (int product = 0; product < kProducts; ++product) {
        RowProduct::Operands operands = OperandOf(args, block, product, v);
        operands.v += pair * g_.vector_floats * kFloatBytes;
        operands.u =
            weights_.bytes().data() + (WeightOffset(chunk) + product * WeightFloats(chunk)) * kFloatBytes;
        operands.m = m + product * g_.product;
        row.Run(chunk, operands);
      }
      Combine(args, block, chunk, {pair, pairs}, m);
    }
  }

  // V, or the part of the input that is the operand as it is.
  RowProduct::Operands OperandOf(const KernelArgs& args, const Block& block, int product,
                                 const float* v) const {
    const int operand = kOperandOf[product];
    if (operand < g_.operands())
      return {.v = reinterpret_cast<const std::byte*>(v + operand * g_.operand),
              .v_vector_bytes = g_.config.block() * g_.vector_floats * kFloatBytes};
    constexpr int kA11 = kOperandOf[0], kA22 = kOperandOf[3];
    const int64_t pixel = operand == kA22 ? block.second : block.first;
    const int64_t vector = operand == kA11 ? 0 : g_.in_vectors;
    const float* const part = ImageOf(args, block) + g_.InVectorOffset(vector) + g_.InPixelOffset(pixel);
    return {.v = reinterpret_cast<const std::byte*>(part),
            .v_vector_bytes = g_.InVectorOffset(1) * kFloatBytes};
  }

  struct Pairs {
    int64_t first, count;
  };
  void Combine(const KernelArgs& args, const Block& block, int64_t chunk_index, const Pairs& pairs,
               const float* m) const {
    const direct::Chunk& chunk = row_.chunks()[chunk_index];
    const Halves halves = g_.HalvesOf(chunk);
    float* const image = args.output.image<float>(block.image);
    const float* residual = nullptr;
    if (g_.workload.post.sum) residual = args.inputs[1].image<float>(block.image);
    for (int v = 0; v < chunk.vectors; ++v) {
      const int64_t lane = static_cast<int64_t>(v) * g_.vector_floats;
      const int64_t vector = g_.OutVectorOffset((halves.first + lane) / g_.vector_floats);
      const int64_t other = g_.OutVectorOffset((halves.second + lane) / g_.vector_floats);
      CombineArgs combine;
      if (g_.workload.post.bias) combine.bias = bias_.floats() + halves.first + lane;
      combine.half = (other - vector) * kFloatBytes;
      combine.bias_half = halves.channels * kFloatBytes;
      const auto run = [&](CombineKernel kernel, int64_t pair, int64_t count) {
        if (count == 0) return;
        const int64_t first = vector + (block.first + pair) * g_.out_pixel();
        combine.products = m + (v * g_.config.row + pair - pairs.first) * g_.vector_floats;
        combine.first = image + first;
        combine.second = combine.first + (block.second - block.first) * g_.out_pixel();
        if (residual != nullptr) combine.residual = residual + first;
        combine.pairs = count;
        kernel(&combine);
      };
      const int64_t alone = block.shared && pairs.first == 0 ? 1 : 0;
      run(halves_.combine_first(), pairs.first, alone);
      run(halves_.combine(), pairs.first + alone, pairs.count - alone);
    }
  }

  Schedule g_;
  RowProduct row_;
  std::unique_ptr<RowProduct> rest_;  // for the last row of an image, where it is shorter
  HalvesGenerator halves_;
  const TaskGrid grid_;
  SharedBuffer weights_;
  AlignedBuffer bias_;
};

}  // namespace

std::unique_ptr<ConvKernel> BuildKernel(Schedule schedule, const Target& cpu, const ConvWeights& weights) {
  return std::make_unique<StrassenKernel>(std::move(schedule), cpu, weights);
}

}  // namespace tilesmith::strassen
