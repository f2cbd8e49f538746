#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "layouts/base/check.h"
#include "templates/base/image_strides.h"
#include "templates/code/generated_code.h"
#include "templates/code/vector_code.h"
#include "templates/direct/code/row_kernels.h"
#include "templates/direct/packing.h"
#include "templates/strassen/config.h"

namespace tilesmith::strassen {
namespace {

// Code for the additions in front of the products and behind them, of one vector of either half of the
// channels, for pairs of pixels side by side.
//
// first, second: A11 and A21 of the first pair. operands: V[0] of that pair.
using SumKernel = void (*)(const float* first, const float* second, float* operands, int64_t pairs);

// Where the first pair is, and one vector of the chunk's first half.
struct CombineArgs {
  const float* products = nullptr;  // M[0]
  float* first = nullptr;           // C11; the output may be the residual
  float* second = nullptr;          // C21
  const float* residual = nullptr;  // of C11
  const float* bias = nullptr;
  int64_t half = 0;       // bytes to the vector of the second half: from C11 to C12, C21 to C22
  int64_t bias_half = 0;  // likewise
  int64_t pairs = 0;
};
using CombineKernel = void (*)(const CombineArgs*);

class HalvesGenerator : public VectorCode {
 public:
  HalvesGenerator(const Schedule& schedule, const Target& cpu);

  // A SumKernel; a CombineKernel, post-ops included; and one that leaves the second pixels alone.
  const std::vector<size_t>& starts() const { return starts_; }

 private:
  size_t EmitSum();
  size_t EmitCombine(bool both);
  // output = act(value + bias + residual)
  void EmitOutput(int value, int bias, const code::Address& residual, const code::Address& output);

