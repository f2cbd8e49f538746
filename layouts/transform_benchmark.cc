#include "layouts/transform_benchmark.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <vector>

#include "layouts/base/quantile.h"
#include "layouts/base/thread_team.h"
#include "layouts/producer_state.h"
#include "layouts/transform.h"

namespace tilesmith {
namespace {

using Clock = std::chrono::steady_clock;

// Enough to find the fast quarter among interrupted samples; large tensors settle for fewer, and a graph has
// hundreds of transforms to ask about.
constexpr int kMinSamples = 3;
constexpr int kMaxSamples = 100;
constexpr double kBudgetSeconds = 0.010;  // for sampling; with the tensors' allocation about 15 ms

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

struct Samples {
  std::vector<double> transform, copy;
};

// One parallel region takes all samples, as the executor runs all nodes in one. Each sample starts as a node
// does after its producer: the source has just been written and the result's memory used for something else
// (producer_state.h), and all threads have met at a barrier. It ends when all have met again. Transform and
// memcpy alternate, so that both see the same weather.
class Sampler {
 public:
  Sampler(const Kernel& kernel, const Shape& shape, const Layout& from, const Layout& to)
      : kernel_(kernel),
        in_{nullptr, BatchStride(shape, from)},
        out_{nullptr, BatchStride(shape, to)},
        copy_floats_(PaddedElementCount(shape, to)),
        source_(std::max(PaddedElementCount(shape, from), copy_floats_) * sizeof(float)),
        result_(copy_floats_ * sizeof(float)) {
    in_.data = source_.floats();
    out_.data = result_.floats();
  }

  Samples Run(int threads) {
    samples_.transform.reserve(kMaxSamples);
    samples_.copy.reserve(kMaxSamples);
    const Clock::time_point start = Clock::now();
    bool done = false;
    SpinBarrier barrier(threads);
    RunOnTeam(threads, [&](int thread) {
      for (int sample = 0; !done; ++sample) {
        const auto transform = [&] { RunShare(kernel_, Args(), thread, threads, barrier); };
        const auto copy = [&] { CopyShare(thread, threads); };
        Prepare(thread, threads);
        const double transform_seconds = Time(barrier, transform);
        Prepare(thread, threads);
        const double copy_seconds = Time(barrier, copy);
        if (thread == 0) {
          samples_.transform.push_back(transform_seconds);
          samples_.copy.push_back(copy_seconds);
          const int taken = sample + 1;
          done = taken == kMaxSamples || (taken >= kMinSamples && SecondsSince(start) > kBudgetSeconds);
        }
        barrier.Wait();
      }
    });
    return samples_;
  }

 private:
  template <typename Work>
  static double Time(SpinBarrier& barrier, const Work& work) {
    barrier.Wait();
    const Clock::time_point start = Clock::now();
    work();
    barrier.Wait();
    return SecondsSince(start);
  }

  KernelArgs Args() const { return {.inputs = {&in_, 1}, .output = out_, .scratch = nullptr}; }

  void Prepare(int thread, int threads) {
    WriteAsProducer(result_.floats(), static_cast<int64_t>(result_.bytes() / sizeof(float)), thread, threads);
    WriteAsProducer(source_.floats(), static_cast<int64_t>(source_.bytes() / sizeof(float)), thread, threads);
  }

  void CopyShare(int thread, int threads) {
    const TaskRange share = ShareOf(copy_floats_, thread, threads);
    std::memcpy(result_.floats() + share.begin, source_.floats() + share.begin,
                (share.end - share.begin) * sizeof(float));
  }

  const Kernel& kernel_;
  InputView in_;
  OutputView out_;
  const int64_t copy_floats_;
  AlignedBuffer source_, result_;
  Samples samples_;
};

}  // namespace

TransformTiming MeasureTransform(const Shape& shape, const Layout& from, const Layout& to, const CpuInfo& cpu,
                                 int threads) {
  if (SameMemory(shape, from, to) || ElementCount(shape) == 0) return {};
  const std::unique_ptr<Kernel> kernel = MakeTransformKernel(shape, from, to, cpu);
  const Samples samples = Sampler(*kernel, shape, from, to).Run(threads);
  return {.seconds = LowerQuartile(samples.transform), .copy_seconds = LowerQuartile(samples.copy)};
}

}  // namespace tilesmith
