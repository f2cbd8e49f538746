// The worker's side of the protocol.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "layouts/measure/core_placement.h"
#include "templates/device/device.h"
#include "tuner/measure/measurer.h"
#include "tuner/measure/problem_data.h"
#include "tuner/measure/transport.h"

namespace tilesmith {

// Keeps measurements out of the moments in which the threads of the team share a core, with each other or
// with somebody else's (layouts/measure/core_placement.h): what computes takes up to twice as long then. On
// hosts that do this it lasts a tenth of a second or so. Source: original.
//
// One thread at a time; of one thread nothing is seen.
class OwnCores {
 public:
  explicit OwnCores(int threads) : threads_(threads) {}

  // Returns when the cores compute as fast as they have been seen to; after 150 ms anyway, and what they do
  // then is what is expected from now on.
  void Await();
  // Whether they still do.
  bool AreKept();

 private:
  int threads_;
  CorePlacement fastest_;  // of those seen; unknown: nothing seen yet
};

// Trials work on tensors in memory that the device's kernels reach: the process's own, or copies of it there.
//
// One thread at a time.
class TrialMemory {
 public:
  explicit TrialMemory(DevicePtr device) : device_(std::move(device)) {}

  // Brought there the first time; the tensor outlives this and does not change.
  InputView Input(const Tensor& tensor);
  // As it is now, guards included. The output outlives this.
  OutputView Output(GuardedOutput& output);
  // Brings what a kernel has made of it, guards included. Precondition: Output was called.
  void BringBack(GuardedOutput& output) const;
  // At least so many bytes, the same for all trials.
  void* Scratch(size_t bytes);
  int64_t bytes() const;

 private:
  const DevicePtr device_;
  std::map<const void*, DeviceMemory> brought_;  // by where it lies in the process; empty if that is enough
  DeviceMemory scratch_;
};

// Runs trials inside this process: what a measuring worker does between two messages.
//
// Finds a template by name; throws Error(kUsage) when there is none.
using TemplateFinder = std::function<const ConvTemplate&(std::string_view name)>;

// Allocates the session's data and makes the reference answers on construction; pins the team when the
// conditions say so. One thread at a time.
class TrialRunner {
 public:
  TrialRunner(const MeasureSession& session, TemplateFinder find);

  // Takes the threads back after other runners had them.
  void Continue();
  // Size of the data it holds.
  int64_t bytes() const { return data_.bytes() + memory_.bytes(); }

  // Builds ahead what Run will be asked for (Device::BuildAhead).
  void Prepare(std::span<const TrialRequest> requests);
  // Builds, checks the answer, and times one config. `before_run` is called once, when building is over and
  // running begins. Exceptions of the build become statuses; a crash or hang is the caller's to survive.
  // Throws DeviceLost, after which no trial runs in this process.
  TrialResult Run(const TrialRequest& request, const std::function<void()>& before_run);

 private:
  std::string WhyInvalid(const ConvTemplate& conv_template, const Config& config);
  std::unique_ptr<ConvKernel> Build(const TrialRequest& request, LayoutPair& layouts, TrialResult& result);
  double RunOnce(const ConvKernel& kernel, const KernelArgs& args, bool cold);
  // Again, if the threads came to share a core meanwhile.
  void TakeSamplesOnOwnCores(const ConvKernel& kernel, const KernelArgs& args, double stop_above,
                             TrialResult& result);
  void TakeSamples(const ConvKernel& kernel, const KernelArgs& args, double stop_above, TrialResult& result);

  MeasureSession session_;
  DevicePtr device_;
  TemplateFinder find_;
  ProblemData data_;
  std::map<const ConvTemplate*, ConfigSpace> spaces_;
  TrialMemory memory_;
  OwnCores cores_;
};

// Serves trials (protocol.h) on this machine, as the device that `target` says it is, until the transport
// ends; returns the process's exit code. It changes the process's affinity and memory limit. Throws
// DeviceLost: the process is to end, which costs its tuner that trial.
int ServeTrials(Transport& transport, const Target& target, const TemplateFinder& find);

// The same on lines. For a process of its own: an alarm is its last resort against hanging orphaned.
int MeasureWorkerMain(int in_fd, int out_fd, const Target& target,
                      const TemplateFinder& find = FindConvTemplate);

}  // namespace tilesmith
