#include "templates/cuda_device/cuda_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "layouts/base/check.h"
#include "layouts/base/shared_library.h"
#include "layouts/measure/clock.h"
#include "layouts/measure/quantile.h"
#include "layouts/transform.h"
#include "ops/quantize/quantized_conv.h"
#include "templates/cpu_device/cpu_device.h"
#include "templates/cuda_device/context.h"
#include "templates/cuda_device/cudnn_library.h"
#include "templates/cuda_device/kernels.h"
#include "templates/cuda_device/op_programs.h"
#include "templates/cuda_gemm/config.h"
#include "templates/device/device.h"
#include "templates/int8/byte_conv.h"

namespace tilesmith {
namespace cuda {

// Launches one after the other on a GPU; those of a network as one CUDA graph.
class CudaStream final : public Stream {
 public:
  // `stop`, which may be null, outlives the stream.
  CudaStream(const ContextPtr& context, const StopFlag* stop);
  ~CudaStream() override;

  // Several launches that only queue work are recorded as a graph, which is kept until they are others. With
  // `seconds` each is queued by itself, between events. The stop flag is looked at before each launch, and
  // before a graph.
  void Run(std::span<const Launch> program, std::span<double> seconds) override;

  // How long a graph of these launches, which only queue work, takes behind one of the same: without what it
  // takes to begin one.
  double SecondsOfGraph(std::span<const Launch> program);

 private:
  bool IsRecorded(std::span<const Launch> program) const;
  void Record(std::span<const Launch> program);
  void LaunchGraph() const;
  void Forget() noexcept;
  void Enqueue(std::span<const Launch> program, std::span<const Event> events) const;

