// The kernel of the direct_int8 template, for all but depthwise convolutions by VNNI.

#include <algorithm>
#include <cstring>

#include "templates/base/packed_parameters.h"
#include "templates/direct_int8/config.h"
#include "templates/direct_int8/depthwise_kernel.h"
#include "templates/direct_int8/sections.h"
#include "templates/int8/byte_conv.h"
#include "templates/int8/store.h"

namespace tilesmith::direct_int8 {
namespace {

constexpr int64_t kGroupedWordBytes = 64;  // a word of weights in 16 lanes

template <typename Number>
struct AsIs {
  Number operator()(int16_t weight) const { return static_cast<Number>(weight); }
};

class DirectKernel : public ConvKernel {
 public:
  DirectKernel(const QuantizedConvOp& op, const Schedule& schedule, const Target& cpu, KernelParts* parts)
      : cpu_(CpuFor(cpu, op.workload())),
        plan_(schedule.plan),
        in_(op.workload().input_shape(), schedule.in),
        rows_(plan_.conv, in_, op.params().input, plan_.number_bytes == 1,
              TILESMITH_DISPATCH_VNNI(cpu_, WidenRow)),
        sections_(plan_, !(plan_.dots || plan_.depthwise || plan_.group_words > 0)),
        as_it_is_(ReadsAsItIs()),
        pixel_offsets_(as_it_is_ ? OffsetsInPlace() : plan_.PixelOffsets()),
        thread_bytes_(as_it_is_ ? 0 : plan_.ThreadBytes()),
        gather_words_(TILESMITH_DISPATCH_VNNI(cpu_, GatherWords)),
        convolve_(ConvolutionOf(plan_, cpu_)),
        store_(op, schedule.out, cpu_),
        pixels_(store_.common()) {
    const int64_t blocks = plan_.groups * plan_.blocks,
                  words = blocks * plan_.lanes * int64_t{sizeof(int32_t)};
    const PackedParameters::Sizes sizes{blocks * block_weights(), std::ssize(sections_.all()) * words, words};
    parameters_ =
        PackedParameters(parts, sizes, [&](const PackedParameters::Memory& to) { PackParameters(op, to); });
    pixels_.tile_pixels = plan_.pixels;
    pixels_.runs = plan_.runs.data();
    pixels_.run_count = std::ssize(plan_.runs);
    pixels_.words = plan_.run_length / plan_.word;
    pixels_.group_words = plan_.group_words;
  }

  TaskGrid Grid(int) const override { return plan_.Grid(); }
  int64_t Tasks(int stage) const override { return Grid(stage).tasks(); }
  bool ShiftsBlocks() const override { return true; }
  int64_t ScratchBytes(int threads) const override { return threads * thread_bytes_; }
  std::span<const std::byte> PackedWeights() const override { return parameters_.weights(); }

  void Run(const KernelArgs& args, int, TaskRange range) const override {
    std::byte* const scratch = args.scratch_at<std::byte>(range.thread * thread_bytes_);
    const std::byte* widened = scratch;
    WindowTile held{.image = -1};  // what is in the scratch
    for (int64_t task = range.begin; task < range.end; ++task) {
      const WindowPlan::Place place = plan_.PlaceOf(task);
      const WindowTile tile = plan_.TileOf(place);
      const InputView& view = args.inputs[0];
      if (as_it_is_) {
        widened = view.image<std::byte>(tile.image) +
                  in_.Shifted(view.block_shift).Offset(tile.group * plan_.group_in, tile.x);
      } else if (tile != held) {
        Widen(view, tile, scratch);
      }
      held = tile;
      Convolve(args, widened, tile, BlockOf(tile, place.block));
    }
  }

 private:
  static Target CpuFor(Target cpu, const ConvWorkload& workload) {
    cpu.vnni = MultipliesBytes(workload, cpu);
    return cpu;
  }

  static void (*ConvolutionOf(const WindowPlan& plan, const Target& cpu))(const QuantizedPixels&) {
#ifdef TILESMITH_X86
    if (plan.dots) return &avx512_vnni::ConvolveDots;
    if (plan.group_words > 0) return &avx512_vnni::ConvolveGroups;
#endif
    return plan.depthwise ? TILESMITH_DISPATCH_VNNI(cpu, ConvolveDepthwise)
                          : TILESMITH_DISPATCH_VNNI(cpu, ConvolveDense);
  }

  // Whether windows are pixels whose channels lie side by side in the input, in whole words.
  bool ReadsAsItIs() const {
    if (!plan_.single_grouped_pixels() || plan_.number_bytes != 1 || rows_.flip() != 0 || in_.plain)
      return false;
    if (plan_.run_length != plan_.group_in || plan_.tile_columns > INT32_MAX / in_.dims.lanes) return false;
    return in_.dims.lanes % plan_.group_in == 0;
  }
  std::vector<int32_t> OffsetsInPlace() const {
    std::vector<int32_t> offsets;
    offsets.reserve(static_cast<size_t>(plan_.tile_columns));
    for (int64_t x = 0; x < plan_.tile_columns; ++x)
      offsets.push_back(static_cast<int32_t>(x * in_.dims.lanes));
    return offsets;
  }

