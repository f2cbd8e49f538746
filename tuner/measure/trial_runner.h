// Runs trials inside this process: what a measuring worker does between two messages.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "templates/device/device.h"
#include "tuner/measure/measurer.h"
#include "tuner/measure/own_cores.h"
#include "tuner/measure/problem_data.h"
#include "tuner/measure/trial_memory.h"

namespace tilesmith {

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

}  // namespace tilesmith
