// The worker's side of the protocol.
#pragma once

#include "tuner/measure/transport.h"
#include "tuner/measure/trial_runner.h"

namespace tilesmith {

// Serves trials (protocol.h) on this machine, as the device that `target` says it is, until the transport
// ends; returns the process's exit code. It changes the process's affinity and memory limit. Throws
// DeviceLost: the process is to end, which costs its tuner that trial.
int ServeTrials(Transport& transport, const Target& target, const TemplateFinder& find);

// The same on lines. For a process of its own: an alarm is its last resort against hanging orphaned.
int MeasureWorkerMain(int in_fd, int out_fd, const Target& target,
                      const TemplateFinder& find = FindConvTemplate);

}  // namespace tilesmith