  void Widen(const InputView& view, const WindowTile& tile, std::byte* widened) const {
    std::byte* const row_to_gather = widened + plan_.TileBytes();
    const int64_t row_numbers = plan_.depthwise ? plan_.group_in : plan_.pixel_numbers;
    ElementRange channels{tile.group * plan_.group_in, 0};
    channels.count = std::min(plan_.group_in, plan_.conv.ic - channels.first);
    const auto widen = [&](const WindowPlan::WidenedPart& part) {
      std::byte* const to = widened + part.offset;
      rows_.Widen(view, tile.image, channels, part.y, part.left, plan_.column_step, part.columns, row_numbers,
                  plan_.depthwise ? row_to_gather : to);
      if (plan_.depthwise)
        gather_words_(row_to_gather, plan_.word_distance(), part.columns * plan_.lanes, to);
    };
    plan_.ForEachWidenedPart(tile, widen);
  }

  // Output channels that are computed together, with their weights.
  struct Block {
    ElementRange channels;
    int64_t index = 0;  // of all groups'
    QuantizedPixels pixels;
  };

  const int32_t* BiasOf(size_t section, int64_t block) const {
    const int64_t at = static_cast<int64_t>(section) * plan_.groups * plan_.blocks + block;
    return parameters_.bias_ints() + at * plan_.lanes;
  }

  Block BlockOf(const WindowTile& tile, int64_t block) const {
    const int64_t index = tile.group * plan_.blocks + block, channel = block * plan_.lanes;
    Block found{{tile.group * plan_.group_out + channel, 0}, index, pixels_};
    found.channels.count =
        std::min({plan_.lanes, plan_.group_out - channel, plan_.conv.oc - found.channels.first});
    found.pixels.weights = parameters_.weights().data() + index * block_weights();
    FetchAhead(tile, index, found.pixels);
    found.pixels.bias = BiasOf(0, index);
    found.pixels.multipliers = parameters_.multipliers() + index * plan_.lanes;
    return found;
  }

  // Has the tiles of a task fetch the weights of the next one. Where there are many tiles, what is read once
  // hardly counts; a single one has no time for it.
  void FetchAhead(const WindowTile& tile, int64_t index, QuantizedPixels& pixels) const {
    constexpr int64_t kMostTiles = 32;
    const int64_t tiles = CeilDiv(tile.rows * tile.columns, pixels.tile_pixels);
    if (index + 1 == plan_.groups * plan_.blocks || tiles == 1 || tiles > kMostTiles) return;
    const int64_t parts = pixels.run_count * CeilDiv(pixels.words, kDensePartWords);
    pixels.next_lines = CeilDiv(CeilDiv(block_weights(), kLineBytes), parts * tiles);
    pixels.next_step = parts * pixels.next_lines * kLineBytes;
    pixels.next_weights = parameters_.weights().data() + (index + 1) * block_weights();
  }

  void Convolve(const KernelArgs& args, const std::byte* widened, const WindowTile& tile,
                const Block& block) const {
    QuantizedPixels pixels = block.pixels;
    pixels.input = widened;
    sections_.ForEachPart(tile, [&](size_t index, const WindowTile& part) {
      const WindowSections::Section& section = sections_.all()[index];
      pixels.bias = BiasOf(index, block.index);
      pixels.runs = section.runs.data();
      pixels.run_weights = section.run_weights.data();
      pixels.run_count = std::ssize(section.runs);
      // Pixels that are adjacent in the output, too.
      const bool whole_rows = part.columns == plan_.conv.ow;
      const int64_t count = whole_rows ? part.rows * part.columns : part.columns;
      for (int64_t row = 0; row < (whole_rows ? 1 : part.rows); ++row) {
        const ElementRange places{(part.y + row) * plan_.conv.ow + part.x, count};
        const int64_t begin = (part.y - tile.y + row) * plan_.tile_columns + part.x - tile.x;
        store_.Store(pixels, block.channels, places, args, tile.image,
                     [&](QuantizedPixels& piece, int64_t first) {
                       piece.offsets = pixel_offsets_.data() + begin + first;
                       piece.next_weights += (begin + first) / piece.tile_pixels * piece.next_step;
                       convolve_(piece);
                     });
      }
    });
  }

  int64_t block_weights() const {  // bytes
    if (plan_.dots)
      return std::ssize(plan_.runs) * plan_.group_out * DotRunBytes(plan_.run_length / plan_.word);
    if (plan_.group_words > 0)
      return std::ssize(plan_.runs) * plan_.run_length / kGroupedPixelBytes * plan_.group_words *
             kGroupedWordBytes;
    return BlockWeightNumbers(plan_) * plan_.number_bytes;
  }