  const ContextPtr context_;
  const StopFlag* const stop_;
  const Queue queue_;
  std::vector<Event> events_;
  std::vector<Launch> recorded_;
  std::vector<uint64_t> recorded_ids_;  // of their kernels, which may be gone
  GraphExecHandle graph_ = nullptr;
};

namespace {

uint64_t IdOf(const Launch& launch) { return AsQueued(*launch.kernel).id(); }

// But for the kernel.
bool SameLaunch(const Launch& a, const Launch& b) {
  const auto same_input = [](const InputView& x, const InputView& y) {
    return x.data == y.data && x.batch_stride == y.batch_stride;
  };
  return a.scratch == b.scratch && a.output.data == b.output.data &&
         a.output.batch_stride == b.output.batch_stride && std::ranges::equal(a.inputs, b.inputs, same_input);
}

std::string NameOf(std::span<const Launch> program) {
  const bool alone =
      std::ranges::all_of(program, [&](const Launch& launch) { return launch.kernel == program[0].kernel; });
  return alone && !program.empty() ? AsQueued(*program[0].kernel).name() : "one of a network's kernels";
}

}  // namespace

CudaStream::CudaStream(const ContextPtr& context, const StopFlag* stop)
    : context_(context), stop_(stop), queue_(context) {}

CudaStream::~CudaStream() { Forget(); }

void CudaStream::Forget() noexcept {
  recorded_.clear();
  recorded_ids_.clear();
  if (graph_ == nullptr) return;
  context_->TryMakeCurrent();
  context_->driver().graph_exec_destroy(graph_);
  graph_ = nullptr;
}

bool CudaStream::IsRecorded(std::span<const Launch> program) const {
  return graph_ != nullptr && std::ranges::equal(program, recorded_, SameLaunch) &&
         std::ranges::equal(program, recorded_ids_, {}, IdOf);
}

void CudaStream::Record(std::span<const Launch> program) {
  Forget();
  const Driver& driver = context_->driver();
  driver.Check(driver.capture_begin(queue_.handle(), kCaptureOfThread), "recording a graph");
  GraphHandle graph = nullptr;
  try {
    Enqueue(program, {});
  } catch (...) {
    driver.capture_end(queue_.handle(), &graph);
    if (graph != nullptr) driver.graph_destroy(graph);
    throw;
  }
  driver.Check(driver.capture_end(queue_.handle(), &graph), "recording a graph");
  const int result = driver.graph_instantiate(&graph_, graph, 0);
  driver.graph_destroy(graph);
  driver.Check(result, "making a graph ready");
  recorded_.assign(program.begin(), program.end());
  std::ranges::transform(program, std::back_inserter(recorded_ids_), IdOf);
}

void CudaStream::LaunchGraph() const {
  context_->driver().Check(context_->driver().graph_launch(graph_, queue_.handle()), "launching a graph");
}

void CudaStream::Enqueue(std::span<const Launch> program, std::span<const Event> events) const {
  if (!events.empty()) events[0].Record(queue_);
  for (size_t i = 0; i < program.size(); ++i) {
    ThrowIfStopped(stop_);
    const Launch& launch = program[i];
    AsQueued(*launch.kernel).Enqueue({launch.inputs, launch.output, launch.scratch}, queue_);
    if (!events.empty()) events[i + 1].Record(queue_);
  }
}

void CudaStream::Run(std::span<const Launch> program, std::span<double> seconds) {
  context_->MakeCurrent();
  ThrowIfStopped(stop_);
  if (seconds.empty()) {
    const bool queues = std::ranges::all_of(
        program, [](const Launch& launch) { return AsQueued(*launch.kernel).OnlyQueues(); });
    if (queues && program.size() > 1) {
      if (!IsRecorded(program)) Record(program);
      LaunchGraph();
    } else {
      Enqueue(program, {});
    }
    queue_.Wait(NameOf(program));
    return;
  }
  while (events_.size() <= program.size()) events_.emplace_back(context_);
  const auto events = std::span<const Event>(events_).first(program.size() + 1);
  Enqueue(program, events);
  queue_.Wait(NameOf(program));
  for (size_t i = 0; i < program.size(); ++i) seconds[i] = events[i + 1].SecondsSince(events[i]);
}

double CudaStream::SecondsOfGraph(std::span<const Launch> program) {
  context_->MakeCurrent();
  while (events_.size() < 2) events_.emplace_back(context_);
  if (!IsRecorded(program)) Record(program);
  LaunchGraph();
  events_[0].Record(queue_);
  LaunchGraph();
  events_[1].Record(queue_);
  queue_.Wait(NameOf(program));
  return events_[1].SecondsSince(events_[0]);
}

ClockWatch::ClockWatch(const std::string& bus_id) {
  void* const library = OpenLibrary("libnvidia-ml.so.1");
  if (library == nullptr) return;
  int (*init)() = nullptr;
  int (*find)(const char*, void**) = nullptr;
  if (!FindFunction(library, "nvmlInit_v2", init) ||
      !FindFunction(library, "nvmlDeviceGetHandleByPciBusId_v2", find) ||
      !FindFunction(library, "nvmlDeviceGetClockInfo", clock_))
    return;
  if (init() != 0 || find(bus_id.c_str(), &device_) != 0) device_ = nullptr;
}

double ClockWatch::Megahertz() const {
  constexpr int kOfMultiprocessors = 1;
  unsigned megahertz = 0;
  if (device_ == nullptr || clock_(device_, kOfMultiprocessors, &megahertz) != 0) return 0;
  return megahertz;
}

bool ClockWatch::IsFull() {
  constexpr double kNearly = 0.97;
  const double now = Megahertz();
  fastest_ = std::max(fastest_, now);
  return now >= kNearly * fastest_;
}

}  // namespace cuda

using cuda::Address;
using cuda::AsQueued;
using cuda::Queued;

Target DetectCuda() { return cuda::OpenContext()->target(); }

// What times launches. One thread at a time.
struct CudaDevice::Timing {
  explicit Timing(const cuda::ContextPtr& context)
      : queue(context), graphs(context, nullptr), begin(context), end(context), clock(context->bus_id()) {}

  void Evict() {
    const auto bytes = static_cast<size_t>(2 * std::max<int64_t>(queue.context().target().l2_bytes, 1));
    if (flushed.bytes == 0) flushed = cuda::AllocateZeros(cuda::OpenContext(), bytes);
    queue.driver().Check(queue.driver().fill(Address(flushed.data.get()), 1, bytes, queue.handle()),
                         "evicting the L2");
  }

  double SecondsOfOne(const Queued& kernel, const KernelArgs& args) {
    begin.Record(queue);
    kernel.Enqueue(args, queue);
    end.Record(queue);
    queue.Wait(kernel.name());
    return end.SecondsSince(begin);
  }

  // The mean of enough of them that beginning and ending do not matter.
  double SecondsOfMany(const Kernel& kernel, const KernelArgs& args) {
    constexpr double kTogether = 200e-6, kMaxRuns = 32;
    const double once = SecondsOfOne(AsQueued(kernel), args);
    const auto runs = static_cast<size_t>(std::clamp(kTogether / std::max(once, 1e-7), 1.0, kMaxRuns));
    if (runs == 1) return once;
    const Launch launch = {&kernel, {args.inputs.begin(), args.inputs.end()}, args.output, args.scratch};
    const std::vector<Launch> program(runs, launch);
    return graphs.SecondsOfGraph(program) / static_cast<double>(runs);
  }

