// What a trial leaves in a tuning log.
#pragma once

#include "templates/base/conv_template.h"
#include "tuner/measure/measurer.h"

namespace tilesmith {

// As of now. Who chose the config, and what for, is the caller's to say.
Record TrialRecord(const MeasureSession& session, const ConvTemplate& conv_template, const Config& config,
                   const TrialResult& result);

}  // namespace tilesmith
