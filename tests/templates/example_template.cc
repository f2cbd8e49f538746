#include "tests/templates/example_template.h"

#include <algorithm>
#include <utility>

#include "templates/base/image_strides.h"
#include "templates/base/schedule_template.h"

namespace tilesmith {
namespace example {
namespace {

// 1. The knobs. Names and values are stored in records; layout knobs may have any name.

Support Supports(const ConvWorkload& w, const Target&) {
  return w.g == 1 ? Support::Yes() : Support::No("a grouped convolution");
}

ConfigSpace Space(const ConvWorkload& w, const Target&) {
  return ConfigSpace({{"in", {1, 8, 16, 0}, "x of the input layout NCHW[x]c; 0 is NHWC"},
                      {"out", {1, 8, 16, 0}, "x of the output layout NCHW[x]c; 0 is NHWC"},
                      {"rows", {1, 2, 4, 8}, "output rows per task"}},
                     [oh = w.oh](const Config& config) {
                       return config.Get("rows") <= std::max<int64_t>(oh, 1) ? ""
                                                                             : "more rows than there are";
                     });
}

Config Default(const ConvWorkload&, const Target&) {
  Config config;
  for (const char* knob : {"in", "out", "rows"}) config.Set(knob, 1);
  return config;
}

// 2. The schedule: all that follows from a workload and a config, read once.

struct Schedule {
  ConvWorkload workload;
  ImageStrides in, out;
  int64_t padded_outputs = 0;  // with the padding channels of the last block
  int64_t rows = 1;            // of a task
  int64_t row_blocks() const { return (workload.oh + rows - 1) / rows; }
};

Schedule ReadSchedule(const ConvWorkload& w, const Config& config, const Target&) {
  const Layout in = LayoutOfBlockKnob(config.Get("in")), out = LayoutOfBlockKnob(config.Get("out"));
  return {w, ImageStrides(in, w.ic, w.ih, w.iw), ImageStrides(out, w.oc, w.oh, w.ow),
          out.PaddedChannels(w.oc), config.Get("rows")};
}

LoopFeatures FeaturesOf(const Schedule& s) {
  const ConvWorkload& w = s.workload;
  LoopFeatures f;
  f.flops = w.flops();
  f.accumulators = 1;
  f.weight_bytes = f.task_weight_bytes = static_cast<double>(w.oc * w.ic * w.kh * w.kw * kFloatBytes);
  f.tasks = static_cast<double>(w.mb * s.row_blocks());
  f.task_input_bytes = InputBytes(w, s.rows, w.ic);
  f.task_output_bytes = static_cast<double>(s.rows * w.ow * w.oc * kFloatBytes);
  return f;
}

TaskGrid GridOf(const Schedule& s) {
  return {.images = s.workload.mb, .rows = s.row_blocks(), .height = s.workload.oh, .part_units = s.rows};
}

LoopNest NestOf(const Schedule& s) {
  const ConvWorkload& w = s.workload;
  LoopNest nest;
  nest.tasks = {LoopOver("mb", w.mb, 1, LoopKind::kTasks), LoopOver("oh", w.oh, s.rows, LoopKind::kTasks)};
  LoopPart part;
  for (const auto& [dim, size] :
       {std::pair("oh", s.rows), {"ow", w.ow}, {"oc", w.oc}, {"ic", w.ic}, {"kh", w.kh}, {"kw", w.kw}})
    part.loops.push_back(LoopOver(dim, size, 1, LoopKind::kLoop));
  part.body = "sum += weight * input";
  nest.parts = {std::move(part)};
  return nest;
}

// 3. The kernel: packed weights, and tasks that may run in any order.

class ExampleKernel : public ConvKernel {
 public:
  ExampleKernel(Schedule schedule, const ConvWeights& weights)
      : s_(std::move(schedule)),
        weights_(FloatsPart(weights.parts, weights.weights, ElementCount(s_.workload.weights_shape()),
                            ElementCount(s_.workload.weights_shape()))),
        bias_(FloatsPart(weights.parts, weights.bias, s_.workload.oc, s_.workload.oc)) {}

  int64_t Tasks(int) const override { return Grid(0).tasks(); }
  TaskGrid Grid(int) const override { return GridOf(s_); }
  std::span<const std::byte> PackedWeights() const override { return weights_.bytes(); }

  void Run(const KernelArgs& args, int, TaskRange range) const override {
    const ConvWorkload& w = s_.workload;
    for (int64_t task = range.begin; task < range.end; ++task) {
      const int64_t n = task / s_.row_blocks(), first = task % s_.row_blocks() * s_.rows;
      for (int64_t y = first; y < std::min(first + s_.rows, w.oh); ++y) {
        for (int64_t x = 0; x < w.ow; ++x) RunPixel(args, n, y, x);
      }
    }
  }

 private:
  void RunPixel(const KernelArgs& args, int64_t n, int64_t y, int64_t x) const {
    const ConvWorkload& w = s_.workload;
    const float* image = args.inputs[0].image<float>(n);
    for (int64_t o = 0; o < s_.padded_outputs; ++o) {
      const int64_t offset = s_.out.ChannelOffset(o) + y * s_.out.row_bytes + x * s_.out.pixel_bytes;
      float value = 0;  // of a padding channel
      if (o < w.oc) {
        value = SumAt(image, o, y, x);
        if (w.post.sum) value += *BytesPast(args.inputs[1].image<float>(n), offset);
        value = w.post.activation.Apply(value);
      }
      *BytesPast(args.output.image<float>(n), offset) = value;
    }
  }

  float SumAt(const float* image, int64_t o, int64_t y, int64_t x) const {
    const ConvWorkload& w = s_.workload;
    float sum = bias_.floats()[o];
    for (int64_t tap = 0; tap < w.ic * w.kh * w.kw; ++tap) {
      const int64_t c = tap / (w.kh * w.kw), i = tap / w.kw % w.kh, j = tap % w.kw;
      const int64_t iy = y * w.sh - w.ph + i * (w.dh + 1), ix = x * w.sw - w.pw + j * (w.dw + 1);
      if (iy < 0 || iy >= w.ih || ix < 0 || ix >= w.iw) continue;
      const int64_t offset = s_.in.ChannelOffset(c) + iy * s_.in.row_bytes + ix * s_.in.pixel_bytes;
      sum += weights_.floats()[o * w.ic * w.kh * w.kw + tap] * *BytesPast(image, offset);
    }
    return sum;
  }

  const Schedule s_;
  const SharedBuffer weights_, bias_;
};

std::unique_ptr<ConvKernel> BuildKernel(Schedule schedule, const Target&, const ConvWeights& weights) {
  return std::make_unique<ExampleKernel>(std::move(schedule), weights);
}

}  // namespace
}  // namespace example

// 4. The template. In the product, ConvTemplates() in templates/registry.cc would list it.

const ConvTemplate& ExampleTemplate() {
  static const ScheduleTemplate<example::Schedule> instance({.name = "example",
                                                             .supports = example::Supports,
                                                             .space = example::Space,
                                                             .preset = example::Default,
                                                             .read = example::ReadSchedule,
                                                             .layout_knobs = {"in", "out"}});
  return instance;
}

}  // namespace tilesmith