  double Seconds(const Kernel& kernel, const KernelArgs& args) {
    queue.context().MakeCurrent();
    const Queued& queued = AsQueued(kernel);
    if (!queued.OnlyQueues()) return SecondsOf([&] { queued.Enqueue(args, queue); });
    const bool cold = std::exchange(evicted, false);
    constexpr int kAttempts = 3;
    double seconds = 0;
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      if (cold && attempt > 0) Evict();
      seconds = cold ? SecondsOfOne(queued, args) : SecondsOfMany(kernel, args);
      if (clock.IsFull()) break;
    }
    return seconds;
  }

  const cuda::Queue queue;
  cuda::CudaStream graphs;
  const cuda::Event begin, end;
  cuda::ClockWatch clock;
  DeviceMemory flushed;
  bool evicted = false;  // and nothing has run since
};

// What copies between the process's memory and the device's: through pinned memory, which the GPU reaches by
// itself, in pieces.
struct CudaDevice::Transfers {
  static constexpr size_t kPiece = size_t{4} << 20;

  explicit Transfers(const cuda::ContextPtr& context) : queue(context), pinned(context, kPiece) {}

  void Upload(const void* host, void* device, size_t bytes) {
    const std::lock_guard lock(mutex);
    ForEachPiece(bytes, [&](size_t at, size_t size) {
      std::memcpy(pinned.data(), static_cast<const std::byte*>(host) + at, size);
      queue.driver().Check(queue.driver().copy_in(Address(device) + at, pinned.data(), size, queue.handle()),
                           "an upload");
      queue.Wait("an upload");
    });
  }
  void Download(const void* device, void* host, size_t bytes) {
    const std::lock_guard lock(mutex);
    ForEachPiece(bytes, [&](size_t at, size_t size) {
      queue.driver().Check(queue.driver().copy_out(pinned.data(), Address(device) + at, size, queue.handle()),
                           "a download");
      queue.Wait("a download");
      std::memcpy(static_cast<std::byte*>(host) + at, pinned.data(), size);
    });
  }

 private:
  template <typename Body>
  void ForEachPiece(size_t bytes, const Body& body) const {
    queue.context().MakeCurrent();
    for (size_t at = 0; at < bytes; at += kPiece) body(at, std::min(kPiece, bytes - at));
  }

  std::mutex mutex;
  const cuda::Queue queue;
  const cuda::HostBuffer pinned;
};

CudaDevice::CudaDevice(const Target& target)
    : Device(target, 1),
      context_(cuda::OpenContext()),
      transfers_(std::make_unique<Transfers>(context_)),
      timing_(std::make_unique<Timing>(context_)) {
  Target here = context_->target();
  here.tf32 = target.tf32;  // which any of them can
  if (SameMachine(target, here)) return;
  throw Error(ErrorCode::kEnvironment,
              fmt::format("the first GPU is {} ({}), asked for {} ({})", context_->target().model,
                          context_->target().compute, target.model, target.compute));
}

CudaDevice::~CudaDevice() = default;

DeviceMemory CudaDevice::Allocate(size_t bytes) const { return cuda::AllocateZeros(context_, bytes); }

void CudaDevice::Upload(const void* host, void* device, size_t bytes) const {
  transfers_->Upload(host, device, bytes);
}

void CudaDevice::Download(const void* device, void* host, size_t bytes) const {
  transfers_->Download(device, host, bytes);
}

std::unique_ptr<Kernel> CudaDevice::BuildOp(const Op& op, const KernelRequest& request) const {
  if (const auto* conv = dynamic_cast<const QuantizedConvOp*>(&op)) {
    if (const auto untuned = UntunedByteConv(conv->workload(), request.layout, target()))
      return BuildConv(*untuned->conv_template, conv->workload(), untuned->config, {.quantized = conv});
  }
  if (const auto program = cuda::ProgramOf(op, request)) return cuda::LoadOp(context_, *program);
  KernelRequest here = request;
  here.cpu = DetectCpu();
  std::vector<Layout> layouts;
  layouts.reserve(request.inputs.size());
  for (size_t slot = 0; slot < request.inputs.size(); ++slot)
    layouts.push_back(request.layout.WithType(request.InputType(slot)));
  return cuda::RunInProcess(context_, {std::string(op.Type()), BuildHostOp(op, here), request.inputs, layouts,
                                       request.output, request.layout});
}

