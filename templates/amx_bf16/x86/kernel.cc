#include <algorithm>
#include <array>
#include <optional>

#include "layouts/base/check.h"
#include "ops/conv/window_strips.h"
#include "ops/conv/window_weights.h"
#include "ops/kernels/tile_products.h"
#include "templates/amx_bf16/copied_input.h"
#include "templates/amx_bf16/schedule.h"
#include "templates/amx_bf16/x86/strip_code.h"
#include "templates/base/image_strides.h"

namespace tilesmith::amx_bf16 {
namespace {

// The strips of a tile of some rows and columns of output pixels, and where its pixels go.
struct TileStrips {
  struct Strip {
    WindowStrip strip;
    int64_t first_place = 0, places = 0;
  };
  int64_t rows = 0, columns = 0;
  std::vector<Strip> strips;
  std::vector<PixelPlace> places;
};

TileStrips StripsOf(const WindowPlan& plan, int64_t rows, int64_t columns, int64_t pixel_bytes) {
  TileStrips tile{.rows = rows, .columns = columns, .strips = {}, .places = {}};
  ForEachStrip(
      plan, rows, columns,
      [&](const WindowStrip& strip) {
        tile.strips.push_back({strip, std::ssize(tile.places), 0});
      },
      [&](const WindowSegment& segment) {
        for (int64_t i = 0; i < segment.count; ++i) {
          const int64_t pixel = segment.row * plan.conv.ow + segment.column + i;
          tile.places.push_back({static_cast<int32_t>((segment.position + i) * plan.lanes * kFloatBytes),
                                 static_cast<int32_t>(pixel * pixel_bytes)});
        }
        tile.strips.back().places += segment.count;
      });
  return tile;
}

class AmxKernel : public ConvKernel {
 public:
  AmxKernel(Schedule schedule, const Target& cpu, const ConvWeights& weights)
      : schedule_(std::move(schedule)),
        in_(schedule_.in, plan().conv.ic, plan().conv.ih, plan().conv.iw),
        out_(schedule_.out, plan().conv.oc, plan().conv.oh, plan().conv.ow),
        steps_(StepsOf()),
        code_(schedule_, steps_, cpu) {
    if (!schedule_.as_it_is()) copied_.emplace(schedule_, cpu, weights);
    sums_at_ = copied_ ? copied_->ThreadBytes() : 0;
    const WindowPlan& p = plan();
    for (const int64_t rows : {p.tile_rows, p.conv.oh - (p.row_tiles - 1) * p.tile_rows})
      for (const int64_t columns : {p.tile_columns, p.conv.ow - (p.column_tiles - 1) * p.tile_columns})
        tiles_.push_back(
            StripsOf(p, std::min(rows, p.conv.oh), std::min(columns, p.conv.ow), out_.pixel_bytes));
    Pack(weights);
  }

  TaskGrid Grid(int) const override { return plan().Grid(); }
  int64_t Tasks(int stage) const override { return Grid(stage).tasks(); }
  int64_t ScratchBytes(int threads) const override { return threads * ThreadBytes(); }
  std::vector<CodeBlob> Code() const override {
    return {{"amx_bf16 " + WorkloadToString(schedule_.workload), code_.Code()}};
  }
  std::span<const std::byte> PackedWeights() const override { return BytesOf(weights_); }

  void Run(const KernelArgs& args, int, TaskRange range) const override {
    auto* const scratch = args.scratch_at<std::byte>(range.thread * ThreadBytes());
    PixelTile held{.image = -1};  // what is in the scratch
    Progress progress{.sums = reinterpret_cast<float*>(scratch + sums_at_)};
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
      Multiply(args, windows, tile, place.block, progress);
    }
    if (progress.args.pixels > 0) code_.Find(progress.channels, 0)(&progress.args);
  }

 private:
  // What a thread has under way: the sums of the last strip are not stored yet, where its arguments say.
  struct Progress {
    TileUnit unit = {};
    float* sums = nullptr;  // of two strips, by turns
    int64_t turn = 0;
    int64_t channels = 0;  // of the block that the last strip is of
    StripArgs args = {};
  };

