// Launches one after the other on a GPU; those of a network as one CUDA graph.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "templates/cuda_device/context.h"
#include "templates/device/device.h"

namespace tilesmith::cuda {

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

}  // namespace tilesmith::cuda