std::unique_ptr<ConvKernel> CudaDevice::BuildConv(const ConvTemplate& conv_template,
                                                  const ConvWorkload& workload, const Config& config,
                                                  const ConvWeights& weights) const {
  std::string name =
      fmt::format("{} {} of {}", conv_template.Name(), config.ToString(), WorkloadToString(workload));
  std::unique_ptr<ConvKernel> built = conv_template.Build(workload, config, target(), weights);
  if (dynamic_cast<CudnnConv*>(built.get()) != nullptr) {
    std::unique_ptr<CudnnConv> cudnn(static_cast<CudnnConv*>(built.release()));
    return cuda::LoadCudnnConv(context_, std::move(cudnn), std::move(name));
  }
  return cuda::LoadConv(context_, std::move(built), std::move(name));
}

void CudaDevice::BuildAhead(const ConvWorkload& workload,
                            std::span<const std::pair<const ConvTemplate*, Config>> builds,
                            const ConvWeights& weights) const {
  cuda::CompileAhead(context_, builds.size(), [&](size_t i) {
    const auto& [conv_template, config] = builds[i];
    const auto built = conv_template->Build(workload, config, target(), weights);
    const auto* const conv = dynamic_cast<const CudaConv*>(built.get());
    return conv == nullptr ? std::string() : conv->program().text;
  });
}

std::unique_ptr<Kernel> CudaDevice::BuildTransform(const Shape& shape, const Layout& from,
                                                   const Layout& to) const {
  if (const auto program = cuda::TransformProgram(shape, from, to)) return cuda::LoadOp(context_, *program);
  return cuda::RunInProcess(context_, {fmt::format("{} -> {}", from.ToString(), to.ToString()),
                                       MakeTransformKernel(shape, from, to, DetectCpu()),
                                       {shape},
                                       {from},
                                       shape,
                                       to});
}

std::unique_ptr<Kernel> CudaDevice::BuildCopy(int64_t images, int64_t image_bytes) const {
  return cuda::MakeDeviceCopy(images, image_bytes);
}

bool CudaDevice::RunsInProcess(const Kernel& kernel) const { return !AsQueued(kernel).OnlyQueues(); }

std::unique_ptr<Stream> CudaDevice::NewStream(const StopFlag* stop) const {
  return std::make_unique<cuda::CudaStream>(context_, stop);
}

double CudaDevice::Time(const Kernel& kernel, const KernelArgs& args) const {
  const std::lock_guard lock(mutex_);
  return timing_->Seconds(kernel, args);
}

std::function<double()> CudaDevice::AfterProducers(const Kernel& kernel, std::span<Tensor* const> inputs,
                                                   Tensor& output) const {
  struct Brought {
    std::vector<DeviceMemory> memory;
    std::vector<InputView> inputs;
    OutputView output;
    DeviceMemory scratch;
  };
  const auto brought = std::make_shared<Brought>();
  for (const Tensor* input : inputs) {
    const DeviceMemory& there = brought->memory.emplace_back(Allocate(static_cast<size_t>(input->bytes())));
    Upload(input->raw(), there.data.get(), there.bytes);
    brought->inputs.push_back({there.data.get(), input->input_view().batch_stride});
  }
  const DeviceMemory& result = brought->memory.emplace_back(Allocate(static_cast<size_t>(output.bytes())));
  brought->output = {result.data.get(), output.output_view().batch_stride};
  brought->scratch = Allocate(static_cast<size_t>(kernel.ScratchBytes(threads())));
  return [this, &kernel, brought] {
    return Time(kernel, {brought->inputs, brought->output, brought->scratch.data.get()});
  };
}

double CudaDevice::TimeTransform(const Shape& shape, const Layout& from, const Layout& to) const {
  constexpr int kSamples = 5;
  Tensor source(shape, from), result(shape, to);
  Tensor* const inputs[] = {&source};
  const std::unique_ptr<Kernel> kernel = BuildTransform(shape, from, to);
  const std::function<double()> once = AfterProducers(*kernel, inputs, result);
  once();
  std::vector<double> samples(kSamples);
  std::ranges::generate(samples, once);
  return LowerQuartile(std::move(samples));
}

void CudaDevice::Evict(std::span<const std::byte>) const {
  const std::lock_guard lock(mutex_);
  context_->MakeCurrent();
  timing_->Evict();
  timing_->evicted = true;
}

}  // namespace tilesmith
