// One convolution, ours beside oneDNN's: the same data, each side in the layouts it likes, weights packed
// beforehand, post-ops fused, a residual added in place on both sides.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ops/onednn.h"
#include "templates/conv_error.h"
#include "tools/bench/duel.h"
#include "tools/cli/machine.h"
#include "tuner/record.h"

namespace tilesmith {

// How we compute it.
struct Schedule {
  std::string template_name;
  Config config;
  std::string origin;  // "plan", "log", "default"
};

struct OneDnnSide {
  OneDnnAlgorithm algorithm = OneDnnAlgorithm::kDirect;
  std::string implementation;  // as oneDNN names it
  std::string layouts;         // "NHWC -> NHWC"
  double seconds = 0;
  PairedRatio ratio;  // its seconds / ours
  std::optional<ConvError> error = std::nullopt;
};

struct ConvBench {
  ConvWorkload workload;
  Schedule schedule;
  LayoutPair layouts;                 // ours
  double seconds = 0;                 // ours
  std::optional<ConvError> error;     // ours; unknown for fused workloads
  std::vector<OneDnnSide> sides;      // in the order direct, auto, winograd; those oneDNN can do
  std::vector<std::string> refusals;  // "winograd: ..."
  const OneDnnSide* Fastest() const;  // nullptr when there is none
  const OneDnnSide* Direct() const;   // likewise
};

// Checks that both sides agree, then lets them duel. Throws Error(kWrongAnswer) when they differ by more than
// 1e-4 of the largest output (1e-3 where Winograd's algorithm is used, whose rounding errors are larger).
ConvBench BenchConv(const ConvWorkload& workload, const Schedule& schedule, const Machine& machine,
                    const DuelOptions& options);

// oneDNN alone, quickly: the baseline that the tuner's progress refers to. Empty when oneDNN cannot do it.
std::vector<OneDnnSide> TimeOneDnn(const ConvWorkload& workload, const DuelOptions& options);

// The schedule without tuning: the default of the first template that supports the workload.
Schedule DefaultSchedule(const ConvWorkload& workload, const CpuInfo& cpu);

}  // namespace tilesmith
