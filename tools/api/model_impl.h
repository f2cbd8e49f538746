// What a model consists of, for what loads it and what runs it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "layouts/base/fork_gate.h"
#include "templates/device/device.h"
#include "tools/api/prepared_sizes.h"
#include "tools/api/tilesmith.h"

namespace tilesmith {

// Immutable but for the sizes, which more are prepared of, and of which the first may come with the first
// run.
struct Model::Impl {
  // Throws Error(kUsage) behind a fork where memory and code are on a GPU, since they are not there.
  void RequireSameProcess() const;

  DevicePtr device;
  std::unique_ptr<PreparedSizes> sizes;
  std::vector<std::string> warnings = {};
  // Until there is a first size; open ones are -1.
  std::vector<TensorInfo> declared_inputs = {}, declared_outputs = {};
  const unsigned forks = ForkCount();  // when it was loaded

  const std::vector<TensorInfo>& inputs() const {
    return sizes->first() ? sizes->first()->inputs : declared_inputs;
  }
  const std::vector<TensorInfo>& outputs() const {
    return sizes->first() ? sizes->first()->outputs : declared_outputs;
  }
};

// What a network is prepared for.
PreparedSize SizeOf(std::shared_ptr<const CompiledNetwork> network, double predicted_seconds);

// Models that are compiled networks: all that libtilesmith_run loads.
struct ModelFromFile {
  // A file of `tilesmith compile`, whose networks are the sizes that the model takes, for this CPU, which
  // TILESMITH_MAX_ISA may cap. Throws Error(kUsage) for settings that the file decides, and what CompiledFile
  // throws.
  static Model Load(const std::string& path, const LoadOptions& options);
};

}  // namespace tilesmith
