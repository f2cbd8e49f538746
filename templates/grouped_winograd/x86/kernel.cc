#include <algorithm>

#include "layouts/base/check.h"
#include "templates/base/image_strides.h"
#include "templates/code/generated_code.h"
#include "templates/code/vector_code.h"
#include "templates/grouped/lane_swaps.h"
#include "templates/grouped_winograd/config.h"
#include "templates/winograd/code/tile_transforms.h"
#include "templates/winograd/weights.h"

namespace tilesmith::grouped_winograd {
namespace {

// The products of a block of tiles, in place: for each sum of products, each tile and each lane of one vector
// of channels (several whole groups),
//   M[sum][tile][lane] = sum over the xi that belong to it, and over the channels c of the lane's group, of
//                        V[xi][tile][c] * U[xi][c][lane]
// where V and U are sorted by the sums, and the terms of a U[xi] by templates/grouped/lane_swaps.h.
//
// products: V of the first tile, which becomes M. weights: U of the vector. terms: for each sum of products,
// how many xi belong to it.
using ProductKernel = void (*)(float* products, const float* weights, const int64_t* terms);

struct ProductShape {
  int64_t channels = 0;       // per group
  int64_t sums = 1;           // see templates/grouped/lane_swaps.h
  int64_t products = 0;       // sums of products
  bool merged = false;        // some of them have several terms
  int64_t element_bytes = 0;  // from one xi, or sum, to the next
  int64_t width = 0;          // tiles of a register tile
};

class ProductGenerator : public VectorCode {
 public:
  ProductGenerator(const ProductShape& shape, const Target& cpu, size_t buffer_bytes);

  // A kernel for `tiles` tiles. Returns its offset in the code.
  size_t Emit(int64_t tiles);
  // After the last kernel.
  void Finish() { EmitConstants(); }

  // Bytes of code of a kernel, at most.
  static int64_t KernelBytes(int64_t tiles, const ProductShape& shape);

 private:
  Xbyak::Xmm Accumulator(int64_t sum, int64_t tile) const {
    return Vector(static_cast<int>(sum * shape_.width + tile));
  }
  Xbyak::Xmm Weight(int64_t sum) const { return Vector(first_weight_ + static_cast<int>(sum)); }

  struct Tiles {
    int64_t first, count;
  };
  // One sum of products.
  void EmitTiles(const Tiles& tiles);
  // One term of it; the first begins it.
  void EmitTerm(const Tiles& tiles, bool begin);
  void EmitSumOfSums(int64_t tiles);
  // Weights, and the index of the permute where there is one.
  void EmitWeights(int64_t spread);
  // Every lane gets what it needs of its group's input: element `spread`, or the lane that far off.
  void EmitInput(const Xbyak::Xmm& to, int64_t tile, int64_t spread);

