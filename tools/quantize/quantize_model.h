// Writing a model with 8-bit integers, and finding out how far it is from the one with floats: what
// `tilesmith quantize` and the APIs do.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ops/qdq/qdq_model.h"
#include "tools/cli/machine.h"
#include "tools/cli/model.h"
#include "tools/cli/progress.h"
#include "tools/cli/report.h"
#include "tools/quantize/calibration_inputs.h"

namespace tilesmith {

struct QuantizeModelRequest {
  ModelOptions model;
  MachineOptions machine = {};
  std::string output_path;
  CalibrationSource source = {};
  CalibrationSettings calibration = {};
  QdqOptions qdq = {};
  bool external_data = false;  // weights go into a second file, also where one would do
  bool check = true;           // both models are run on the calibration inputs, and compared
};

// How far values are from what they should be, summed over all samples.
struct SignalError {
  double signal = 0, noise = 0;  // sums of squares
  void Add(const Tensor& value, const Tensor& expected);
  // 10 log10(signal / noise); infinite where they are the same.
  double Decibels() const;
};

struct QuantizedTensorRow {
  std::string name;
  ValueRange seen, range;  // all values; those that are covered, of its group
  TensorQuantizer quantizer;
  int64_t not_numbers = 0;
};

struct QuantizedLayerRow {
  QdqLayer layer;
  int64_t tensor = -1;                 // its output among the tensors; -1: it stays float
  std::optional<SignalError> own;      // of this layer alone, of exact inputs
  std::optional<SignalError> network;  // in the quantised network
};

struct QuantizedOutputRow {
  std::string name;
  SignalError error;
  int64_t rows = 0, agreeing = 0;  // of a classifier: whose largest value is in the same place
};

struct QuantizedModel {
  std::string network, calibrated_on;
  bool random = false;
  int64_t samples = 0;
  std::vector<QuantizedTensorRow> tensors;
  std::vector<QuantizedLayerRow> layers;
  std::vector<QuantizedOutputRow> outputs;  // that do not depend on values; none without a check
  std::vector<KeptNode> kept;
  size_t bytes_before = 0, bytes_after = 0;
};

// Nothing is written before calibration is over; the check comes behind it. Throws as ReadModel, QdqModel and
// CalibrationInputs do, Error(kUsage) for a percentile out of its range, Error(kEnvironment) when the file
// cannot be written, and Error(kInterrupted) when it is stopped, which says whether the file is there.
QuantizedModel QuantizeModel(const QuantizeModelRequest& request, const WorkSinks& sinks);

// What QuantizeModel finds out on the way to its file, without writing or checking one: on this machine,
// which must be a CPU, with the request's own left aside. Throws as it does.
ModelQuantization CalibrateModel(const QuantizeModelRequest& request, const DevicePtr& machine,
                                 const WorkSinks& sinks);

// All of it, as the command prints it.
void AddQuantization(Report& report, const QuantizeModelRequest& request, const QuantizedModel& quantized);

}  // namespace tilesmith
