// For each task the input rows it needs are gathered, channel by channel of one group, into planar rows with
// the padding written out and columns split by stride phase: column x goes to plane x % sw, place x / sw. A
// kernel column then reads consecutive floats for consecutive outputs whatever the stride, and one vector
// holds 16 positions of one output channel.
#include <algorithm>
#include <limits>

#include "templates/portable/kernels.h"

namespace tilesmith::portable {
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
        weights_(Pooled(Pack(weights), weights.pool)) {
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

  // bias[oc], then per chunk of up to 4 output channels [c][kh][kw][planes]. Chunk `first` starts at float
  // first * channels * taps.
  AlignedBuffer Pack(const ConvWeights& source) const {
    const int64_t terms = channels_ * w_.kh * w_.kw;
    AlignedBuffer packed((w_.oc + w_.oc * terms) * sizeof(float));
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
      TILESMITH_DISPATCH(g_.cpu.isa, RunPortablePlaneTile)(tile);
      Finish(args, image, first, y * w_.ow + x, tile);
    }
    if (first + tile.planes == w_.oc) {
      ZeroPaddingChannels(g_, args.output.image<float>(image) + y * w_.ow * g_.out_block);
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
    if (w_.post.sum) {
      finish.residual = args.inputs[1].image<float>(image) + pixel * g_.out_block;
    }
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
