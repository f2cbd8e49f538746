#include "graph_tuner/costs/costs_timing.h"

#include <algorithm>
#include <vector>

#include "layouts/base/thread_team.h"
#include "layouts/measure/quantile.h"
#include "layouts/measure/sampling.h"
#include "layouts/producer_state.h"
#include "layouts/transform.h"

namespace tilesmith {
namespace {

constexpr int kWarmUps = 2;
constexpr SamplingPlan kSampling = {.min_samples = 3, .max_samples = 40, .seconds = 6e-3};
constexpr double kSlowSeconds = 50e-3;

// A kernel with all that it needs to run again and again.
class Run {
 public:
  Run(const Kernel& kernel, std::span<Tensor* const> inputs, Tensor& output, int threads)
      : kernel_(kernel),
        tensors_(inputs.begin(), inputs.end()),
        output_(output.output_view()),
        threads_(threads),
        scratch_(static_cast<size_t>(kernel.ScratchBytes(threads))) {
    for (const Tensor* input : inputs) inputs_.push_back(input->input_view());
    tensors_.push_back(&output);
  }

  double Once() {
    const KernelArgs args{inputs_, output_, scratch_.data()};
    double seconds = 0;
    SpinBarrier barrier(threads_);
    RunOnTeam(threads_, [&](int thread) {
      for (Tensor* tensor : tensors_) WriteAsProducer(tensor->raw(), tensor->bytes(), thread, threads_);
      barrier.Wait();
      const double begin = NowSeconds();
      RunShare(kernel_, args, thread, threads_, barrier);
      barrier.Wait();
      if (thread == 0) seconds = NowSeconds() - begin;
    });
    return seconds;
  }

 private:
  const Kernel& kernel_;
  std::vector<Tensor*> tensors_;
  const OutputView output_;
  const int threads_;
  AlignedBuffer scratch_;
  std::vector<InputView> inputs_;
};

}  // namespace

double TimeKernel(const Kernel& kernel, std::span<Tensor* const> inputs, Tensor& output, int threads) {
  Run run(kernel, inputs, output, threads);
  for (int i = 0; i < kWarmUps; ++i) {
    const double seconds = run.Once();
    if (seconds > kSlowSeconds) return seconds;
  }
  std::vector<double> samples;
  double spent = 0;
  while (kSampling.WantsMore(samples.size(), spent)) {
    samples.push_back(run.Once());
    spent += samples.back();
  }
  return LowerQuartile(std::move(samples));
}

double TimeOnce(const Kernel& kernel, std::span<Tensor* const> inputs, Tensor& output, int threads) {
  return Run(kernel, inputs, output, threads).Once();
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
