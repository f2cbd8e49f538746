// Output channels are taken in chunks of 16 that stay within a group; a tile is one chunk at some positions
// of an output row. Positions where every kernel column is inside the input form balanced tiles; those at the
// left and right border are computed one by one with the columns that are inside.
#include <algorithm>

#include "templates/portable/kernels.h"

namespace tilesmith::portable {
namespace {

bool Contiguous(const std::vector<int64_t>& offsets, int64_t first, int64_t count) {
  return offsets[first + count - 1] - offsets[first] == count - 1;
}

class ChannelKernel : public ConvKernel {
 public:
  ChannelKernel(const Schedule& schedule, const Placement& placement, const ConvWeights& weights)
      : g_(placement),
        w_(g_.workload),
        depthwise_(IsDepthwise(w_, g_.in_block, g_.out_block)),
        ow_tile_(schedule.config.ow_tile),
        channels_(depthwise_ ? 1 : w_.ic / w_.g),
        chunk_floats_(kPortableLanes * (1 + w_.kh * w_.kw * channels_)),
        grid_(GridOf(schedule)),
        chunks_(ChunksOf(schedule)) {
    for (const Chunk& chunk : chunks_)
      contiguous_.push_back(Contiguous(g_.out_offsets, chunk.first, chunk.count));
    AlignedBuffer packed(chunks_.size() * chunk_floats_ * sizeof(float));
    for (size_t i = 0; i < chunks_.size(); ++i)
      Pack(chunks_[i], weights, packed.floats() + i * chunk_floats_);
    weights_ = Pooled(std::move(packed), weights.pool);
    const int64_t dilation = w_.dw + 1;
    const int64_t last_tap = w_.iw - 1 + w_.pw - (w_.kw - 1) * dilation;
    interior_.begin = std::clamp<int64_t>((w_.pw + w_.sw - 1) / w_.sw, 0, w_.ow);
    interior_.end = last_tap < 0 ? interior_.begin : std::clamp(last_tap / w_.sw + 1, interior_.begin, w_.ow);
  }

  int64_t Tasks(int) const override { return grid_.tasks(); }
  TaskGrid Grid(int) const override { return grid_; }

  void Run(const KernelArgs& args, int, TaskRange range) const override {
    const int64_t groups = g_.row_groups();
    for (int64_t task = range.begin; task < range.end; ++task) {
      const int64_t first_row = task % groups * g_.rows;
      const int64_t chunk = task / groups % chunks_.size();
      const int64_t image = task / groups / chunks_.size();
      for (int64_t y = first_row; y < std::min(first_row + g_.rows, w_.oh); ++y)
        RunRow(args, image, chunk, y);
    }
  }

  std::span<const std::byte> PackedWeights() const override { return weights_.bytes(); }

 private:
  // bias[16], then [kh][kw][channels][16]; lanes behind the chunk's last channel are zero.
  void Pack(const Chunk& chunk, const ConvWeights& source, float* packed) const {
    const int64_t taps = w_.kh * w_.kw;
    for (int64_t v = 0; v < chunk.count; ++v) {
      const int64_t o = chunk.first + v;
      if (source.bias) packed[v] = source.bias[o];
      for (int64_t c = 0; c < channels_; ++c) {
        const float* from = source.weights + (o * channels_ + c) * taps;
        for (int64_t t = 0; t < taps; ++t) packed[(1 + t * channels_ + c) * kPortableLanes + v] = from[t];
      }
    }
  }

