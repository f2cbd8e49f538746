#include "tools/api/settings.h"
#include "tools/api/tilesmith.h"
#include "tools/cli/results_file.h"
#include "tools/quantize/quantize_model.h"

namespace tilesmith {

namespace {

std::string QuantizeTo(const std::string& output, const ModelOptions& model,
                       const QuantizeSettings& settings) {
  CheckNumbers(settings);
  QuantizeModelRequest request;
  request.model = model;
  request.model.batch = settings.batch;
  request.model.input_shapes = settings.input_shapes;
  request.machine.threads = settings.threads;
  request.output_path = output;
  request.source = {.paths = settings.calibrate, .samples = settings.samples};
  request.calibration = {.method = ParseCalibrationMethod(settings.method),
                         .percentile = settings.percentile};
  request.qdq = {.activations = ParseActivations(settings.activations),
                 .largest_weight = settings.reduce_range ? kLargestReducedWeight : kLargestWeight,
                 .keep = settings.keep,
                 .op_types = settings.op_types,
                 .keep_first = settings.keep_first,
                 .keep_last = settings.keep_last};
  request.external_data = settings.external_data;
  request.check = settings.check;
  const QuantizedModel quantized = QuantizeModel(request, SinksOf(settings));
  Report report;
  AddQuantization(report, request, quantized);
  AddOrigin(report.details(), ChosenTarget(request.machine));
  return report.ToJson();
}

}  // namespace

std::string Quantize(const std::string& model, const std::string& output, const QuantizeSettings& settings) {
  return QuantizeTo(output, OptionsOf(model), settings);
}
std::string Quantize(const ModelMemory& model, const std::string& output, const QuantizeSettings& settings) {
  return QuantizeTo(output, OptionsOf(model), settings);
}

}  // namespace tilesmith
