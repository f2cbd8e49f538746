#include <algorithm>
#include <limits>
#include <memory>
#include <vector>

#include "layouts/base/check.h"
#include "templates/portable/config.h"
#include "templates/portable/placement.h"
#include "templates/portable/tiles.h"

namespace tilesmith::portable {

// Vectorised over output channels (over channels of a depthwise conv whose blocks are equal and vectors).
std::unique_ptr<ConvKernel> MakeChannelKernel(const Schedule& schedule, const Placement& placement,
                                              const ConvWeights& weights);

// Vectorised over width: input rows are first gathered per group into planar, padded rows, which suits few
// channels per group. Uses PlaneScratchFloats of scratch per thread.
std::unique_ptr<ConvKernel> MakePlaneKernel(const Schedule& schedule, const Placement& placement,
                                            const ConvWeights& weights);

namespace {

std::vector<int64_t> ChannelOffsets(const Shape& shape, const Layout& layout) {
  const Dims4 dims = ToDims4(shape);
  std::vector<int64_t> offsets(dims.c);
  for (int64_t c = 0; c < dims.c; ++c) offsets[c] = ElementOffset(dims, layout, {0, c, 0, 0});
  return offsets;
}

PortableActivation KindOf(ActivationKind kind) {
  switch (kind) {
    case ActivationKind::kRelu:
      return PortableActivation::kRelu;
    case ActivationKind::kClip:
      return PortableActivation::kClip;
    case ActivationKind::kLeakyRelu:
      return PortableActivation::kLeakyRelu;
    case ActivationKind::kHardSigmoid:
      return PortableActivation::kHardSigmoid;
    case ActivationKind::kHardSwish:
      return PortableActivation::kHardSwish;
    case ActivationKind::kNone:
      return PortableActivation::kNone;
    case ActivationKind::kSigmoid:
    case ActivationKind::kTanh:
    case ActivationKind::kSilu:
      break;
  }
  TILESMITH_CHECK(false, "no workload fuses activation {}", static_cast<int>(kind));
}

}  // namespace

Placement PlaceInMemory(const ConvWorkload& workload, const Layout& in, const Layout& out, int64_t rows,
                        const Target& cpu) {
  Placement placement;
  placement.workload = workload;
  placement.cpu = cpu;
  placement.in_block = in.BlockFor(workload.ic);
  placement.out_block = out.BlockFor(workload.oc);
  placement.in_offsets = ChannelOffsets(workload.input_shape(), in);
  placement.out_offsets = ChannelOffsets(workload.output_shape(), out);
  placement.zero_channels = out.PaddedChannels(workload.oc) - workload.oc;
  placement.rows = rows;
  return placement;
}

Range TapsInside(int64_t first, int64_t step, int64_t taps, int64_t size) {
  const int64_t begin = first >= 0 ? 0 : (-first + step - 1) / step;
  const int64_t end = first >= size ? 0 : std::min(taps, (size - 1 - first) / step + 1);
  return {begin, end};
}

void SetActivation(const Activation& activation, PortableFinish& finish) {
  finish.activation = KindOf(activation.kind);
  finish.alpha = activation.alpha;
  finish.beta = activation.beta;
  if (activation.kind == ActivationKind::kHardSwish) {
    finish.alpha = 1.0f / 6;
    finish.beta = 0.5f;
  }
}

void ZeroPaddingChannels(const Placement& placement, float* row) {
  if (placement.zero_channels == 0) return;
  float* first = row + placement.out_offsets.back() + 1;
  for (int64_t x = 0; x < placement.workload.ow; ++x) {
    std::fill_n(first + x * placement.out_block, placement.zero_channels, 0.0f);
  }
}

std::unique_ptr<ConvKernel> BuildKernel(Schedule schedule, const Target& cpu, const ConvWeights& weights) {
  const Placement placement =
      PlaceInMemory(schedule.workload, schedule.in, schedule.out, schedule.config.rows, cpu);
  if (schedule.config.over_width) return MakePlaneKernel(schedule, placement, weights);
  return MakeChannelKernel(schedule, placement, weights);
}

// Output channels are taken in chunks of 16 that stay within a group; a tile is one chunk at some positions
// of an output row. Positions where every kernel column is inside the input form balanced tiles; those at the
// left and right border are computed one by one with the columns that are inside.

bool Contiguous(const std::vector<int64_t>& offsets, int64_t first, int64_t count) {
  return offsets[first + count - 1] - offsets[first] == count - 1;
}

namespace {

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
    const size_t bytes = chunks_.size() * chunk_floats_ * sizeof(float);
    weights_ = DataPart(weights.parts, bytes, [&] {
      AlignedBuffer packed(bytes);
      for (size_t i = 0; i < chunks_.size(); ++i)
        Pack(chunks_[i], weights, packed.floats() + i * chunk_floats_);
      return packed;
    });
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
  // bias[16], then [channels][kh][kw][16]; lanes behind the chunk's last channel are zero.
  void Pack(const Chunk& chunk, const ConvWeights& source, float* packed) const {
    const int64_t terms = channels_ * w_.kh * w_.kw;
    for (int64_t v = 0; v < chunk.count; ++v) {
      const int64_t o = chunk.first + v;
      if (source.bias) packed[v] = source.bias[o];
      const float* from = source.weights + o * terms;
      for (int64_t t = 0; t < terms; ++t) packed[(1 + t) * kPortableLanes + v] = from[t];
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
    tile.weight_row_stride = w_.kw * kPortableLanes;
    tile.weight_channel_stride = w_.kh * tile.weight_row_stride;
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
      tile.weights = weights + columns.begin * kPortableLanes;
      tile.positions = static_cast<int>(positions);
      Start(args, image, chunk_index, y * w_.ow + x, tile);
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

  // Where there is a residual, sums start from it and the bias.
  void Start(const KernelArgs& args, int64_t image, int64_t chunk_index, int64_t pixel,
             PortableTile& tile) const {
    tile.started = w_.post.sum;
    if (!tile.started) return;
    const Chunk& chunk = chunks_[chunk_index];
    const float* residual = args.inputs[1].image<float>(image) + pixel * g_.out_block;
    for (int64_t p = 0; p < tile.positions; ++p, residual += g_.out_block) {
      for (int64_t v = 0; v < kPortableLanes; ++v) {
        tile.acc[p * kPortableLanes + v] =
            v < chunk.count ? tile.bias[v] + residual[g_.out_offsets[chunk.first + v]] : 0;
      }
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

// For each task the input rows it needs are gathered, channel by channel of one group, into planar rows with
// the padding written out and columns split by stride phase: column x goes to plane x % sw, place x / sw. A
// kernel column then reads consecutive floats for consecutive outputs whatever the stride, and one vector
// holds 16 positions of one output channel.

namespace {

constexpr int64_t kVectorsPerTile = 2;
constexpr int64_t kTileWidth = kVectorsPerTile * kPortableLanes;

// Floats of one stride phase of one gathered row: every tile may read full vectors.
int64_t PhaseWidth(const ConvWorkload& w) {
  const int64_t tiles = (w.ow + kTileWidth - 1) / kTileWidth;
  return tiles * kTileWidth + (w.kw - 1) * (w.dw + 1) / w.sw + 1;
}

// Input rows between the first and the last that `rows` output rows read, those dilation skips included.
int64_t GatheredRows(const ConvWorkload& w, int64_t rows) {
  return (std::min(rows, w.oh) - 1) * w.sh + (w.kh - 1) * (w.dh + 1) + 1;
}

class PlaneKernel : public ConvKernel {
 public:
  PlaneKernel(const Schedule& schedule, const Placement& placement, const ConvWeights& weights)
      : g_(placement),
        w_(g_.workload),
        grid_(GridOf(schedule)),
        channels_(w_.ic / w_.g),
        outputs_(w_.oc / w_.g),
        phase_width_(PhaseWidth(w_)),
        row_stride_(phase_width_ * w_.sw),
        channel_stride_(row_stride_ * GatheredRows(w_, g_.rows)),
        scratch_bytes_(PlaneScratchFloats(w_, g_.rows) * static_cast<int64_t>(sizeof(float))),
        weights_(DataPart(weights.parts, PackedBytes(), [&] { return Pack(weights); })) {
    for (int64_t j = 0; j < w_.kw; ++j) {
      const int64_t column = j * (w_.dw + 1);
      tap_offsets_.push_back(column % w_.sw * phase_width_ + column / w_.sw);
    }
  }

  int64_t Tasks(int) const override { return grid_.tasks(); }
  TaskGrid Grid(int) const override { return grid_; }
  int64_t ScratchBytes(int threads) const override { return threads * scratch_bytes_; }
  std::span<const std::byte> PackedWeights() const override { return weights_.bytes(); }

  void Run(const KernelArgs& args, int, TaskRange range) const override {
    float* rows = args.scratch_at<float>(range.thread * scratch_bytes_);
    const int64_t groups = g_.row_groups();
    for (int64_t task = range.begin; task < range.end; ++task) {
      const int64_t first = task % groups * g_.rows;
      const int64_t group = task / groups % w_.g;
      const int64_t image = task / groups / w_.g;
      const int64_t last = std::min(first + g_.rows, w_.oh);
      Gather(args.inputs[0].image<float>(image), group, first, last, rows);
      for (int64_t y = first; y < last; ++y) {
        for (int64_t o = 0; o < outputs_; o += kPortableMaxPlanes) {
          RunRow(args, image, group * outputs_ + o, y, rows + (y - first) * w_.sh * row_stride_);
        }
      }
    }
  }

 private:
  int Planes(int64_t first) const {  // output channels of the chunk that starts at `first`
    return static_cast<int>(std::min<int64_t>(kPortableMaxPlanes, outputs_ - first % outputs_));
  }

  size_t PackedBytes() const {
    return static_cast<size_t>(w_.oc + w_.oc * channels_ * w_.kh * w_.kw) * sizeof(float);
  }

  // bias[oc], then per chunk of up to 4 output channels [c][kh][kw][planes]. Chunk `first` starts at float
  // first * channels * taps.
  AlignedBuffer Pack(const ConvWeights& source) const {
    const int64_t terms = channels_ * w_.kh * w_.kw;
    AlignedBuffer packed(PackedBytes());
    if (source.bias) std::copy_n(source.bias, w_.oc, packed.floats());
    float* to = packed.floats() + w_.oc;
    for (int64_t first = 0; first < w_.oc; first += Planes(first)) {
      for (int64_t t = 0; t < terms; ++t) {
        for (int r = 0; r < Planes(first); ++r) *to++ = source.weights[(first + r) * terms + t];
      }
    }
    return packed;
  }

  void Gather(const float* image, int64_t group, int64_t first_row, int64_t last_row, float* rows) const {
    const int64_t count = GatheredRows(w_, last_row - first_row);
    for (int64_t c = 0; c < channels_; ++c) {
      const float* channel = image + g_.in_offsets[group * channels_ + c];
      for (int64_t r = 0; r < count; ++r) {
        const int64_t y = first_row * w_.sh - w_.ph + r;
        float* row = rows + c * channel_stride_ + r * row_stride_;
        std::fill_n(row, row_stride_, 0.0f);
        if (y >= 0 && y < w_.ih) GatherRow(channel + y * w_.iw * g_.in_block, row);
      }
    }
  }

  void GatherRow(const float* source, float* row) const {
    // Gathered column x + pw holds input column x; columns no output reads are left out.
    const int64_t end = std::min(w_.iw, phase_width_ * w_.sw - w_.pw);
    if (g_.in_block == 1 && w_.sw == 1) {
      std::copy_n(source, std::max<int64_t>(end, 0), row + w_.pw);
      return;
    }
    int64_t phase = w_.pw % w_.sw;
    int64_t place = w_.pw / w_.sw;
    for (int64_t x = 0; x < end; ++x) {
      row[phase * phase_width_ + place] = source[x * g_.in_block];
      if (++phase == w_.sw) {
        phase = 0;
        ++place;
      }
    }
  }

  void RunRow(const KernelArgs& args, int64_t image, int64_t first, int64_t y, const float* rows) const {
    alignas(64) float acc[kPortableMaxPlanes * kTileWidth];
    PortablePlaneTile tile;
    tile.channels = channels_;
    tile.kh = w_.kh;
    tile.kw = w_.kw;
    tile.channel_stride = channel_stride_;
    tile.row_stride = (w_.dh + 1) * row_stride_;
    tile.tap_offsets = tap_offsets_.data();
    tile.weights = weights_.floats() + w_.oc + first * channels_ * w_.kh * w_.kw;
    tile.bias = weights_.floats() + first;
    tile.acc = acc;
    tile.planes = Planes(first);
    for (int64_t x = 0; x < w_.ow; x += int64_t{tile.vectors} * kPortableLanes) {
      tile.rows = rows + x;
      tile.vectors = wide_ && w_.ow - x > kPortableLanes ? kVectorsPerTile : 1;
      Start(args, image, first, y * w_.ow + x, tile);
      TILESMITH_DISPATCH(g_.cpu.isa, RunPortablePlaneTile)(tile);
      Finish(args, image, first, y * w_.ow + x, tile);
    }
    if (first + tile.planes == w_.oc) {
      ZeroPaddingChannels(g_, args.output.image<float>(image) + y * w_.ow * g_.out_block);
    }
  }

  // Where there is a residual, sums start from it and the bias.
  void Start(const KernelArgs& args, int64_t image, int64_t first, int64_t pixel,
             PortablePlaneTile& tile) const {
    tile.started = w_.post.sum;
    if (!tile.started) return;
    const float* residual = args.inputs[1].image<float>(image) + pixel * g_.out_block;
    const int64_t width = int64_t{tile.vectors} * kPortableLanes;
    const int64_t positions = std::min(width, w_.ow - pixel % w_.ow);
    for (int r = 0; r < tile.planes; ++r) {
      for (int64_t p = 0; p < width; ++p) {
        tile.acc[r * width + p] =
            p < positions ? tile.bias[r] + residual[g_.out_offsets[first + r] + p * g_.out_block] : 0;
      }
    }
  }

  void Finish(const KernelArgs& args, int64_t image, int64_t first, int64_t pixel,
              const PortablePlaneTile& tile) const {
    const int64_t width = int64_t{tile.vectors} * kPortableLanes;
    PortableFinish finish;
    SetActivation(w_.post.activation, finish);
    finish.acc = tile.acc;
    finish.acc_stride = width;
    finish.positions = std::min(width, w_.ow - pixel % w_.ow);
    finish.channels = tile.planes;
    finish.channel_offsets = g_.out_offsets.data() + first;
    finish.position_stride = g_.out_block;
    finish.out = args.output.image<float>(image) + pixel * g_.out_block;
    TILESMITH_DISPATCH(g_.cpu.isa, FinishPortablePlanes)(finish);
  }

  const Placement g_;
  const ConvWorkload& w_;
  const TaskGrid grid_;
  const bool wide_ = g_.cpu.isa == Isa::kAvx512;  // the others lack the registers for two vectors of 16
  const int64_t channels_, outputs_;              // per group
  const int64_t phase_width_, row_stride_, channel_stride_, scratch_bytes_;
  std::vector<int64_t> tap_offsets_;
  SharedBuffer weights_;
};

}  // namespace

int64_t PlaneScratchFloats(const ConvWorkload& w, int64_t rows) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max() / 2;  // nobody gathers so many
  const int64_t row = PhaseWidth(w) * w.sw, gathered = GatheredRows(w, rows), channels = w.ic / w.g;
  const double about =
      static_cast<double>(row) * static_cast<double>(gathered) * static_cast<double>(channels);
  if (about > static_cast<double>(kMax)) return kMax;
  const int64_t floats = row * gathered * channels;
  return (floats + kPortableLanes - 1) / kPortableLanes * kPortableLanes;
}

std::unique_ptr<ConvKernel> MakePlaneKernel(const Schedule& schedule, const Placement& placement,
                                            const ConvWeights& weights) {
  return std::make_unique<PlaneKernel>(schedule, placement, weights);
}

}  // namespace tilesmith::portable
