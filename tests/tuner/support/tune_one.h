// One task tuned as `tilesmith tune WORKLOAD` tunes it.
#pragma once

#include "tuner/network_tuner.h"

namespace tilesmith {

inline NetworkResult TuneAlone(const TuneRequest& request, int trials, Measurer& measurer,
                               const NetworkSinks& sinks = {}) {
  NetworkTask task;
  task.request = request;
  return TuneNetwork({task}, {.trials = trials, .most_share = 1, .stop_when_flat = false}, measurer, sinks);
}

inline TuneResult TuneOne(const TuneRequest& request, int trials, Measurer& measurer,
                          const NetworkSinks& sinks = {}) {
  return TuneAlone(request, trials, measurer, sinks).tasks[0];
}

}  // namespace tilesmith
