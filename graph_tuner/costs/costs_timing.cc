#include "graph_tuner/costs/costs_timing.h"

#include <functional>
#include <vector>

#include "layouts/measure/quantile.h"
#include "layouts/measure/sampling.h"
#include "layouts/transform.h"

namespace tilesmith {
namespace {

constexpr int kWarmUps = 2;
constexpr SamplingPlan kSampling = {.min_samples = 3, .max_samples = 40, .seconds = 6e-3};
constexpr double kSlowSeconds = 50e-3;

}  // namespace

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

double TimeOnce(const Device& device, const Kernel& kernel, std::span<Tensor* const> inputs, Tensor& output) {
  return device.AfterProducers(kernel, inputs, output)();
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

}  // namespace tilesmith
