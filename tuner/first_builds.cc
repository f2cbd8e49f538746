#include "tuner/first_builds.h"

#include <algorithm>
#include <utility>

#include "templates/base/conv_template.h"

namespace tilesmith {
namespace {

// What is compiled does not depend on weights: zeros will do.
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
  while (threads_.size() < std::min(kAtOnce, tasks.size())) threads_.emplace_back([this] { BuildOneByOne(); });
}

FirstBuilds::~FirstBuilds() { next_ = tasks_.size(); }

void FirstBuilds::BuildOneByOne() {
  for (size_t i = next_++; i < tasks_.size(); i = next_++) {
    const NetworkTask& task = tasks_[i];
    if (task.known || task.request.workload.bytes || task.request.workload.fused()) continue;
    try {
      BuildDefaults(*device_, task.request);
    } catch (const std::exception&) {  // the trial will tell
    }
  }
}

}  // namespace tilesmith
