#include "templates/cuda_gather/template.h"

#include "templates/base/schedule_template.h"
#include "templates/cuda_gather/config.h"
#include "templates/cuda_gather/schedule.h"

namespace tilesmith {
namespace cuda_gather {
namespace {

Schedule ReadSchedule(const ConvWorkload& w, const Config& config, const Target&) {
  return MakeSchedule(w, ReadConfig(config));
}

DeviceTemplate<Schedule> Make(std::string_view name,
                              Support (*supports)(const ConvWorkload&, const Target&)) {
  return DeviceTemplate<Schedule>({.name = name,
                                   .device = kCudaDevice,
                                   .supports = supports,
                                   .preset_decides = true,
                                   .space = Space,
                                   .preset = Default,
                                   .read = ReadSchedule});
}

}  // namespace
}  // namespace cuda_gather

const ConvTemplate& CudaDepthwiseTemplate() {
  static const auto instance = cuda_gather::Make("cuda_depthwise", cuda_gather::SupportsDepthwise);
  return instance;
}

const ConvTemplate& CudaGroupedTemplate() {
  static const auto instance = cuda_gather::Make("cuda_grouped", cuda_gather::SupportsGrouped);
  return instance;
}

const ConvTemplate& CudaPortableTemplate() {
  static const auto instance = cuda_gather::Make("cuda_portable", cuda_gather::SupportsPortable);
  return instance;
}

}  // namespace tilesmith
