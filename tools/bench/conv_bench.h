// One convolution, ours beside oneDNN's: the same data, each side in the layouts it likes, weights packed
// beforehand, post-ops fused, a residual added in place on both sides.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "layouts/measure/duel.h"
#include "templates/base/conv_error.h"
#include "tools/bench/our_conv.h"
#include "tools/cli/machine.h"
#include "tools/onednn/onednn.h"
#include "tuner/records/record.h"

namespace tilesmith {

struct OneDnnSide {
  OneDnnAlgorithm algorithm = OneDnnAlgorithm::kDirect;
  std::string implementation;  // as oneDNN names it
  std::string layouts;         // "NHWC -> NHWC"
  double seconds = 0;
  PairedRatio ratio;  // its seconds / ours
  std::optional<ConvError> error = std::nullopt;
  // Of bytes: how far its answer is from the reference's, which ours is, if that is more than roundings
  // explain: it does not saturate before it adds a residual.
  double steps_apart = 0;
};

struct ConvBench {
  ConvWorkload workload;
  Schedule schedule;
  LayoutPair layouts;                 // ours
  double seconds = 0;                 // ours
  std::optional<ConvError> error;     // ours; unknown for fused workloads
  std::vector<OneDnnSide> sides;      // in the order direct, auto, winograd; those oneDNN can do
  std::vector<std::string> refusals;  // "winograd: ..."
  // For a fused workload: ours with one kernel after the other instead.
  double separate_seconds = 0;        // 0 where it was not asked for
  PairedRatio separate_ratio;         // those seconds / ours
  const OneDnnSide* Fastest() const;  // nullptr when there is none
  const OneDnnSide* Direct() const;   // likewise
};

// Checks that both sides agree, then lets them duel. Throws Error(kWrongAnswer) when they differ by more than
// 1e-4 of the largest output (1e-3 where Winograd's algorithm is used, whose rounding errors are larger; 3e-2
// in bf16, which oneDNN then computes and stores, too, where the CPU has instructions for it, else it is in
// f32), or when ours, of bytes, are not the reference's and not oneDNN's. `separate`, for fused workloads
// only, takes part too when it is given.
ConvBench BenchConv(const ConvWorkload& workload, const Schedule& schedule, const DevicePtr& machine,
                    const DuelOptions& options, const SeparateSchedules* separate = nullptr);

// oneDNN alone, quickly: the baseline that the tuner's progress refers to. Empty when oneDNN cannot do it.
std::vector<OneDnnSide> TimeOneDnn(const ConvWorkload& workload, const DuelOptions& options);

}  // namespace tilesmith