  const Schedule& schedule_;
  std::vector<size_t> starts_;
};

using code::General;
using code::Label;
using code::Reg;
using code::Vec;

constexpr size_t kCodeBytes = 8192;

// Registers of EmitCombine beside those of the sums.
enum : int { kFirstBias = 6, kSecondBias, kScratch, kConstants };

HalvesGenerator::HalvesGenerator(const Schedule& schedule, const Target& cpu)
    : VectorCode(cpu, kCodeBytes), schedule_(schedule) {
  starts_ = {EmitSum()};
  starts_.push_back(EmitCombine(true));
  starts_.push_back(EmitCombine(false));
  EmitConstants();
}

size_t HalvesGenerator::EmitSum() {
  const Reg first = General(0), second = General(1), operands = General(2), pairs = General(3);
  const int64_t half = schedule_.InVectorOffset(schedule_.in_vectors) * kFloatBytes;
  const auto a11 = Vector(0), a12 = Vector(1), a21 = Vector(2), a22 = Vector(3);
  const auto s1 = Vector(4), s2 = Vector(5), s3 = Vector(6), s4 = Vector(7);
  const auto store = [&](int operand, const Vec& value) {
    Store(At(operands, operand * schedule_.operand * kFloatBytes), value);
  };
  const size_t start = Begin();
  Label next;
  Align(32);
  Bind(next);
  Load(a11, At(first));
  Load(a12, At(first, half));
  Load(a21, At(second));
  Load(a22, At(second, half));
  Add(s1, a21, a22);
  Subtract(s2, s1, a11);
  Subtract(s3, a11, a21);
  Subtract(s4, a12, s2);
  store(0, s1);
  store(1, s2);
  store(2, s3);
  store(3, s4);
  if (!schedule_.in_place) {
    store(kOperandOf[0], a11);
    store(kOperandOf[1], a12);
    store(kOperandOf[3], a22);
  }
  const int64_t step = schedule_.workload.sw * schedule_.in_pixel() * kFloatBytes;
  Add(first, step);
  Add(second, step);
  Add(operands, vector_bytes());
  CountDown(pairs, next);
  End();
  return start;
}

size_t HalvesGenerator::EmitCombine(bool both) {
  const Reg args = General(0), products = General(6), first = General(1), second = General(2),
            residual = General(3), bias = General(4), pairs = General(5), half = General(7),
            second_residual = General(8);
  const PostOps& post = schedule_.workload.post;
  const auto product = [&](int number) {
    return At(products, (number - 1) * schedule_.product * kFloatBytes);
  };
  const size_t start = Begin();
  if (post.bias) {
    Load(bias, At(args, offsetof(CombineArgs, bias)));
    Load(Vector(kFirstBias), At(bias));
    Add(bias, At(args, offsetof(CombineArgs, bias_half)));
    Load(Vector(kSecondBias), At(bias));
  }
  HoldConstants(post.activation, kConstants, registers() - kConstants);
  Load(products, At(args, offsetof(CombineArgs, products)));
  Load(first, At(args, offsetof(CombineArgs, first)));
  Load(second, At(args, offsetof(CombineArgs, second)));
  Load(half, At(args, offsetof(CombineArgs, half)));
  Load(pairs, At(args, offsetof(CombineArgs, pairs)));
  if (post.sum) {
    Load(residual, At(args, offsetof(CombineArgs, residual)));
    Move(second_residual, second);
    Subtract(second_residual, first);
    Add(second_residual, residual);
  }
  Label next;
  Align(32);
  Bind(next);
  const auto p1 = Vector(0), p5 = Vector(1), p16 = Vector(2), p167 = Vector(3), sum = Vector(4);
  Load(p1, product(1));
  Load(p5, product(5));
  Add(p16, p1, product(6));
  Add(p1, p1, product(2));
  EmitOutput(0, kFirstBias, At(residual), At(first));
  Add(sum, p16, p5);
  Add(sum, sum, product(3));
  EmitOutput(4, kSecondBias, At(residual, half, 1), At(first, half, 1));
  if (both) {
    Add(p167, p16, product(7));
    Subtract(sum, p167, product(4));
    EmitOutput(4, kFirstBias, At(second_residual), At(second));
    Add(p167, p167, p5);
    EmitOutput(3, kSecondBias, At(second_residual, half, 1), At(second, half, 1));
  }
  const int64_t step = schedule_.out_pixel() * kFloatBytes;
  Add(products, vector_bytes());
  for (const Reg& pixel : {first, second}) Add(pixel, step);
  if (post.sum) {
    for (const Reg& pixel : {residual, second_residual}) Add(pixel, step);
  }
  CountDown(pairs, next);
  End();
  return start;
}

void HalvesGenerator::EmitOutput(int index, int bias, const code::Address& residual,
                                 const code::Address& output) {
  const PostOps& post = schedule_.workload.post;
  const auto value = Vector(index);
  if (post.bias) Add(value, value, Vector(bias));
  if (post.sum) Add(value, value, residual);
  Apply(post.activation, value, Vector(kScratch));
  Store(output, value);
}

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
        row_(ProductOf(g_.workload, g_.config.row), g_.config.product, g_.config.row, cpu, weights.parts),
        halves_(NextCode(weights.parts,
                         [&](std::vector<size_t>& starts) {
                           auto code = std::make_unique<HalvesGenerator>(g_, cpu);
                           starts = code->starts();
                           return code;
                         })),
        sum_(halves_.Get<SumKernel>(0)),
        combine_(halves_.Get<CombineKernel>(1)),
        combine_first_(halves_.Get<CombineKernel>(2)),
        grid_(GridOf(g_)) {
    const int64_t rest = g_.BlockAt(g_.image_blocks - 1).pairs % g_.config.row;
    if (rest > 0) {
      rest_ = std::make_unique<RowProduct>(ProductOf(g_.workload, rest), g_.config.product, g_.config.row,
                                           cpu, weights.parts);
    }
    const ConvWorkload& w = g_.workload;
    const auto bytes = static_cast<size_t>(kProducts * (w.ic / 2) * (w.oc / 2)) * sizeof(float);
    weights_ = DataPart(
        weights.parts, bytes, [&] { return PackWeights(cpu, weights.weights, bytes); },
        [&] { return direct::PackingKey(Packing()).Add(std::string("strassen")).Add(w.ic, w.oc); });
    bias_ = FloatsPart(weights.parts, weights.bias, w.oc, w.post.bias ? w.oc : 0);
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
    std::vector<CodeBlob> blobs = {{"strassen additions", halves_.bytes()},
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

  direct::Schedule Packing() const {
    return direct::MakeSchedule(ProductOf(g_.workload, row_.positions()), g_.config.product,
                                g_.vector_floats);
  }

  AlignedBuffer PackWeights(const Target& cpu, const float* weights, size_t bytes) const {
    const direct::Schedule packing = Packing();
    AlignedBuffer all(bytes);
    for (int product = 0; product < kProducts; ++product) {
      const std::vector<float> combined = ProductWeights(g_, row_.chunks(), weights, product);
      const direct::PackedWeights packed = direct::PackWeights(packing, cpu, {.weights = combined.data()});
      for (int64_t chunk = 0; chunk < chunks(); ++chunk) {
        std::copy_n(packed.weights.floats() + packed.offsets[chunk], WeightFloats(chunk),
                    all.floats() + WeightOffset(chunk) + product * WeightFloats(chunk));
      }
    }
    return all;
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
        sum_(a + g_.InPixelOffset(first), a + g_.InPixelOffset(second), operands + pair * g_.vector_floats,
             count);
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
      run(combine_first_, pairs.first, alone);
      run(combine_, pairs.first + alone, pairs.count - alone);
    }
  }

  Schedule g_;
  RowProduct row_;
  std::unique_ptr<RowProduct> rest_;  // for the last row of an image, where it is shorter
  const GeneratedCode halves_;
  const SumKernel sum_;
  const CombineKernel combine_, combine_first_;
  const TaskGrid grid_;
  SharedBuffer weights_, bias_;
};

}  // namespace

std::unique_ptr<ConvKernel> BuildKernel(Schedule schedule, const Target& cpu, const ConvWeights& weights) {
  return std::make_unique<StrassenKernel>(std::move(schedule), cpu, weights);
}

}  // namespace tilesmith::strassen
