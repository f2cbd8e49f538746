// How tests name the faults of the worker's misbehaving template without linking it.
#pragma once

#include "tests/tuner/support/faulty_templates.h"
#include "tuner/measure/measurer.h"

namespace tilesmith {

// Sanitizers tell of faults in ways of their own.
#ifdef __SANITIZE_ADDRESS__
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

inline TrialRequest FaultRequest(Fault fault) {
  TrialRequest request;
  request.template_name = "faulty";
  request.config.Set("fault", static_cast<int64_t>(fault));
  return request;
}

}  // namespace tilesmith
