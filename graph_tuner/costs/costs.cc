#include "graph_tuner/costs/costs.h"

#include <fmt/format.h>

#include <sstream>

#include "graph_tuner/costs/crossing_costs.h"
#include "graph_tuner/costs/layout_forms.h"
#include "layouts/measure/quantile.h"
#include "layouts/measure/sampling.h"
#include "layouts/transform.h"
#include "layouts/transform_benchmark.h"

namespace tilesmith {
double CostQuestions::TransformSeconds(const Shape& shape, const Layout& from, const Layout& to) {
  questions_.try_emplace(
      fmt::format("transform {} {} {}", ShapeToString(shape), from.ToString(), to.ToString()),
      [=](CostSource& source) { source.TransformSeconds(shape, from, to); });
  return 0;
}

double CostQuestions::CopySeconds(const Shape& shape, const Layout& layout) {
  questions_.try_emplace(fmt::format("copy {} {}", ShapeToString(shape), layout.ToString()),
                         [=](CostSource& source) { source.CopySeconds(shape, layout); });
  return 0;
}

double CostQuestions::OpSeconds(const OpUse& use) {
  questions_.try_emplace(fmt::format("op {} {}", OpUseText(use), use.layout.ToString()),
                         [=](CostSource& source) { source.OpSeconds(use); });
  return 0;
}

CrossingPrices CostQuestions::PricesOfCrossing() {
  questions_.try_emplace("crossing", [](CostSource& source) { source.PricesOfCrossing(); });
  return {};
}

void CostQuestions::Ask(CostSource& source, const std::function<void(size_t, size_t)>& progress) const {
  size_t done = 0;
  if (progress) progress(done, size());
  for (const auto& [text, ask] : questions_) {
    ask(source);
    if (progress) progress(++done, size());
  }
}

Tensor TimingInput(const Shape& shape, const Layout& layout) {
  Tensor plain(shape, Layout::Nchw(layout.type()));
  VisitType(layout.type(), [&](auto tag) {
    using T = typename decltype(tag)::Type;
    T* const values = plain.data<T>();
    for (int64_t i = 0; i < plain.size(); ++i)
      values[i] = ConvertElement<T>(0.1f * static_cast<float>(i % 17) - 0.75f);
  });
  return layout.is_nchw() ? plain : TransformGeneric(plain, layout);
}

std::string OpUseText(const OpUse& use) {
  std::string text(use.op->Signature());
  for (const Shape& shape : use.inputs) text += " " + ShapeToString(shape);
  return text + " -> " + ShapeToString(use.output);
}

double OpCosts::Seconds(const OpUse& use) {
  std::map<Use, double>& uses = known_[use.op];
  const Use key = {use.inputs, use.output, use.layout, use.input_types, use.output_type};
  if (const auto known = uses.find(key); known != uses.end()) return known->second;
  return uses[key] = FromFile(use);
}

double OpCosts::FromFile(const OpUse& use) {
  // Figures without "owner" are older ones, of tensors that other threads have written.
  const CostKey key{
      {"kind", "op"}, {"op", OpUseText(use)}, {"layout", use.layout.ToString()}, {"owner", "reader"}};
  if (const auto known = file_.Find(key)) return *known;
  const double seconds = measure_(use);
  file_.Add(key, seconds);
  return seconds;
}

namespace {

// All that matters for the time: images, channels and pixels.
Shape FourSizes(const Shape& shape) {
  if (shape.size() > 4) return {shape[0], ElementCount(shape) / shape[0], 1, 1};
  const Dims4 dims = ToDims4(shape);
  return {dims.n, dims.c, dims.h, dims.w};
}

CostKey KeyOf(const Shape& shape, const Layout& from, const Layout& to) {
  return {{"kind", "transform"},
          {"shape", ShapeToString(shape)},
          {"from", from.ToString()},
          {"to", to.ToString()}};
}

// "1x64x56x56" -> its four sizes; none when that is not what the text is, or no tensor is so large.
Shape ParseShape(const std::string& text) {
  constexpr double kMaxElements = 1e15;
  Shape shape;
  double elements = 1;
  std::istringstream sizes(text);
  for (int64_t size = 0; shape.size() < 4 && sizes >> size; sizes.ignore(1, 'x')) {
    if (size < 1) return {};
    elements *= static_cast<double>(size);
    shape.push_back(size);
  }
  return shape.size() == 4 && elements <= kMaxElements ? shape : Shape();
}

// The value of a key's field, "" where a damaged file lacks it.
std::string FieldOf(const CostKey& key, const char* field) {
  const auto found = key.find(field);
  return found == key.end() ? "" : found->second;
}

// The layout's name but for the number of channels: canonical layouts spell NHWC as a block of all of them.
std::string KindOfLayout(const Shape& shape, const std::string& canonical) {
  const std::string_view order = std::string_view(canonical).substr(0, canonical.find(':'));
  const bool all_channels = shape.size() == 4 && order == fmt::format("NCHW{}c", shape[1]);
  if (!all_channels || shape[1] == 1) return canonical;
  return Layout::Nhwc().ToString() + canonical.substr(order.size());
}

constexpr int kWarmUps = 2;
constexpr SamplingPlan kSampling = {.min_samples = 3, .max_samples = 40, .seconds = 6e-3};
constexpr double kSlowSeconds = 50e-3;

// Runs the kernel, before each run inputs and output being in the state their producers leave them in
// (Device::AfterProducers): two runs to warm up, then up to 40 samples within about 6 ms, at least 3, since
// there are hundreds of kernels in a network. The answer is the lower quartile: noise only ever adds, and the
// minimum of few samples depends on their number. A kernel so slow that its first run takes more than 50 ms
// is charged that run. Must not run while anything else measures.
double TimeKernel(const Device& device, const Kernel& kernel, std::span<Tensor* const> inputs,
                  Tensor& output) {
  const std::function<double()> run = device.AfterProducers(kernel, inputs, output);
  for (int i = 0; i < kWarmUps; ++i) {
    const double seconds = run();
    if (seconds > kSlowSeconds) return seconds;
  }
  std::vector<double> samples;
  double spent = 0;
  while (kSampling.WantsMore(samples.size(), spent)) {
    samples.push_back(run());
    spent += samples.back();
  }
  return LowerQuartile(std::move(samples));
}

// Measures the op's own kernel on the device's threads; ops without a fast one are run once.
OpCosts::Measure OpMeasure(DevicePtr device) {
  return [=](const OpUse& use) {
    const auto kernel = device->BuildOp(
        *use.op,
        {use.inputs, use.output, use.layout.WithType(use.output_type), device->target(), use.input_types});
    std::vector<Tensor> inputs;
    inputs.reserve(use.inputs.size());
    for (size_t i = 0; i < use.inputs.size(); ++i) {
      const DataType type = use.input_types.empty() ? DataType::kF32 : use.input_types[i];
      inputs.push_back(TimingInput(use.inputs[i], use.layout.WithType(type)));
    }
    std::vector<Tensor*> pointers;
    pointers.reserve(inputs.size());
    for (Tensor& input : inputs) pointers.push_back(&input);
    Tensor output(use.output, use.layout.WithType(use.output_type));
    return use.op->HasFastKernel() ? TimeKernel(*device, *kernel, pointers, output)
                                   : device->AfterProducers(*kernel, pointers, output)();
  };
}

// Measures the kernel that the executor runs.
TransformCosts::Measure TransformMeasure(DevicePtr device) {
  return [=](const Shape& shape, const Layout& from, const Layout& to) {
    if (from != to) return device->TimeTransform(shape, from, to);
    Tensor source = TimingInput(shape, from);
    Tensor copy(shape, to);
    Tensor* const inputs[] = {&source};
    return TimeKernel(*device, *device->BuildTransform(shape, from, to), inputs, copy);
  };
}

class Measured final : public CostSource {
 public:
  Measured(const DevicePtr& device, const CostOptions& options)
      : file_(options.cache_path, device->target(), device->threads()),
        machine_(options.machine_path, device->target(), device->threads()),
        transforms_(file_, TransformMeasure(device), options.interpolate),
        ops_(file_, OpMeasure(device)),
        crossings_(file_, machine_, CrossingMeasureOf(*device)) {}