  const WindowPlan& plan() const { return schedule_.plan; }
  int64_t StripFloats() const { return kMaxTilePositions * plan().lanes; }
  int64_t ThreadBytes() const { return sums_at_ + 2 * StripFloats() * kFloatBytes; }

  PixelTile TileOf(const WindowPlan::Place& place) const {
    PixelTile tile{.image = place.image,
                   .group = place.group,
                   .y = place.tile / plan().column_tiles * plan().tile_rows,
                   .x = place.tile % plan().column_tiles * plan().tile_columns};
    tile.rows = std::min(plan().tile_rows, plan().conv.oh - tile.y);
    tile.columns = std::min(plan().tile_columns, plan().conv.ow - tile.x);
    return tile;
  }

  const TileStrips& StripsOfTile(const PixelTile& tile) const {
    return *std::ranges::find_if(tiles_, [&](const TileStrips& known) {
      return known.rows == tile.rows && known.columns == tile.columns;
    });
  }

  void Multiply(const KernelArgs& args, const std::byte* windows, const PixelTile& tile, int64_t block,
                Progress& progress) const {
    const int64_t index = tile.group * plan().blocks + block;
    const int64_t channel = tile.group * plan().group_out + block * plan().lanes;
    const int64_t channels = std::min(plan().lanes, plan().group_out - block * plan().lanes);
    const int64_t at = out_.ChannelOffset(channel) + (tile.y * plan().conv.ow + tile.x) * out_.pixel_bytes;
    StripArgs& now = progress.args;
    if (now.pixels > 0 && channels != progress.channels) {
      code_.Find(progress.channels, 0)(&now);
      now.pixels = 0;
    }
    progress.channels = channels;
    now.weights = BytesOf(weights_).data() + index * BlockWeightNumbers(plan()) * plan().number_bytes;
    now.bias = bias_.floats() + index * plan().lanes;
    const TileStrips& strips = StripsOfTile(tile);
    for (size_t i = 0; i < strips.strips.size(); ++i) {
      const auto& [strip, first_place, places] = strips.strips[i];
      const auto& next = strips.strips[(i + 1) % strips.strips.size()].strip;
      now.input = windows + strip.offset;
      now.next_input = windows + next.offset;
      now.lower_input = SecondTile(strip.positions) * steps_.position_bytes;
      now.sums = progress.sums + progress.turn * StripFloats();
      now.lower_sums = now.sums + SecondTile(strip.positions) * plan().lanes;
      progress.unit.Configure(plan().step_words, std::min(strip.positions, kTileRows));
      code_.Find(channels, CeilDiv(strip.positions, kTileRows))(&now);
      now.places = strips.places.data() + first_place;
      now.pixels = places;
      now.stored_sums = now.sums;
      now.output = args.output.image<std::byte>(tile.image) + at;
      now.residual = schedule_.workload.post.sum ? args.inputs[1].image<std::byte>(tile.image) + at : nullptr;
      progress.turn = 1 - progress.turn;
    }
  }

  // In the copy, or in the blocks of the input.
  WindowSteps StepsOf() const {
    const WindowPlan& p = plan();
    const int64_t steps = p.run_length / p.word / p.step_words;
    WindowSteps found{.offsets = {}, .position_bytes = p.position_bytes()};
    if (schedule_.as_it_is() && !schedule_.in.is_nhwc()) {
      for (int64_t block = 0; block < steps; ++block)
        found.offsets.push_back(static_cast<int32_t>(block * in_.block_bytes));
      found.position_bytes = in_.pixel_bytes;
      return found;
    }
    for (const int32_t run : p.runs)
      for (int64_t step = 0; step < steps; ++step)
        found.offsets.push_back(static_cast<int32_t>(run + step * p.step_words * p.word * p.number_bytes));
    return found;
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
  const WindowSteps steps_;
  const StripCode code_;
  std::optional<CopiedInput> copied_;
  int64_t sums_at_ = 0;  // of a thread's scratch: where strips' sums lie
  std::vector<TileStrips> tiles_;
  AlignedBuffer weights_, bias_;
};

}  // namespace

std::unique_ptr<ConvKernel> BuildKernel(Schedule schedule, const Target& cpu, const ConvWeights& weights) {
  return std::make_unique<AmxKernel>(std::move(schedule), cpu, weights);
}

}  // namespace tilesmith::amx_bf16
