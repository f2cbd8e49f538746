#include <algorithm>
#include <cmath>
#include <vector>

#include "layouts/base/check.h"
#include "layouts/base/sizes.h"
#include "templates/portable/placement.h"
#include "templates/portable_winograd/config.h"
#include "templates/portable_winograd/tile_loops.h"
#include "templates/winograd/transforms.h"
#include "templates/winograd/weights.h"

namespace tilesmith::portable_winograd {
namespace {

using portable::Placement, portable::Range, portable::TapsInside;
using winograd::kTaps;

constexpr int kElements = kWinogradWindow * kWinogradWindow;

struct Coefficient {
  double value = 0;
  int index = 0;
  bool in_memory = false;
};

// In the order in which generated code adds (LinearCode::Sum): what needs no multiplication first.
WinogradSum SumOf(std::vector<Coefficient> terms) {
  const auto rank = [](const Coefficient& term) {
    return term.value == 1 ? (term.in_memory ? 0 : 1) : term.value > 0 ? 2 : 3;
  };
  std::erase_if(terms, [](const Coefficient& term) { return term.value == 0; });
  std::ranges::stable_sort(terms, {}, rank);
  WinogradSum sum;
  for (const Coefficient& term : terms) sum.terms[sum.count++] = {static_cast<float>(term.value), term.index};
  return sum;
}

WinogradMaps MapsOf(const winograd::Transforms& t) {
  constexpr int kLast = kWinogradWindow - 1;
  TILESMITH_CHECK(t.window == kWinogradWindow && std::ssize(t.pairs) == kWinogradPairs);
  WinogradMaps maps;
  const auto input_row = [&](const auto& coefficient) {
    std::vector<Coefficient> terms;
    for (int k = 0; k < kWinogradWindow; ++k) terms.push_back({coefficient(k), k});
    return SumOf(std::move(terms));
  };
  for (int q = 0; q < kWinogradPairs; ++q) {
    const auto plus = [&](int k) { return t.input(1 + 2 * q, k); };
    const auto minus = [&](int k) { return t.input(2 + 2 * q, k); };
    maps.even[q] = input_row([&](int k) { return (plus(k) + minus(k)) / 2; });
    maps.odd[q] = input_row([&](int k) { return (plus(k) - minus(k)) / 2; });
  }
  maps.ends[0] = input_row([&](int k) { return t.input(0, k); });
  maps.ends[1] = input_row([&](int k) { return t.input(kLast, k); });
  for (int k = 0; k < kWinogradTile; ++k) {
    for (const bool in_memory : {true, false}) {
      std::vector<Coefficient> terms;
      for (int q = 0; q < kWinogradPairs; ++q) terms.push_back({t.output(k, 1 + 2 * q), q});
      terms.push_back({t.output(k, 0), kWinogradPairs, in_memory});
      terms.push_back({t.output(k, kLast), kWinogradPairs + 1, in_memory});
      (in_memory ? maps.along_columns : maps.along_rows)[k] = SumOf(std::move(terms));
    }
  }
  return maps;
}

class PortableWinogradKernel : public ConvKernel {
 public:
  PortableWinogradKernel(const Schedule& schedule, const Target& cpu, const ConvWeights& weights)
      : g_(portable::PlaceInMemory(schedule.workload, schedule.in, schedule.out, schedule.tile, cpu)),
        w_(g_.workload),
        grid_(GridOf(schedule)),
        maps_(MapsOf(winograd::TransformsOf(schedule.tile))),
        chunks_(CeilDiv(w_.oc, kWinogradLanes)),
        chunk_floats_(kElements * w_.ic * kWinogradLanes),
        v_stride_(CeilDiv(w_.ic, kWinogradLanes) * kWinogradLanes),
        bias_(FloatsPart(weights.parts, weights.bias, w_.oc, chunks_ * kWinogradLanes)) {
    const auto bytes = static_cast<size_t>(chunks_ * chunk_floats_) * sizeof(float);
    weights_ = DataPart(weights.parts, bytes, [&] {
      AlignedBuffer packed(bytes);
      Pack(weights.weights, packed.floats());
      return packed;
    });
  }

  int64_t Tasks(int) const override { return grid_.tasks(); }
  TaskGrid Grid(int) const override { return grid_; }
  std::span<const std::byte> PackedWeights() const override { return weights_.bytes(); }
  // Of each thread: a window and the outputs of a tile, 16 channels of them, and transformed windows.
  int64_t ScratchBytes(int threads) const override { return threads * ThreadBytes(); }

  void Run(const KernelArgs& args, int, TaskRange range) const override {
    for (int64_t task = range.begin; task < range.end; ++task) {
      auto* const scratch = args.scratch_at<float>(range.thread * ThreadBytes());
      const int64_t rows = g_.row_groups();
      for (int64_t x = 0; x < w_.ow; x += kWinogradTile)
        RunTile(args, task / rows, task % rows * kWinogradTile, x, scratch);
    }
  }

 private:
  int64_t ThreadBytes() const {
    return (kElements * kWinogradLanes + kWinogradTile * kWinogradTile * kWinogradLanes +
            kElements * v_stride_) *
           static_cast<int64_t>(sizeof(float));
  }