  const ProductShape shape_;
  const int first_weight_, index_, input_;  // registers after the accumulators
};

using x86::Offset;
using Xbyak::Address;
using Xbyak::Reg64;
using Xbyak::Xmm;

// The next sum's ...
const Reg64 kProducts(Xbyak::Operand::RDI);
const Reg64 kWeights(Xbyak::Operand::RSI);
const Reg64 kTerms(Xbyak::Operand::RDX);
const Reg64 kTarget(Xbyak::Operand::RCX);
const Reg64 kSumsLeft(Xbyak::Operand::R8);
// ... and its next term's.
const Reg64 kProductsNow(Xbyak::Operand::R9);
const Reg64 kWeightsNow(Xbyak::Operand::R10);
const Reg64 kTermsLeft(Xbyak::Operand::R11);

ProductGenerator::ProductGenerator(const ProductShape& shape, const Target& cpu, size_t buffer_bytes)
    : VectorCode(cpu, buffer_bytes),
      shape_(shape),
      first_weight_(registers() - static_cast<int>(shape.sums)),
      index_(first_weight_ - 1),
      input_(index_ - kInputRegisters) {}

int64_t ProductGenerator::KernelBytes(int64_t tiles, const ProductShape& shape) {
  constexpr int64_t kTermBytes = 18, kStoreBytes = 11, kFixedBytes = 256, kWeightBytes = 24, kSumBytes = 14;
  const int64_t of_tile = shape.channels * kTermBytes + kStoreBytes + (shape.sums - 1) * kSumBytes;
  const int64_t bytes = kFixedBytes + tiles * of_tile + (tiles + 1) * shape.channels * kWeightBytes;
  return shape.merged ? 2 * bytes : bytes;
}

size_t ProductGenerator::Emit(int64_t tiles) {
  align(64);
  const size_t start = getSize();
  mov(kTarget, kProducts);
  mov(kSumsLeft, shape_.products);
  Xbyak::Label next;
  align(32);
  L(next);
  for (int64_t first = 0; first < tiles; first += shape_.width)
    EmitTiles({first, std::min(shape_.width, tiles - first)});
  mov(kProducts, kProductsNow);
  mov(kWeights, kWeightsNow);
  add(kTerms, static_cast<int>(sizeof(int64_t)));
  add(kTarget, Offset(shape_.element_bytes));
  dec(kSumsLeft);
  jnz(next, T_NEAR);
  vzeroupper();
  ret();
  return start;
}

void ProductGenerator::EmitTiles(const Tiles& tiles) {
  mov(kProductsNow, kProducts);
  mov(kWeightsNow, kWeights);
  EmitTerm(tiles, true);
  if (shape_.merged) {
    Xbyak::Label again, done;
    mov(kTermsLeft, ptr[kTerms]);
    dec(kTermsLeft);
    jz(done, T_NEAR);
    align(16);
    L(again);
    EmitTerm(tiles, false);
    dec(kTermsLeft);
    jnz(again, T_NEAR);
    L(done);
  }
  EmitSumOfSums(tiles.count);
  for (int64_t i = 0; i < tiles.count; ++i)
    vmovups(ptr[kTarget + Offset((tiles.first + i) * vector_bytes())], Accumulator(0, i));
}

void ProductGenerator::EmitTerm(const Tiles& tiles, bool begin) {
  for (int64_t spread = 0; spread < shape_.channels / shape_.sums; ++spread) {
    EmitWeights(spread);
    for (int64_t i = 0; i < tiles.count; ++i) {
      const Xmm input = Vector(input_ + static_cast<int>(i % kInputRegisters));
      EmitInput(input, tiles.first + i, spread);
      for (int64_t sum = 0; sum < shape_.sums; ++sum) {
        const Xmm acc = Accumulator(sum, i);
        begin&& spread == 0 ? vmulps(acc, input, Weight(sum)) : vfmadd231ps(acc, input, Weight(sum));
      }
    }
  }
  add(kProductsNow, Offset(shape_.element_bytes));
  add(kWeightsNow, Offset(shape_.channels * vector_bytes()));
}

// Halves the sums until one is left: sum t takes in that of t ^ distance, whose lanes lie that far off.
void ProductGenerator::EmitSumOfSums(int64_t tiles) {
  for (int64_t half = shape_.sums / 2; half > 0; half /= 2) {
    for (int64_t i = 0; i < half * tiles; ++i) {
      const Xmm acc = Accumulator(i / tiles, i % tiles), other = Accumulator(i / tiles + half, i % tiles);
      SwapLanes(other, static_cast<int>(half * (shape_.channels / shape_.sums)));
      vaddps(acc, acc, other);
    }
  }
}

void ProductGenerator::EmitWeights(int64_t spread) {
  for (int64_t sum = 0; sum < shape_.sums; ++sum)
    vmovups(Weight(sum), ptr[kWeightsNow + Offset((spread * shape_.sums + sum) * vector_bytes())]);
  if (shape_.sums > 1 || shape_.channels != 8 || !wide()) return;
  std::vector<uint32_t> index(vector_floats());
  for (int lane = 0; lane < vector_floats(); ++lane)
    index[lane] = static_cast<uint32_t>(lane / shape_.channels * shape_.channels + spread);
  vmovups(Vector(index_), Constant(index));
}

void ProductGenerator::EmitInput(const Xmm& to, int64_t tile, int64_t spread) {
  const Address from = ptr[kProductsNow + Offset(tile * vector_bytes())];
  if (shape_.sums > 1) {
    spread == 0 ? vmovups(to, from) : vpermilps(to, from, grouped::kSwapPattern[spread]);
  } else if (shape_.channels == vector_floats()) {
    vbroadcastss(to, ptr[kProductsNow + Offset(tile * vector_bytes() + spread * kFloatBytes)]);
  } else if (shape_.channels == 8) {
    vpermps(Xbyak::Zmm(to.getIdx()), Xbyak::Zmm(index_), from);
  } else if (shape_.channels == 4) {
    vpermilps(to, from, static_cast<uint8_t>(spread * 0x55));
  } else {
    vpermilps(to, from, static_cast<uint8_t>(spread == 0 ? 0xA0 : 0xF5));
  }
}

// A task is a block of tiles of one vector of channels: transformed, multiplied and transformed back in one
// thread's part of the scratch.
class GroupedWinogradKernel : public ConvKernel {
 public:
  GroupedWinogradKernel(Schedule schedule, const Target& cpu, const ConvWeights& weights)
      : g_(std::move(schedule)), channels_(g_.workload.ic / g_.workload.g), transforms_(g_, cpu, weights) {
    ProductShape shape;
    shape.channels = channels_;
    shape.sums = g_.grouped.sums;
    shape.products = static_cast<int64_t>(g_.merged.output.window) * g_.merged.output.window;
    shape.merged = shape.products < g_.elements();
    shape.element_bytes = g_.in_element * kFloatBytes;
    shape.width = g_.grouped.width_tile;
    const int64_t rest = g_.tiles % g_.block_tiles;
    code_ = NextCode(weights.parts, [&](std::vector<size_t>& starts) {
      constexpr int64_t kFixedBytes = 4096;  // constants
      auto code = std::make_unique<ProductGenerator>(
          shape, cpu, 2 * ProductGenerator::KernelBytes(g_.block_tiles, shape) + kFixedBytes);
      starts.push_back(code->Emit(g_.block_tiles));
      starts.push_back(rest > 0 ? code->Emit(rest) : 0);
      code->Finish();
      return code;
    });
    whole_ = code_.Get<ProductKernel>(0);
    rest_ = code_.Get<ProductKernel>(1);
    weights_ = DataPart(weights.parts, PackedBytes(), [&] {
      AlignedBuffer packed = PackWeights(cpu, weights.weights);
      SortWeights(g_.grouped.sums, packed);
      return packed;
    });
    CountTerms();
  }

