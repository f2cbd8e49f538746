// The kernel of the winograd_int8 template.
#include <algorithm>
#include <array>

#include "layouts/base/sizes.h"
#include "templates/base/packed_parameters.h"
#include "templates/int8/byte_conv.h"
#include "templates/int8/store.h"
#include "templates/winograd_int8/config.h"
#include "templates/winograd_int8/loops.h"

namespace tilesmith::winograd_int8 {
namespace {

class WinogradKernel : public ConvKernel {
 public:
  WinogradKernel(const QuantizedConvOp& op, const Schedule& schedule, const Target& cpu, KernelParts* parts)
      : plan_(schedule.plan),
        in_(op.workload().input_shape(), schedule.in),
        rows_(plan_.conv, in_, op.params().input, false, TILESMITH_DISPATCH(cpu.isa, WidenRow)),
        transform_windows_(TILESMITH_DISPATCH(cpu.isa, TransformWindows)),
        multiply_(TILESMITH_DISPATCH(cpu.isa, ConvolveDense)),
        sum_products_(TILESMITH_DISPATCH(cpu.isa, SumProducts)),
        store_sums_(TILESMITH_DISPATCH(cpu.isa, StoreSums)),
        store_(op, schedule.out, cpu) {
    for (int64_t tile = 0; tile < plan_.part_tiles(); ++tile)
      offsets_.push_back(static_cast<int32_t>(tile * plan_.channels * kNumberBytes));
    const int64_t words = plan_.blocks * plan_.lanes * int64_t{sizeof(int32_t)};
    const int64_t weights = plan_.blocks * kWinogradElements * element_weights() * kNumberBytes;
    parameters_ = PackedParameters(parts, {weights, words, words},
                                   [&](const PackedParameters::Memory& to) { PackParameters(op, to); });
  }

  TaskGrid Grid(int) const override { return plan_.Grid(); }
  int64_t Tasks(int stage) const override { return Grid(stage).tasks(); }
  bool ShiftsBlocks() const override { return true; }
  int64_t ScratchBytes(int threads) const override { return threads * plan_.ThreadBytes(); }
  std::span<const std::byte> PackedWeights() const override { return parameters_.weights(); }

  void Run(const KernelArgs& args, int, TaskRange range) const override {
    std::byte* const at = args.scratch_at<std::byte>(range.thread * plan_.ThreadBytes());
    const Scratch scratch = {reinterpret_cast<int16_t*>(at),
                             reinterpret_cast<int16_t*>(at + plan_.InputBytes()),
                             reinterpret_cast<int32_t*>(at + plan_.InputBytes() + plan_.WindowBytes())};
    if (plan_.channels > plan_.conv.ic) std::fill_n(at, plan_.InputBytes(), std::byte{0});
    Part held{.image = -1};  // what is in the scratch
    for (int64_t task = range.begin; task < range.end; ++task) {
      const int64_t block = task % plan_.blocks;
      const Part part = PartOf(task / plan_.blocks);
      if (part != held) Transform(args.inputs[0], part, scratch);
      held = part;
      Multiply(part, block, scratch);
      StoreOutputs(args, part, block, scratch);
    }
  }

 private:
  struct Scratch {
    int16_t* input;     // [row][column][channel]
    int16_t* windows;   // [element][tile][channel]
    int32_t* products;  // [element][tile][lane], and behind them two rows of sums
  };
  struct Part {
    int64_t image = 0;
    int64_t y = 0, x = 0, rows = 0, columns = 0;  // tiles
    int64_t tiles() const { return rows * columns; }
    bool operator==(const Part&) const = default;
  };

  Part PartOf(int64_t number) const {
    const int64_t parts = plan_.row_parts * plan_.column_parts, in_image = number % parts;
    Part part{.image = number / parts,
              .y = in_image / plan_.column_parts * plan_.tile_rows,
              .x = in_image % plan_.column_parts * plan_.tile_columns};
    part.rows = std::min(plan_.tile_rows, plan_.all_rows - part.y);
    part.columns = std::min(plan_.tile_columns, plan_.all_columns - part.x);
    return part;
  }

  void Transform(const InputView& view, const Part& part, const Scratch& scratch) const {
    const int64_t columns = 2 * part.columns + 2, row_step = columns * plan_.channels;
    for (int64_t row = 0; row < 2 * part.rows + 2; ++row) {
      rows_.Widen(view, part.image, {0, plan_.conv.ic}, 2 * part.y - plan_.conv.ph + row,
                  2 * part.x - plan_.conv.pw, 1, columns, plan_.channels,
                  reinterpret_cast<std::byte*>(scratch.input + row * row_step));
    }
    for (int64_t row = 0; row < part.rows; ++row) {
      transform_windows_({.in = scratch.input + 2 * row * row_step,
                          .row_step = row_step,
                          .tiles = part.columns,
                          .channels = plan_.channels,
                          .out = scratch.windows + row * part.columns * plan_.channels,
                          .element_step = part.tiles() * plan_.channels});
    }
  }