  // All runs of one channel's weights; `alone` is the plan of a single lane.
  static std::vector<int8_t> RunsOf(const WindowPlan& alone, const int16_t* channel) {
    std::vector<int8_t> runs(static_cast<size_t>(BlockWeightNumbers(alone)));
    PackWindowWeights(alone, channel, runs.data(), AsIs<int8_t>());
    return runs;
  }

  // Packs channel number `o` of the block that begins at `packed`, as ConvolveDots reads it.
  void PackDots(const std::vector<int8_t>& runs, int64_t o, std::byte* packed) const {
    const int64_t stored = DotRunBytes(plan_.run_length / plan_.word);
    for (int64_t run = 0; run < std::ssize(plan_.runs); ++run) {
      std::memcpy(packed + (run * plan_.group_out + o) * stored, runs.data() + run * plan_.run_length,
                  static_cast<size_t>(plan_.run_length));
    }
  }

  // Packs it as ConvolveGroups reads it.
  void PackGroups(const std::vector<int8_t>& runs, int64_t o, std::byte* packed) const {
    const int64_t words = plan_.group_words, lane = GroupedLane(words, o);
    const int64_t group = o / (words * plan_.word) * words * plan_.word;  // its first channel
    for (int64_t pixel = 0; pixel < std::ssize(runs); pixel += kGroupedPixelBytes) {
      for (int64_t t = 0; t < words; ++t, packed += kGroupedWordBytes) {
        const int8_t* const word = runs.data() + pixel + group + (lane ^ t) % words * plan_.word;
        std::memcpy(packed + (lane ^ t) * plan_.word, word, static_cast<size_t>(plan_.word));
      }
    }
  }

  void PackParameters(const QuantizedConvOp& op, const PackedParameters::Memory& to) const {
    const std::vector<int16_t> weights = op.CenteredWeights();
    const int64_t blocks = plan_.groups * plan_.blocks, lanes = plan_.lanes;
    const int64_t terms = std::ssize(weights) / plan_.conv.oc, merged = op.workload().g / plan_.conv.g;
    std::vector<int16_t> channel(static_cast<size_t>(merged * terms));
    WindowPlan alone = plan_;
    alone.lanes = 1;
    for (int64_t o = 0; o < plan_.conv.oc; ++o) {
      const auto [block, lane] = BlockLaneOf(plan_, o);
      const int64_t group = o / (plan_.conv.oc / op.workload().g) % merged;
      std::ranges::fill(channel, int16_t{0});
      std::ranges::copy(std::span(weights).subspan(o * terms, terms), channel.begin() + group * terms);
      const int32_t bias = op.params().bias ? op.params().bias->data<int32_t>()[o] : 0;
      const auto bias_of = [&](const WindowSections::Section& section) {
        if (plan_.number_bytes != 1) return bias;
        return BiasWithoutZero(bias, sections_.SumReadBy(section, channel), rows_.zero());
      };
      for (size_t section = 0; section < sections_.all().size(); ++section)
        to.bias_ints()[(section * blocks + block) * lanes + lane] = bias_of(sections_.all()[section]);
      to.multipliers[block * lanes + lane] = op.multipliers()[o];
      std::byte* const begin = to.weights + block * block_weights();
      std::byte* const packed = begin + 4 * lane;
      if (plan_.dots) {
        PackDots(RunsOf(alone, channel.data()), lane, begin);
      } else if (plan_.group_words > 0) {
        PackGroups(RunsOf(alone, channel.data()), lane, begin);
      } else if (plan_.number_bytes == 1) {
        PackWindowWeights(plan_, channel.data(), reinterpret_cast<int8_t*>(packed), AsIs<int8_t>());
      } else {
        PackWindowWeights(plan_, channel.data(), reinterpret_cast<int16_t*>(packed), AsIs<int16_t>());
      }
    }
  }

  const Target cpu_;
  const WindowPlan plan_;
  const ByteImage in_;
  const RowWidener rows_;
  const WindowSections sections_;
  const bool as_it_is_;  // the input needs no copy in the scratch
  const std::vector<int32_t> pixel_offsets_;
  const int64_t thread_bytes_;  // of a thread's scratch
  void (*const gather_words_)(const void*, int64_t, int64_t, void*);
  void (*const convolve_)(const QuantizedPixels&);
  const QuantizedStore store_;
  QuantizedPixels pixels_;  // what all have in common
  PackedParameters parameters_;
};

}  // namespace

std::unique_ptr<ConvKernel> BuildKernel(const Schedule& schedule, const Target& cpu,
                                        const ConvWeights& weights) {
  if (schedule.depthwise_by_vnni) return BuildDepthwiseKernel(schedule, weights);
  return std::make_unique<DirectKernel>(ByteConvOf(schedule.workload, weights), schedule, cpu, weights.parts);
}

}  // namespace tilesmith::direct_int8
