#include "templates/amx/x86/strip_kernel.h"

#include <algorithm>

#include "layouts/base/check.h"
#include "templates/base/image_strides.h"
#include "templates/base/window_plan.h"
#include "templates/x86/tile_unit.h"

namespace tilesmith::amx {
namespace {

class StripKernel : public ConvKernel {
 public:
  StripKernel(const Schedule& schedule, StripParts parts)
      : schedule_(schedule),
        in_(schedule_.in, plan().conv.ic, plan().conv.ih, plan().conv.iw),
        out_(schedule_.out, plan().conv.oc, plan().conv.oh, plan().conv.ow),
        parts_(std::move(parts)),
        position_bytes_(StepsOf(schedule_).position_bytes),
        sums_at_(parts_.copy ? parts_.copy->ThreadBytes() : 0) {
    TILESMITH_CHECK(schedule_.as_it_is == (parts_.copy == nullptr));
    const WindowPlan& p = plan();
    for (const int64_t rows : {p.tile_rows, p.conv.oh - (p.row_tiles - 1) * p.tile_rows})
      for (const int64_t columns : {p.tile_columns, p.conv.ow - (p.column_tiles - 1) * p.tile_columns})
        tiles_.push_back(
            StripsOf(p, std::min(rows, p.conv.oh), std::min(columns, p.conv.ow), out_.pixel_bytes));
  }

  TaskGrid Grid(int) const override { return plan().Grid(); }
  int64_t Tasks(int stage) const override { return Grid(stage).tasks(); }
  int64_t ScratchBytes(int threads) const override { return threads * ThreadBytes(); }
  std::vector<CodeBlob> Code() const override {
    return {{parts_.name + " " + WorkloadToString(schedule_.workload), parts_.code.bytes()}};
  }
  std::span<const std::byte> PackedWeights() const override { return parts_.parameters.weights(); }

  void Run(const KernelArgs& args, int, TaskRange range) const override {
    auto* const scratch = args.scratch_at<std::byte>(range.thread * ThreadBytes());
    WindowTile held{.image = -1};  // what is in the scratch
    Progress progress{.sums = scratch + sums_at_};
    progress.args.stored_multipliers = parts_.parameters.multipliers();
    for (int64_t task = range.begin; task < range.end; ++task) {
      const WindowPlan::Place place = plan().PlaceOf(task);
      const WindowTile tile = plan().TileOf(place);
      const auto* windows = args.inputs[0].image<std::byte>(tile.image);
      if (parts_.copy) {
        if (tile != held) parts_.copy->Copy(windows, tile, scratch);
        windows = scratch;
      } else {
        windows += tile.x * in_.pixel_bytes;
      }
      held = tile;
      Multiply(args, windows, tile, place.block, progress);
    }
    if (progress.args.pixels > 0) parts_.code.Find(progress.channels, 0)(&progress.args);
  }

 private:
  // What a thread has under way: the sums of the last strip are not stored yet, where its arguments say.
  struct Progress {
    TileUnit unit = {};
    std::byte* sums = nullptr;  // of two strips, by turns
    int64_t turn = 0;
    int64_t channels = 0;  // of the block that the last strip is of
    StripArgs args = {};
  };

  const WindowPlan& plan() const { return schedule_.plan; }
  int64_t StripBytes() const { return kMaxTilePositions * plan().lanes * kSumBytes; }
  int64_t ThreadBytes() const { return sums_at_ + 2 * StripBytes(); }

  const TileStrips& StripsOfTile(const WindowTile& tile) const {
    return *std::ranges::find_if(tiles_, [&](const TileStrips& known) {
      return known.rows == tile.rows && known.columns == tile.columns;
    });
  }

  void Multiply(const KernelArgs& args, const std::byte* windows, const WindowTile& tile, int64_t block,
                Progress& progress) const {
    const int64_t index = tile.group * plan().blocks + block;
    const int64_t channel = tile.group * plan().group_out + block * plan().lanes;
    const int64_t channels = std::min(plan().lanes, plan().group_out - block * plan().lanes);
    const int64_t at = out_.ChannelOffset(channel) + (tile.y * plan().conv.ow + tile.x) * out_.pixel_bytes;
    StripArgs& now = progress.args;
    if (now.pixels > 0 && channels != progress.channels) {
      parts_.code.Find(progress.channels, 0)(&now);
      now.pixels = 0;
    }
    progress.channels = channels;
    now.weights =
        parts_.parameters.weights().data() + index * BlockWeightNumbers(plan()) * plan().number_bytes;
    now.bias = parts_.parameters.bias() + index * plan().lanes * kSumBytes;
    const TileStrips& strips = StripsOfTile(tile);
    for (size_t i = 0; i < strips.strips.size(); ++i) {
      const auto& [strip, first_place, places] = strips.strips[i];
      const auto& next = strips.strips[(i + 1) % strips.strips.size()].strip;
      now.input = windows + strip.offset;
      now.next_input = windows + next.offset;
      now.lower_input = SecondTile(strip.positions) * position_bytes_;
      now.sums = progress.sums + progress.turn * StripBytes();
      now.lower_sums = now.sums + SecondTile(strip.positions) * plan().lanes * kSumBytes;
      progress.unit.Configure(plan().step_words, std::min(strip.positions, kTileRows));
      parts_.code.Find(channels, CeilDiv(strip.positions, kTileRows))(&now);
      now.places = strips.places.data() + first_place;
      now.pixels = places;
      now.stored_sums = now.sums;
      if (parts_.parameters.has_multipliers())
        now.stored_multipliers = parts_.parameters.multipliers() + index * plan().lanes;
      now.output = args.output.image<std::byte>(tile.image) + at;
      now.residual = schedule_.workload.post.sum ? args.inputs[1].image<std::byte>(tile.image) + at : nullptr;
      progress.turn = 1 - progress.turn;
    }
  }

  const Schedule schedule_;
  const ImageStrides in_, out_;
  const StripParts parts_;
  const int64_t position_bytes_;
  const int64_t sums_at_;  // of a thread's scratch: where strips' sums lie
  std::vector<TileStrips> tiles_;
};

}  // namespace

PackedParameters::Sizes ParameterSizes(const WindowPlan& plan, bool multipliers) {
  const int64_t blocks = plan.groups * plan.blocks, words = blocks * plan.lanes * kSumBytes;
  return {blocks * BlockWeightNumbers(plan) * plan.number_bytes, words, multipliers ? words : 0};
}

std::unique_ptr<ConvKernel> MakeStripKernel(const Schedule& schedule, StripParts parts) {
  return std::make_unique<StripKernel>(schedule, std::move(parts));
}

}  // namespace tilesmith::amx