  void Multiply(const Part& part, int64_t block, const Scratch& scratch) const {
    static constexpr int32_t kBegin = 0;
    const std::array<int32_t, QuantizedConvLanes(Isa::kAvx512)> no_bias = {};
    QuantizedPixels pixels{.offsets = offsets_.data(),
                           .count = part.tiles(),
                           .tile_pixels = plan_.pixels,
                           .runs = &kBegin,
                           .run_weights = &kBegin,
                           .run_count = 1,
                           .words = plan_.words(),
                           .bias = no_bias.data(),
                           .channels = plan_.lanes};
    for (int64_t element = 0; element < kWinogradElements; ++element) {
      pixels.input =
          reinterpret_cast<const std::byte*>(scratch.windows + element * part.tiles() * plan_.channels);
      pixels.weights = parameters_.weights().data() +
                       (block * kWinogradElements + element) * element_weights() * kNumberBytes;
      pixels.sums = scratch.products + element * part.tiles() * plan_.lanes;
      multiply_(pixels);
    }
  }

  void StoreOutputs(const KernelArgs& args, const Part& part, int64_t block, const Scratch& scratch) const {
    const ConvWorkload& conv = plan_.conv;
    const int64_t lanes = plan_.lanes;
    const ElementRange channels{block * lanes, std::min(lanes, conv.oc - block * lanes)};
    int32_t* const sums = scratch.products + kWinogradElements * plan_.part_tiles() * lanes;
    QuantizedPixels pixels = store_.common();
    pixels.multipliers = parameters_.multipliers() + block * lanes;
    const int64_t x = 2 * part.x, columns = std::min(2 * part.columns, conv.ow - x);
    for (int64_t row = 0; row < part.rows; ++row) {
      sum_products_({.in = scratch.products + row * part.columns * lanes,
                     .element_step = part.tiles() * lanes,
                     .tiles = part.columns,
                     .bias = parameters_.bias_ints() + block * lanes,
                     .out = sums});
      for (int64_t y = 2 * (part.y + row), i = 0; i < 2 && y + i < conv.oh; ++i) {
        const int32_t* const row_sums = sums + i * 2 * part.columns * lanes;
        store_.Store(pixels, channels, {(y + i) * conv.ow + x, columns}, args, part.image,
                     [&](const QuantizedPixels& piece, int64_t first) {
                       store_sums_(piece, row_sums + first * lanes);
                     });
      }
    }
  }

  // Numbers.
  int64_t element_weights() const { return 2 * plan_.words() * plan_.lanes; }

  void PackParameters(const QuantizedConvOp& op, const PackedParameters::Memory& memory) const {
    const std::vector<int16_t> weights = op.CenteredWeights();
    const ConvWorkload& conv = plan_.conv;
    const int64_t lanes = plan_.lanes;
    auto* const numbers = reinterpret_cast<int16_t*>(memory.weights);
    for (int64_t o = 0; o < conv.oc; ++o) {
      if (op.params().bias) memory.bias_ints()[o] = op.params().bias->data<int32_t>()[o];
      memory.multipliers[o] = op.multipliers()[o];
      for (int64_t c = 0; c < conv.ic; ++c) {
        const auto transformed = Transformed(std::span(weights).subspan((o * conv.ic + c) * 9).first<9>());
        int16_t* to = numbers + o / lanes * kWinogradElements * element_weights() + c / 2 * 2 * lanes +
                      2 * (o % lanes) + c % 2;
        for (const int16_t element : transformed) {
          *to = element;
          to += element_weights();
        }
      }
    }
  }

  // 2G g (2G)'
  static std::array<int16_t, kWinogradElements> Transformed(std::span<const int16_t, 9> g) {
    static constexpr int kTwice[4][3] = {{2, 0, 0}, {1, 1, 1}, {1, -1, 1}, {0, 0, 2}};
    std::array<int16_t, kWinogradElements> out;
    for (int i = 0; i < 4; ++i) {
      for (int j = 0; j < 4; ++j) {
        int sum = 0;
        for (int k = 0; k < 9; ++k) sum += kTwice[i][k / 3] * g[k] * kTwice[j][k % 3];
        out[4 * i + j] = static_cast<int16_t>(sum);
      }
    }
    return out;
  }

  static constexpr int64_t kNumberBytes = sizeof(int16_t);

  const WinogradPlan plan_;
  const ByteImage in_;
  const RowWidener rows_;
  void (*const transform_windows_)(const WinogradWindows&);
  void (*const multiply_)(const QuantizedPixels&);
  void (*const sum_products_)(const WinogradProducts&);
  void (*const store_sums_)(const QuantizedPixels&, const int32_t*);
  const QuantizedStore store_;
  std::vector<int32_t> offsets_;  // of tiles among the windows of an element, bytes
  // Weights: numbers of 16 bits, [block][element][word][lane][2]; the others: [block][lane].
  PackedParameters parameters_;
};

}  // namespace

std::unique_ptr<ConvKernel> BuildKernel(const Schedule& schedule, const Target& cpu,
                                        const ConvWeights& weights) {
  return std::make_unique<WinogradKernel>(ByteConvOf(schedule.workload, weights), schedule, cpu,
                                          weights.parts);
}

}  // namespace tilesmith::winograd_int8