  int64_t Tasks(int) const override { return Grid(0).tasks(); }
  TaskGrid Grid(int) const override { return GridOf(g_); }
  bool ShiftsBlocks() const override { return true; }

  void Run(const KernelArgs& args, int, TaskRange range) const override {
    float* scratch = args.scratch_at<float>(range.thread * g_.scratch_bytes);
    for (int64_t task = range.begin; task < range.end; ++task)
      RunBlock(args, task / blocks(), task % blocks(), scratch);
  }

  int64_t ScratchBytes(int threads) const override { return threads * g_.scratch_bytes; }

  std::vector<CodeBlob> Code() const override {
    return {{"grouped_winograd input transform", transforms_.input_code()},
            {"grouped_winograd products", code_.bytes()},
            {"grouped_winograd output transform", transforms_.output_code()}};
  }
  std::span<const std::byte> PackedWeights() const override { return weights_.bytes(); }

 private:
  int64_t blocks() const { return (g_.tiles + g_.block_tiles - 1) / g_.block_tiles; }
  int64_t weights_per_vector() const { return g_.elements() * channels_ * g_.vector_floats; }

  size_t PackedBytes() const {
    return static_cast<size_t>(g_.out_vectors * weights_per_vector()) * sizeof(float);
  }

  // U: for vector of channels, xi, channel of the group: one vector.
  AlignedBuffer PackWeights(const Target& cpu, const float* weights) const {
    const ConvWorkload& w = g_.workload;
    AlignedBuffer packed(PackedBytes(), NewMemory::kAnything);
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
  GeneratedCode code_;
  ProductKernel whole_ = nullptr, rest_ = nullptr;  // products of a block, and of a smaller last one
  SharedBuffer weights_;
  std::vector<int64_t> terms_;  // of each sum of products
};

}  // namespace

std::unique_ptr<ConvKernel> BuildKernel(Schedule schedule, const Target& cpu, const ConvWeights& weights) {
  return std::make_unique<GroupedWinogradKernel>(std::move(schedule), cpu, weights);
}

}  // namespace tilesmith::grouped_winograd
