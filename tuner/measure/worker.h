// The other end of ProcessMeasurer.
#pragma once

#include "tuner/measure/trial_runner.h"

namespace tilesmith {

// Serves trials (protocol.h) until `in_fd` ends; returns the process's exit code. For a process of its own:
// it changes the process's affinity and memory limit, and sets an alarm as a last resort against hanging
// orphaned.
int MeasureWorkerMain(int in_fd, int out_fd, const TemplateFinder& find = FindConvTemplate);

}  // namespace tilesmith
