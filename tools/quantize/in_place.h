// --precision int8: a model that is quantised while it is loaded, by what `tilesmith quantize` does.
#pragma once

#include <functional>

#include "templates/device/device.h"
#include "tools/cli/args.h"
#include "tools/cli/model.h"
#include "tools/cli/progress.h"
#include "tools/cli/report.h"
#include "tools/cli/targets.h"
#include "tools/cli/tasks.h"
#include "tuner/precision.h"

namespace tilesmith {

// "--calibrate".
void DeclareCalibration(Args& args, ModelOptions* model);

// Sizes of inputs that the model leaves open, as its samples have them.
void TakeSizesOfSamples(ModelOptions* model);

// Throws Error(kUsage) for a text that is no model, but a convolution.
void RequireModelToQuantize(const ModelOptions& model);

// Calibrates the model, of several sizes of its inputs in the first, so that LoadModel quantises it; with
// minmax, all that pays. Throws as CalibrateModel and RequireModelToQuantize do.
void CalibrateInPlace(const DevicePtr& machine, const WorkSinks& sinks, ModelOptions* model);

// Throws Error(kUsage) for --calibrate with a precision that has no int8 in it.
void CheckCalibration(Precision precision, const ModelOptions& model);

// CalibrateInPlace for int8, where the model has no quantization yet, on the machine that `open` gives, which
// is not asked for otherwise; mixed's caller decides what to quantise. Throws as CheckCalibration does.
void QuantizeInPlace(Precision precision, const std::function<DevicePtr()>& open, const WorkSinks& sinks,
                     ModelOptions* model);

// The same of what tune and bench work on: a suite or a single convolution is taken in bytes, and has nothing
// to calibrate.
void QuantizeTargets(Precision precision, const std::function<DevicePtr()>& open, const WorkSinks& sinks,
                     TargetOptions* targets);

// The convolutions that the model has in bytes when it is quantised. Their sizes depend on no values: it is
// calibrated on one random sample.
std::vector<ConvTask> QuantizedTasks(ModelOptions model, const DevicePtr& machine, const WorkSinks& sinks);

// What a report says of it; of null nothing.
void AddCalibration(Report& report, const ModelQuantization* quantization);

}  // namespace tilesmith
