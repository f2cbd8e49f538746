#include <algorithm>
#include <numeric>
#include <optional>

#include "layouts/base/check.h"
#include "ops/conv/window_strips.h"
#include "ops/conv/window_weights.h"
#include "ops/kernels/tile_products.h"
#include "templates/amx_bf16/copied_input.h"
#include "templates/amx_bf16/schedule.h"
#include "templates/amx_bf16/x86/sum_store.h"
#include "templates/base/image_strides.h"

namespace tilesmith::amx_bf16 {
namespace {

class AmxKernel : public ConvKernel {
 public:
  AmxKernel(Schedule schedule, const Target& cpu, const ConvWeights& weights)
      : schedule_(std::move(schedule)),
        in_(schedule_.in, plan().conv.ic, plan().conv.ih, plan().conv.iw),
        out_(schedule_.out, plan().conv.oc, plan().conv.oh, plan().conv.ow),
        store_(schedule_, cpu) {
    if (!schedule_.as_it_is()) copied_.emplace(schedule_, cpu, weights);
    sums_at_ = copied_ ? copied_->ThreadBytes() : 0;
    FindWindows();
    Pack(weights);
  }

  TaskGrid Grid(int) const override { return plan().Grid(); }
  int64_t Tasks(int stage) const override { return Grid(stage).tasks(); }
  int64_t ScratchBytes(int threads) const override { return threads * ThreadBytes(); }
  std::vector<CodeBlob> Code() const override {
    return {{"amx_bf16 " + WorkloadToString(schedule_.workload), store_.Code()}};
  }
  std::span<const std::byte> PackedWeights() const override { return BytesOf(weights_); }

  void Run(const KernelArgs& args, int, TaskRange range) const override {
    auto* const scratch = args.scratch_at<std::byte>(range.thread * ThreadBytes());
    PixelTile held{.image = -1};  // what is in the scratch
    TileUnit unit;
    for (int64_t task = range.begin; task < range.end; ++task) {
      const WindowPlan::Place place = plan().PlaceOf(task);
      const PixelTile tile = TileOf(place);
      const auto* windows = args.inputs[0].image<std::byte>(tile.image);
      if (copied_) {
        if (tile != held) copied_->Copy(windows, tile, scratch);
        windows = scratch;
      } else {
        windows += tile.x * in_.pixel_bytes;
      }
      held = tile;
      Multiply(args, windows, tile, place.block, {unit, reinterpret_cast<float*>(scratch + sums_at_)});
    }
  }

 private:
  struct TileMemory {
    TileUnit& unit;
    float* sums;  // of a strip
  };

  const WindowPlan& plan() const { return schedule_.plan; }
  int64_t ThreadBytes() const { return sums_at_ + kStripPositions * plan().lanes * kFloatBytes; }

  PixelTile TileOf(const WindowPlan::Place& place) const {
    PixelTile tile{.image = place.image,
                   .group = place.group,
                   .y = place.tile / plan().column_tiles * plan().tile_rows,
                   .x = place.tile % plan().column_tiles * plan().tile_columns};
    tile.rows = std::min(plan().tile_rows, plan().conv.oh - tile.y);
    tile.columns = std::min(plan().tile_columns, plan().conv.ow - tile.x);
    return tile;
  }

  void Multiply(const KernelArgs& args, const std::byte* windows, const PixelTile& tile, int64_t block,
                const TileMemory& memory) const {
    const int64_t index = tile.group * plan().blocks + block, lane = index * plan().lanes;
    const int64_t channel = tile.group * plan().group_out + block * plan().lanes;
    const int64_t channels = std::min(plan().lanes, plan().group_out - block * plan().lanes);
    const int64_t first_channel = out_.ChannelOffset(channel);
    const StoreSums store_sums = store_.Find(channels);
    TileProducts products = products_;
    products.weights = BytesOf(weights_).data() + index * BlockWeightNumbers(plan()) * plan().number_bytes;
    products.bias = bias_.floats() + lane;
    products.used_lanes = RoundUp(channels, kTileRows);
    products.sums = reinterpret_cast<std::byte*>(memory.sums);
    const auto compute = [&](const WindowStrip& strip) {
      products.input = windows + strip.offset;
      products.positions = strip.positions;
      memory.unit.Multiply(TileNumbers::kBf16, products);
    };
    const auto store = [&](const WindowSegment& segment) {
      const int64_t pixel = (tile.y + segment.row) * plan().conv.ow + tile.x + segment.column;
      const int64_t at = first_channel + pixel * out_.pixel_bytes;
      StoreArgs stored{.sums = memory.sums + segment.position * plan().lanes,
                       .output = args.output.image<std::byte>(tile.image) + at,
                       .pixels = segment.count};
      if (schedule_.workload.post.sum)
        stored.residual = args.inputs[1].image<std::byte>(tile.image) + at;
      store_sums(&stored);
    };
    ForEachStrip(plan(), tile.rows, tile.columns, compute, store);
  }

  // Where the windows' runs are: in the copy, or in the blocks of the input.
  void FindWindows() {
    runs_ = plan().runs;
    products_.position_bytes = plan().position_bytes();
    products_.step_words = plan().step_words;
    products_.steps = plan().run_length / plan().word / plan().step_words;
    products_.lanes = plan().lanes;
    if (!copied_ && !schedule_.in.is_nhwc()) {
      runs_.resize(products_.steps);
      for (int64_t block = 0; block < products_.steps; ++block)
        runs_[block] = static_cast<int32_t>(block * in_.block_bytes);
      products_.steps = 1;
      products_.position_bytes = in_.pixel_bytes;
    }
    products_.runs = runs_.data();
    products_.run_count = std::ssize(runs_);
  }

  void Pack(const ConvWeights& weights) {
    const int64_t numbers = BlockWeightNumbers(plan()), blocks = plan().groups * plan().blocks;
    weights_ = AlignedBuffer(blocks * numbers * plan().number_bytes);
    bias_ = AlignedBuffer(blocks * plan().lanes * kFloatBytes);
    const int64_t terms = plan().group_in * plan().conv.kh * plan().conv.kw;
    for (int64_t o = 0; o < plan().conv.oc; ++o) {
      const int64_t in_group = o % plan().group_out, lane = in_group % plan().lanes;
      const int64_t block = o / plan().group_out * plan().blocks + in_group / plan().lanes;
      auto* const packed = static_cast<uint16_t*>(weights_.data()) + block * numbers;
      PackWindowWeights(plan(), weights.weights + o * terms, packed + lane * plan().word, Bf16Bits);
      if (weights.bias != nullptr) bias_.floats()[block * plan().lanes + lane] = weights.bias[o];
    }
  }

  const Schedule schedule_;
  const ImageStrides in_, out_;
  const SumStore store_;
  std::optional<CopiedInput> copied_;
  int64_t sums_at_ = 0;  // of a thread's scratch: where a strip's sums lie
  std::vector<int32_t> runs_;
  TileProducts products_;  // what all have in common
  AlignedBuffer weights_, bias_;
};

}  // namespace

std::unique_ptr<ConvKernel> BuildKernel(Schedule schedule, const Target& cpu, const ConvWeights& weights) {
  return std::make_unique<AmxKernel>(std::move(schedule), cpu, weights);
}

}  // namespace tilesmith::amx_bf16
