// The built-in networks: torchvision's architectures (mobilenet_v1 and unet: their papers') generated in code
// with seeded weights, for tuning and benchmarks without a model file. Timings do not depend on the weights'
// values.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "ops/networks/network_builder.h"

namespace tilesmith {

struct BuiltInNetwork {
  std::string_view name;  // "resnet50"
  int64_t size;           // default height and width of the input
  // Adds the network behind `input` {N, 3, H, W} and returns its output, the logits: {N, 1000}, of unet
  // {N, 2, H, W}.
  NetworkBuilder::Id (*build)(NetworkBuilder& builder, NetworkBuilder::Id input);
};

std::span<const BuiltInNetwork> BuiltInNetworks();
bool IsBuiltInNetwork(std::string_view name);

struct NetworkOptions {
  int64_t batch = 1;
  int64_t height = 0, width = 0;  // 0: the network's default
  uint64_t seed = 1;
  SizeLimits limits = {};
};

// Throws Error(kUsage) for an unknown name (naming the known ones), for sizes that are not positive, and for
// an input too small for the network, naming the node it does not reach.
Graph BuildNetwork(std::string_view name, const NetworkOptions& options = {});

// The same network as a model file lists it. Errors are BuildNetwork's.
ModelListing ListNetwork(std::string_view name, const NetworkOptions& options = {});

}  // namespace tilesmith