  void RunRow(const KernelArgs& args, int64_t image, int64_t chunk_index, int64_t y) const {
    const Chunk& chunk = chunks_[chunk_index];
    const InputView& in = args.inputs[0];
    const int64_t first_row = y * w_.sh - w_.ph;
    const Range taps = TapsInside(first_row, w_.dh + 1, w_.kh, w_.ih);
    alignas(64) float acc[kPortableMaxTile * kPortableLanes];
    PortableTile tile;
    tile.channels = channels_;
    tile.channel_offsets = g_.in_offsets.data() + chunk.first / (w_.oc / w_.g) * channels_;
    tile.taps_h = taps.count();
    tile.tap_row_stride = (w_.dh + 1) * w_.iw * g_.in_block;
    tile.tap_col_stride = (w_.dw + 1) * g_.in_block;
    tile.position_stride = w_.sw * g_.in_block;
    tile.weight_row_stride = w_.kw * channels_ * kPortableLanes;
    tile.bias = weights_.floats() + chunk_index * chunk_floats_;
    tile.lanes = chunk.lanes;
    tile.acc = acc;
    const float* weights = tile.bias + kPortableLanes + taps.begin * tile.weight_row_stride;
    const float* row = in.image<float>(image);
    if (taps.count() > 0) row += (first_row + taps.begin * (w_.dh + 1)) * w_.iw * g_.in_block;
    if (depthwise_) row += g_.in_offsets[chunk.first];

    const int64_t inside = interior_.count();
    const int64_t tiles = (inside + ow_tile_ - 1) / ow_tile_;
    const auto run = [&](int64_t x, int64_t positions, Range columns) {
      const int64_t first_column = x * w_.sw - w_.pw + columns.begin * (w_.dw + 1);
      tile.taps_w = columns.count();
      tile.input = tile.taps_w > 0 ? row + first_column * g_.in_block : row;
      tile.weights = weights + columns.begin * channels_ * kPortableLanes;
      tile.positions = static_cast<int>(positions);
      if (depthwise_) {
        TILESMITH_DISPATCH(g_.cpu.isa, RunPortableDepthwiseTile)(tile);
      } else {
        TILESMITH_DISPATCH(g_.cpu.isa, RunPortableTile)(tile);
      }
      Finish(args, image, chunk_index, y * w_.ow + x, tile);
    };
    const auto run_border = [&](int64_t x) {
      run(x, 1, TapsInside(x * w_.sw - w_.pw, w_.dw + 1, w_.kw, w_.iw));
    };
    for (int64_t x = 0; x < interior_.begin; ++x) run_border(x);
    for (int64_t t = 0; t < tiles; ++t) {
      const TaskRange share{inside * t / tiles, inside * (t + 1) / tiles};
      run(interior_.begin + share.begin, share.end - share.begin, {0, w_.kw});
    }
    for (int64_t x = interior_.end; x < w_.ow; ++x) run_border(x);
    if (chunk.first + chunk.count == w_.oc) {
      ZeroPaddingChannels(g_, args.output.image<float>(image) + y * w_.ow * g_.out_block);
    }
  }

  void Finish(const KernelArgs& args, int64_t image, int64_t chunk_index, int64_t pixel,
              const PortableTile& tile) const {
    const Chunk& chunk = chunks_[chunk_index];
    PortableFinish finish;
    SetActivation(w_.post.activation, finish);
    finish.acc = tile.acc;
    finish.acc_stride = kPortableLanes;
    finish.positions = tile.positions;
    finish.channels = chunk.count;
    finish.channel_offsets = g_.out_offsets.data() + chunk.first;
    finish.position_stride = g_.out_block;
    finish.out = args.output.image<float>(image) + pixel * g_.out_block;
    if (w_.post.sum) {
      finish.residual = args.inputs[1].image<float>(image) + pixel * g_.out_block;
    }
    TILESMITH_DISPATCH(g_.cpu.isa, FinishPortableTile)(finish, contiguous_[chunk_index]);
  }

  const Placement g_;
  const ConvWorkload& w_;
  const bool depthwise_;
  const int64_t ow_tile_;
  const int64_t channels_;  // input channels one output channel reads
  const int64_t chunk_floats_;
  const TaskGrid grid_;
  const std::vector<Chunk> chunks_;
  std::vector<bool> contiguous_;  // by chunk: in the output
  SharedBuffer weights_;
  Range interior_;  // output columns with every kernel column inside the input
};

}  // namespace

std::unique_ptr<ConvKernel> MakeChannelKernel(const Schedule& schedule, const Placement& placement,
                                              const ConvWeights& weights) {
  return std::make_unique<ChannelKernel>(schedule, placement, weights);
}

}  // namespace tilesmith::portable
