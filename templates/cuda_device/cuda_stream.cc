#include "templates/cuda_device/cuda_stream.h"

#include <algorithm>
#include <iterator>

#include "templates/cuda_device/kernels.h"

namespace tilesmith::cuda {
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

}  // namespace tilesmith::cuda
