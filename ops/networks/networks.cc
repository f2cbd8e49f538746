#include "ops/networks/networks.h"

#include <algorithm>

#include "layouts/base/check.h"
#include "ops/networks/families.h"

namespace tilesmith {
namespace {

constexpr int64_t kImageChannels = 3;

constexpr BuiltInNetwork kNetworks[] = {
    {"resnet18", 224, BuildResnet18},
    {"resnet34", 224, BuildResnet34},
    {"resnet50", 224, BuildResnet50},
    {"resnet101", 224, BuildResnet101},
    {"vgg16", 224, BuildVgg16},
    {"vgg19", 224, BuildVgg19},
    {"mobilenet_v1", 224, BuildMobilenetV1},
    {"mobilenet_v2", 224, BuildMobilenetV2},
    {"squeezenet1_1", 224, BuildSqueezenet11},
    {"densenet121", 224, BuildDensenet121},
    {"inception_v3", 299, BuildInceptionV3},
    {"unet", 256, BuildUnet},
};

const BuiltInNetwork* FindNetwork(std::string_view name) {
  const auto* found = std::find_if(std::begin(kNetworks), std::end(kNetworks),
                                   [&](const BuiltInNetwork& network) { return network.name == name; });
  return found == std::end(kNetworks) ? nullptr : found;
}

std::string KnownNames() {
  std::string names;
  for (const BuiltInNetwork& network : kNetworks) {
    names += (names.empty() ? "" : ", ") + std::string(network.name);
  }
  return names;
}

void CheckPositive(std::string_view network, std::string_view what, int64_t value) {
  if (value > 0) return;
  throw Error(ErrorCode::kUsage, fmt::format("network {}: {} {} is not positive", network, what, value));
}

Graph Build(std::string_view name, const NetworkOptions& options, ModelListing* listing) {
  const BuiltInNetwork* network = FindNetwork(name);
  if (network == nullptr) {
    throw Error(ErrorCode::kUsage, fmt::format("unknown network \"{}\" (known: {})", name, KnownNames()));
  }
  const int64_t height = options.height == 0 ? network->size : options.height;
  const int64_t width = options.width == 0 ? network->size : options.width;
  CheckPositive(name, "batch", options.batch);
  CheckPositive(name, "height", height);
  CheckPositive(name, "width", width);
  NetworkBuilder builder{std::string(name), options.seed, listing, options.limits};
  try {
    const auto input = builder.Input("input", {options.batch, kImageChannels, height, width});
    return builder.Finish(network->build(builder, input));
  } catch (const LimitError& error) {
    throw LimitError(fmt::format("network {}: {}", name, error.what()));
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kBadModel) throw;
    throw Error(ErrorCode::kUsage,
                fmt::format("network {} cannot take a {}x{} input: {}", name, height, width, error.what()));
  }
}

}  // namespace

std::span<const BuiltInNetwork> BuiltInNetworks() { return kNetworks; }

bool IsBuiltInNetwork(std::string_view name) { return FindNetwork(name) != nullptr; }

Graph BuildNetwork(std::string_view name, const NetworkOptions& options) {
  return Build(name, options, nullptr);
}

ModelListing ListNetwork(std::string_view name, const NetworkOptions& options) {
  ModelListing listing;
  Build(name, options, &listing);
  return listing;
}

}  // namespace tilesmith
