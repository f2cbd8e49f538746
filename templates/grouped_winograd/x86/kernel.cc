#include <algorithm>

#include "layouts/base/check.h"
#include "templates/base/image_strides.h"
#include "templates/grouped/lane_swaps.h"
#include "templates/grouped_winograd/schedule.h"
#include "templates/grouped_winograd/x86/generator.h"
#include "templates/winograd/weights.h"
#include "templates/winograd/x86/tile_transforms.h"

namespace tilesmith::grouped_winograd {

namespace {

// A task is a block of tiles of one vector of channels: transformed, multiplied and transformed back in one
// thread's part of the scratch.
class GroupedWinogradKernel : public ConvKernel {
 public:
  GroupedWinogradKernel(Schedule schedule, const Target& cpu, const ConvWeights& weights)
      : g_(std::move(schedule)),
        channels_(g_.workload.ic / g_.workload.g),
        transforms_(g_, cpu, weights.bias) {
    constexpr int64_t kFixedBytes = 4096;  // constants
    ProductShape shape;
    shape.channels = channels_;
    shape.sums = g_.grouped.sums;
    shape.products = static_cast<int64_t>(g_.merged.output.window) * g_.merged.output.window;
    shape.merged = shape.products < g_.elements();
    shape.element_bytes = g_.in_element * kFloatBytes;
    shape.width = g_.grouped.width_tile;
    const int64_t rest = g_.tiles % g_.block_tiles;
    code_ = std::make_unique<ProductGenerator>(
        shape, cpu, 2 * ProductGenerator::KernelBytes(g_.block_tiles, shape) + kFixedBytes);
    const size_t whole_start = code_->Emit(g_.block_tiles);
    const size_t rest_start = rest > 0 ? code_->Emit(rest) : 0;
    code_->Finish();
    auto* code = const_cast<uint8_t*>(code_->getCode());
    whole_ = reinterpret_cast<ProductKernel>(code + whole_start);
    rest_ = reinterpret_cast<ProductKernel>(code + rest_start);
    AlignedBuffer packed = PackWeights(cpu, weights.weights);
    SortWeights(g_.grouped.sums, packed);
    weights_ = Pooled(std::move(packed), weights.pool);
    CountTerms();
  }

  int64_t Tasks(int) const override { return Grid(0).tasks(); }
  TaskGrid Grid(int) const override { return GridOf(g_); }

  void Run(const KernelArgs& args, int, TaskRange range) const override {
    float* scratch = args.scratch_at<float>(range.thread * g_.scratch_bytes);
    for (int64_t task = range.begin; task < range.end; ++task)
      RunBlock(args, task / blocks(), task % blocks(), scratch);
  }

  int64_t ScratchBytes(int threads) const override { return threads * g_.scratch_bytes; }

  std::vector<CodeBlob> Code() const override {
    return {{"grouped_winograd input transform", transforms_.input_code()},
            {"grouped_winograd products", {code_->getCode(), code_->getSize()}},
            {"grouped_winograd output transform", transforms_.output_code()}};
  }
  std::span<const std::byte> PackedWeights() const override { return weights_.bytes(); }

 private:
  int64_t blocks() const { return (g_.tiles + g_.block_tiles - 1) / g_.block_tiles; }
  int64_t weights_per_vector() const { return g_.elements() * channels_ * g_.vector_floats; }

  // U: for vector of channels, xi, channel of the group: one vector.
  AlignedBuffer PackWeights(const Target& cpu, const float* weights) const {
    const ConvWorkload& w = g_.workload;
    AlignedBuffer packed(g_.out_vectors * weights_per_vector() * sizeof(float), NewMemory::kAnything);
    const winograd::Transforms& transforms = g_.transforms();
    std::vector<double> matrix;
    for (int i = 0; i < transforms.window; ++i) {
      for (int k = 0; k < winograd::kTaps; ++k) matrix.push_back(transforms.weights(i, k));
    }
    for (int64_t vector = 0; vector < g_.out_vectors; ++vector) {
      const int64_t first = vector * g_.vector_floats;
      winograd::ChunkWeights part;
      part.weights = weights + first * channels_ * winograd::kTaps * winograd::kTaps;
      part.input_channels = channels_;
      part.lanes = g_.vector_floats;
      part.outputs = std::min(part.lanes, w.oc - first);
      part.transform = matrix.data();
      part.window = transforms.window;
      part.packed = packed.floats() + vector * weights_per_vector();
      part.element_stride = channels_ * g_.vector_floats;
      TILESMITH_DISPATCH(cpu.isa, TransformWinogradWeights)(part);
    }
    return packed;
  }

  // From the order of xi and channels to that of the sums of products and their terms.
  void SortWeights(int64_t sums, AlignedBuffer& packed) const {
    const int64_t lanes = g_.vector_floats, floats = channels_ * lanes;
    std::vector<float> unsorted(weights_per_vector());
    for (int64_t vector = 0; vector < g_.out_vectors; ++vector) {
      float* const u = packed.floats() + vector * weights_per_vector();
      std::copy_n(u, unsorted.size(), unsorted.data());
      for (int64_t i = 0; i < weights_per_vector(); ++i) {
        const grouped::Term term = grouped::TermOf(channels_, sums, i % lanes, i % floats / lanes);
        u[g_.PlaceOf(i / floats) * floats + term.index * lanes + term.lane] = unsorted[i];
      }
    }
  }

  void CountTerms() {
    const winograd::MergedProducts& merged = g_.merged;
    terms_.assign(static_cast<size_t>(merged.output.window) * merged.output.window, 0);
    for (int row : merged.sum_of) {
      for (int column : merged.sum_of) ++terms_[row * merged.output.window + column];
    }
  }

  void RunBlock(const KernelArgs& args, int64_t vector, int64_t block, float* scratch) const {
    const int64_t first = block * g_.block_tiles;
    const int64_t last = std::min(g_.tiles, first + g_.block_tiles);
    transforms_.ForEachRow(first, last, [&](const winograd::RowPart& part, int64_t tile) {
      auto* const v = reinterpret_cast<std::byte*>(scratch + tile * g_.vector_floats);
      transforms_.TransformInput(args, vector, part, v);
    });
    const ProductKernel multiply = last - first == g_.block_tiles ? whole_ : rest_;
    multiply(scratch, weights_.floats() + vector * weights_per_vector(), terms_.data());
    transforms_.ForEachRow(first, last, [&](const winograd::RowPart& part, int64_t tile) {
      transforms_.TransformOutput(args, vector, part, scratch + tile * g_.vector_floats);
    });
  }

  const Schedule g_;
  const int64_t channels_;  // per group
  const winograd::TileTransforms transforms_;
  std::unique_ptr<ProductGenerator> code_;
  ProductKernel whole_ = nullptr, rest_ = nullptr;  // products of a block, and of a smaller last one
  SharedBuffer weights_;
  std::vector<int64_t> terms_;  // of each sum of products
};

}  // namespace

std::unique_ptr<ConvKernel> BuildKernel(Schedule schedule, const Target& cpu, const ConvWeights& weights) {
  return std::make_unique<GroupedWinogradKernel>(std::move(schedule), cpu, weights);
}

}  // namespace tilesmith::grouped_winograd
