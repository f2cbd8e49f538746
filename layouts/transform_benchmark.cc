#include "layouts/transform_benchmark.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "layouts/base/thread_team.h"
#include "layouts/measure/quantile.h"
#include "layouts/measure/sampling.h"
#include "layouts/producer_state.h"
#include "layouts/transform.h"

namespace tilesmith {
namespace {

// Enough to find the fast quarter among interrupted samples; large tensors settle for fewer, and a graph has
// hundreds of transforms to ask about.
constexpr SamplingPlan kSampling = {
    .min_samples = 3, .max_samples = 100, .seconds = 0.010};  // with the tensors' allocation about 15 ms

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
        in_{nullptr, BatchBytes(shape, from)},
        out_{nullptr, BatchBytes(shape, to)},
        copy_bytes_(PaddedBytes(shape, to)),
        source_(std::max(PaddedBytes(shape, from), copy_bytes_)),
        result_(copy_bytes_) {
    in_.data = source_.data();
    out_.data = result_.data();
  }

  Samples Run(int threads) {
    samples_.transform.reserve(kSampling.max_samples);
    samples_.copy.reserve(kSampling.max_samples);
    const double begin = NowSeconds();
    bool done = false;
    SpinBarrier barrier(threads);
    FirstError error;
    RunOnTeam(threads, [&](int thread) {
      while (!done) {
        const auto transform = [&] { RunShare(kernel_, Args(), thread, threads, barrier, error); };
        const auto copy = [&] { CopyShare(thread, threads); };
        Prepare(thread, threads);
        const double transform_seconds = Time(barrier, transform);
        Prepare(thread, threads);
        const double copy_seconds = Time(barrier, copy);
        if (thread == 0) {
          samples_.transform.push_back(transform_seconds);
          samples_.copy.push_back(copy_seconds);
          done = error.raised() || !kSampling.WantsMore(samples_.copy.size(), NowSeconds() - begin);
        }
        barrier.Wait();
      }
    });
    error.Rethrow();
    return samples_;
  }

 private:
  template <typename Work>
  static double Time(SpinBarrier& barrier, const Work& work) {
    barrier.Wait();
    return SecondsOf([&] {
      work();
      barrier.Wait();
    });
  }

  KernelArgs Args() const { return {.inputs = {&in_, 1}, .output = out_, .scratch = nullptr}; }

  // A transform brings a tensor from one order into another, and so from thread to thread: timed with every
  // thread rereading its own lines it would seem 2 to 5 times as fast as it is in a network.
  void Prepare(int thread, int threads) {
    const int next = (thread + 1) % threads;
    WriteAsProducer(result_.data(), static_cast<int64_t>(result_.bytes()), next, threads);
    WriteAsProducer(source_.data(), static_cast<int64_t>(source_.bytes()), next, threads);
  }

  void CopyShare(int thread, int threads) {
    const TaskRange share = ShareOf(copy_bytes_, thread, threads);
    std::memcpy(static_cast<std::byte*>(result_.data()) + share.begin,
                static_cast<const std::byte*>(source_.data()) + share.begin, share.end - share.begin);
  }

  const Kernel& kernel_;
  InputView in_;
  OutputView out_;
  const int64_t copy_bytes_;
  AlignedBuffer source_, result_;
  Samples samples_;
};

}  // namespace

TransformTiming MeasureTransform(const Shape& shape, const Layout& from, const Layout& to, const Target& cpu,
                                 int threads) {
  if (SameMemory(shape, from, to) || ElementCount(shape) == 0) return {};
  const std::unique_ptr<Kernel> kernel = MakeTransformKernel(shape, from, to, cpu);
  const Samples samples = Sampler(*kernel, shape, from, to).Run(threads);
  return {.seconds = LowerQuartile(samples.transform), .copy_seconds = LowerQuartile(samples.copy)};
}

}  // namespace tilesmith
