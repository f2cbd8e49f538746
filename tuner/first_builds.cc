#include "tuner/first_builds.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "templates/base/conv_template.h"

namespace tilesmith {
namespace {

// Code does not depend on weights: zeros will do.
void BuildDefaults(const Device& device, const TuneRequest& request) {
  const ConvWorkload& w = request.workload;
  std::vector<std::pair<const ConvTemplate*, Config>> builds;
  builds.reserve(request.templates.size());
  for (const ConvTemplate* conv_template : request.templates)
    builds.emplace_back(conv_template, conv_template->Default(w, request.cpu));
  const std::vector<float> weights(w.product ? 0 : static_cast<size_t>(ElementCount(w.weights_shape())));
  const std::vector<float> bias(static_cast<size_t>(w.oc));
  device.BuildAhead(w, builds, {.weights = weights.data(), .bias = bias.data()});
}

}  // namespace

FirstBuilds::FirstBuilds(DevicePtr device, const std::vector<NetworkTask>& tasks)
    : device_(std::move(device)), tasks_(tasks) {
  constexpr size_t kAtOnce = 4;  // tasks, each by as many threads as it has templates
  if (device_->target().device == kCpuDevice) return;
  while (threads_.size() < std::min(kAtOnce, tasks.size()))
    threads_.emplace_back([this] { BuildOneByOne(); });
}

FirstBuilds::~FirstBuilds() { next_ = tasks_.size(); }

// At the lowest weight: trials are measured beside it. Threads that it starts have that weight as well.
void FirstBuilds::BuildOneByOne() {
  constexpr int kLowest = 19;
  setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kLowest);
  for (size_t i = next_++; i < tasks_.size(); i = next_++) {
    const NetworkTask& task = tasks_[i];
    const TuneRequest& request = task.request;
    if (task.known || !request.resume.empty() || request.workload.bytes || request.workload.fused()) continue;
    try {
      BuildDefaults(*device_, request);
    } catch (const std::exception&) {  // the trial will tell
    }
  }
}

}  // namespace tilesmith