  double TransformSeconds(const Shape& shape, const Layout& from, const Layout& to) override {
    return transforms_.Seconds(shape, from, to);
  }
  bool IsInterpolated(const Shape& shape, const Layout& from, const Layout& to) const override {
    return transforms_.IsInterpolated(shape, from, to);
  }
  double CopySeconds(const Shape& shape, const Layout& layout) override {
    return transforms_.CopySeconds(shape, layout);
  }
  double OpSeconds(const OpUse& use) override { return ops_.Seconds(use); }
  CrossingPrices PricesOfCrossing() override { return crossings_.Prices(); }
  void SeeDistance() override { crossings_.SeeDistance(); }

  const CostFile& file() const { return file_; }

 private:
  CostFile file_, machine_;
  TransformCosts transforms_;
  OpCosts ops_;
  CrossingCosts crossings_;
};

}  // namespace

double TransformCosts::Seconds(const Shape& shape, const Layout& from, const Layout& to) {
  if (from == to || SameMemory(shape, from, to)) return 0;
  const std::tuple key = {shape, from, to};
  if (const auto known = known_.find(key); known != known_.end()) return known->second;
  return known_[key] = FromFile(FourSizes(shape), CanonicalLayout(shape, from), CanonicalLayout(shape, to));
}

double TransformCosts::CopySeconds(const Shape& shape, const Layout& layout) {
  const Layout canonical = CanonicalLayout(shape, layout);
  return FromFile(FourSizes(shape), canonical, canonical);
}

bool TransformCosts::IsInterpolated(const Shape& shape, const Layout& from, const Layout& to) const {
  return estimates_.contains(
      KeyOf(FourSizes(shape), CanonicalLayout(shape, from), CanonicalLayout(shape, to)));
}

std::optional<double> TransformCosts::Interpolate(const Shape& shape, const Layout& from,
                                                  const Layout& to) const {
  const std::string from_kind = KindOfLayout(shape, from.ToString());
  const std::string to_kind = KindOfLayout(shape, to.ToString());
  const auto wanted = static_cast<double>(ElementCount(shape));
  struct Point {
    double elements = 0, seconds = 0;
  };
  std::optional<Point> below, above;
  for (const auto& [key, seconds] : file_.figures()) {
    if (FieldOf(key, "kind") != "transform") continue;
    const Shape other = ParseShape(FieldOf(key, "shape"));
    if (other.empty() || KindOfLayout(other, FieldOf(key, "from")) != from_kind ||
        KindOfLayout(other, FieldOf(key, "to")) != to_kind)
      continue;
    const auto elements = static_cast<double>(ElementCount(other));
    if (elements <= wanted && (!below || elements > below->elements)) below = Point{elements, seconds};
    if (elements >= wanted && (!above || elements < above->elements)) above = Point{elements, seconds};
  }
  if (!below || !above || above->elements > kInterpolationSpan * below->elements) return std::nullopt;
  if (above->elements == below->elements) return (below->seconds + above->seconds) / 2;
  const double share = (wanted - below->elements) / (above->elements - below->elements);
  return below->seconds + share * (above->seconds - below->seconds);
}

double TransformCosts::FromFile(const Shape& shape, const Layout& from, const Layout& to) {
  const CostKey key = KeyOf(shape, from, to);
  if (const auto known = file_.Find(key)) return *known;
  if (const auto estimated = estimates_.find(key); estimated != estimates_.end()) return estimated->second;
  if (interpolate_ && from != to) {
    if (const auto estimate = Interpolate(shape, from, to)) return estimates_[key] = *estimate;
  }
  const double seconds = measure_(shape, from, to);
  file_.Add(key, seconds);
  return seconds;
}

std::unique_ptr<CostSource> MeasuredCosts(DevicePtr device, const CostOptions& options,
                                          std::vector<std::string>* warnings) {
  auto costs = std::make_unique<Measured>(device, options);
  if (warnings) *warnings = costs->file().warnings();
  return costs;
}

}  // namespace tilesmith