  void Pack(const float* weights, float* packed) const {
    const winograd::Transforms& transforms = winograd::TransformsOf(kWinogradTile);
    std::vector<double> matrix;
    for (int i = 0; i < transforms.window; ++i) {
      for (int k = 0; k < kTaps; ++k) matrix.push_back(transforms.weights(i, k));
    }
    for (int64_t chunk = 0; chunk < chunks_; ++chunk) {
      winograd::ChunkWeights part;
      part.weights = weights + chunk * kWinogradLanes * w_.ic * kTaps * kTaps;
      part.input_channels = w_.ic;
      part.lanes = kWinogradLanes;
      part.outputs = std::min<int64_t>(kWinogradLanes, w_.oc - chunk * kWinogradLanes);
      part.transform = matrix.data();
      part.window = transforms.window;
      part.packed = packed + chunk * chunk_floats_;
      part.element_stride = w_.ic * kWinogradLanes;
      TILESMITH_DISPATCH(g_.cpu.isa, TransformWinogradWeights)(part);
    }
  }

  // The tile of outputs from (y, x) on.
  void RunTile(const KernelArgs& args, int64_t image, int64_t y, int64_t x, float* scratch) const {
    float* const d = scratch;
    float* const out = d + kElements * kWinogradLanes;
    float* const v = out + kWinogradTile * kWinogradTile * kWinogradLanes;
    const Range rows = TapsInside(y - w_.ph, 1, kWinogradWindow, w_.ih);
    const Range columns = TapsInside(x - w_.pw, 1, kWinogradWindow, w_.iw);
    WinogradInput input;
    input.d = d;
    input.v_stride = v_stride_;
    input.first_row = static_cast<int>(rows.begin);
    input.last_row = static_cast<int>(rows.begin + rows.count());
    input.first_column = static_cast<int>(columns.begin);
    input.last_column = static_cast<int>(columns.begin + columns.count());
    for (int64_t first = 0; first < w_.ic; first += kWinogradLanes) {
      Gather(args.inputs[0].image<float>(image), first, y - w_.ph, x - w_.pw, rows, columns, d);
      input.v = v + first;
      TILESMITH_DISPATCH(g_.cpu.isa, TransformWinogradInput)(maps_, input);
    }
    for (int64_t chunk = 0; chunk < chunks_; ++chunk) {
      const WinogradProduct product = {v, v_stride_, weights_.floats() + chunk * chunk_floats_, w_.ic, out};
      TILESMITH_DISPATCH(g_.cpu.isa, MultiplyWinogradTile)(maps_, product);
      for (int64_t row = 0; row < std::min<int64_t>(kWinogradTile, w_.oh - y); ++row)
        Finish(args, image, chunk, (y + row) * w_.ow + x, out + row * kWinogradTile * kWinogradLanes);
    }
    if (x + kWinogradTile < w_.ow) return;
    for (int64_t row = y; row < std::min(w_.oh, y + kWinogradTile); ++row)
      ZeroPaddingChannels(g_, args.output.image<float>(image) + row * w_.ow * g_.out_block);
  }

  void Gather(const float* image, int64_t first, int64_t top, int64_t left, Range rows, Range columns,
              float* d) const {
    const int64_t count = std::min<int64_t>(kWinogradLanes, w_.ic - first);
    for (int64_t i = rows.begin; i < rows.end; ++i) {
      for (int64_t j = columns.begin; j < columns.end; ++j) {
        const float* const pixel = image + ((top + i) * w_.iw + left + j) * g_.in_block;
        float* const to = d + (i * kWinogradWindow + j) * kWinogradLanes;
        for (int64_t lane = 0; lane < kWinogradLanes; ++lane)
          to[lane] = lane < count ? pixel[g_.in_offsets[first + lane]] : 0;
      }
    }
  }

  // Some pixels of a row of outputs, of one chunk of channels.
  void Finish(const KernelArgs& args, int64_t image, int64_t chunk, int64_t pixel, float* sums) const {
    const int64_t first = chunk * kWinogradLanes, left = w_.ow - pixel % w_.ow;
    PortableFinish finish;
    portable::SetActivation(w_.post.activation, finish);
    finish.acc = sums;
    finish.acc_stride = kWinogradLanes;
    finish.positions = std::min<int64_t>(kWinogradTile, left);
    finish.channels = std::min<int64_t>(kWinogradLanes, w_.oc - first);
    finish.channel_offsets = g_.out_offsets.data() + first;
    finish.position_stride = g_.out_block;
    finish.out = args.output.image<float>(image) + pixel * g_.out_block;
    const float* residual = w_.post.sum ? args.inputs[1].image<float>(image) + pixel * g_.out_block : nullptr;
    for (int64_t p = 0; p < finish.positions; ++p) {
      for (int64_t lane = 0; lane < finish.channels; ++lane) {
        float& sum = sums[p * kWinogradLanes + lane];
        if (w_.post.bias) sum += bias_.floats()[first + lane];
        if (residual != nullptr) sum += residual[finish.channel_offsets[lane] + p * g_.out_block];
      }
    }
    TILESMITH_DISPATCH(g_.cpu.isa, FinishPortableTile)
    (finish, portable::Contiguous(g_.out_offsets, first, finish.channels));
  }

  const Placement g_;
  const ConvWorkload& w_;
  const TaskGrid grid_;
  const WinogradMaps maps_;
  const int64_t chunks_, chunk_floats_;  // of 16 output channels; of a chunk's transformed weights
  const int64_t v_stride_;
  SharedBuffer bias_, weights_;
};

}  // namespace

std::unique_ptr<ConvKernel> BuildKernel(Schedule schedule, const Target& cpu, const ConvWeights& weights) {
  return std::make_unique<PortableWinogradKernel>(schedule, cpu, weights);
}

}  // namespace tilesmith::portable_winograd
