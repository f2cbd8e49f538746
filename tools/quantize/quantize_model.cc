#include "tools/quantize/quantize_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "graph_tuner/check/output_errors.h"
#include "graph_tuner/planner/tensor_runner.h"
#include "graph_tuner/planner/work.h"
#include "layouts/base/error.h"
#include "layouts/base/settings.h"
#include "layouts/base/text_file.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/output_file.h"

namespace tilesmith {
namespace {

std::span<const float> FloatsOf(const Tensor& tensor) {
  return {tensor.floats(), static_cast<size_t>(tensor.size())};
}

template <typename Row>
std::vector<std::string> NamesOf(const std::vector<Row>& rows) {
  std::vector<std::string> names;
  names.reserve(rows.size());
  for (const Row& row : rows) names.push_back(row.name);
  return names;
}

class ModelQuantizer {
 public:
  ModelQuantizer(const QuantizeModelRequest& request, DevicePtr machine, const WorkSinks& sinks)
      : request_(request),
        sinks_(sinks),
        progress_(sinks, 0),
        machine_(std::move(machine)),
        inputs_(request.source),
        file_(ReadModel(WithOpenShapes(request.model, inputs_))),
        model_(file_, file_.source, request.qdq) {
    result_.network = file_.source;
    result_.calibrated_on = inputs_.description();
    result_.random = inputs_.random();
    result_.bytes_before = static_cast<size_t>(model_.bytes());
    Widen(file_, file_.source);
  }

  QuantizedModel Quantize() {
    const PinnedTeam team(machine_);
    Calibrate();
    const DataPlacement placement = PlacementBeside(request_.output_path, request_.external_data);
    const QdqFile written = model_.Write(quantizers_, Metadata(), placement);
    result_.bytes_after = written.bytes.size();
    if (written.parts) result_.bytes_after += static_cast<size_t>(written.parts->Size(placement.location));
    result_.kept = model_.kept();
    TakeLayers(written);
    WriteModel(request_.output_path, written, placement);
    if (request_.check && !UnlessInterrupted([&] { Check(); })) {
      throw Error(
          ErrorCode::kInterrupted,
          fmt::format("interrupted; {} is written, what it is worth is not known", request_.output_path));
    }
    return std::move(result_);
  }

  ModelQuantization Calibration() {
    const PinnedTeam team(machine_);
    Calibrate();
    ModelQuantization found = {.model_hash = model_.hash(),
                               .options = request_.qdq,
                               .unknown = model_.unknown(),
                               .tensors = {},
                               .calibration = CalibrationText(),
                               .random_inputs = inputs_.random()};
    for (const QuantizedTensorRow& tensor : result_.tensors) found.tensors[tensor.name] = tensor.quantizer;
    return found;
  }

 private:
  static ModelOptions WithOpenShapes(ModelOptions options, const CalibrationInputs& inputs) {
    for (auto& [name, shape] : inputs.OpenShapes()) options.open_shapes.emplace(name, shape);
    return options;
  }

  TensorRunner Runner(const ModelView& model, const std::vector<std::string>& tensors) const {
    return {OnnxFile::Parse(model, file_.source, file_.import.limits),
            file_.source,
            tensors,
            file_.import,
            machine_,
            sinks_.stop};
  }

  int PassesPerSample() const {
    return 1 + (request_.calibration.method != CalibrationMethod::kMinMax) + (request_.check ? 2 : 0);
  }

  // Runs all samples; `look` sees the runner behind each.
  void RunAll(TensorRunner& runner, const std::string& what, int passes_behind,
              const std::function<void()>& look) {
    int64_t done = 0;
    const Graph first = runner.graph();  // the samples' sizes are told by it, whatever the runner's become
    inputs_.ForEach(first, [&](const std::vector<Tensor>& inputs) {
      const int64_t expected = std::max(inputs_.ExpectedCount(), done + 1);
      progress_.Expect(
          static_cast<int>(std::min<int64_t>(expected - done + passes_behind * expected, 1 << 30)));
      progress_.Begin(fmt::format("{}: sample {}/{}", what, ++done, expected));
      runner.Run(inputs);
      look();
    });
  }

  // Tensors whose values cannot be had, or are no floats, leave the plan.
  TensorRunner PrepareRunner() {
    while (true) {
      const std::vector<std::string> names = NamesOf(model_.tensors());
      TensorRunner runner = Runner(file_, names);
      std::set<std::string> late, other;
      for (size_t i = 0; i < names.size(); ++i) {
        if (!runner.Has(i)) {
          late.insert(names[i]);
        } else if (runner.TypeOf(i) != DataType::kF32) {
          other.insert(names[i]);
        }
      }
      if (late.empty() && other.empty()) return runner;
      if (!late.empty()) model_.KeepReadersOf(late, "sizes in front of it depend on values");
      if (!other.empty()) model_.KeepReadersOf(other, "its tensors are not float32");
    }
  }

  void Calibrate() {
    progress_.Expect(
        static_cast<int>(std::min<int64_t>(inputs_.ExpectedCount() * PassesPerSample(), 1 << 30)));
    TensorRunner runner = PrepareRunner();
    const std::vector<QdqTensor>& tensors = model_.tensors();
    std::vector<ValueEnds> seen(tensors.size());
    const int behind = PassesPerSample() - 1;
    RunAll(runner, "ranges", behind, [&] {
      for (size_t i = 0; i < tensors.size(); ++i) seen[i].Add(FloatsOf(runner.Value(i)));
    });
    result_.samples = inputs_.count().value_or(0);
    std::vector<ValueEnds> groups = model_.groups();
    for (size_t i = 0; i < tensors.size(); ++i) {
      groups[tensors[i].group].Add(seen[i]);
      if (seen[i].not_numbers > 0) {
        sinks_.Warn(fmt::format("{} of the values of {} are NaN or infinite, and left out",
                                seen[i].not_numbers, tensors[i].name));
      }
    }
    std::vector<ValueRange> ranges;
    ranges.reserve(groups.size());
    for (const ValueEnds& group : groups) ranges.push_back(group.range);
    if (request_.calibration.method != CalibrationMethod::kMinMax)
      ranges = SearchRanges(runner, ranges, behind - 1);
    for (const ValueRange& range : ranges)
      quantizers_.push_back(QuantizerFor(range, request_.qdq.activations));
    for (size_t i = 0; i < tensors.size(); ++i) {
      const int group = tensors[i].group;
      result_.tensors.push_back(
          {tensors[i].name, seen[i].range, ranges[group], quantizers_[group], seen[i].not_numbers});
    }
  }

  std::vector<ValueRange> SearchRanges(TensorRunner& runner, const std::vector<ValueRange>& ends,
                                       int behind) {
    std::vector<ValueHistogram> histograms(ends.begin(), ends.end());
    const std::vector<QdqTensor>& tensors = model_.tensors();
    RunAll(runner, "histograms", behind, [&] {
      for (size_t i = 0; i < tensors.size(); ++i) histograms[tensors[i].group].Add(FloatsOf(runner.Value(i)));
    });
    std::vector<ValueRange> ranges;
    ranges.reserve(histograms.size());
    for (const ValueHistogram& histogram : histograms)
      ranges.push_back(CalibratedRange(histogram, request_.calibration));
    return ranges;
  }

  std::map<std::string, std::string> Metadata() const {
    const IntegerForm& form = request_.qdq.activations;
    return {{"tilesmith.quantization",
             fmt::format("{}{} activations, {} weights per output channel", DataTypeName(form.type),
                         form.symmetric ? " symmetric" : "",
                         request_.qdq.largest_weight == kLargestWeight ? "i8" : "7-bit")},
            {"tilesmith.calibration", CalibrationText()}};
  }

  std::string CalibrationText() const {
    std::string method(CalibrationMethodName(request_.calibration.method));
    if (request_.calibration.method == CalibrationMethod::kPercentile)
      method += fmt::format(" {}", request_.calibration.percentile);
    return fmt::format("{}, {} sample{} of {}", method, result_.samples, result_.samples == 1 ? "" : "s",
                       inputs_.description());
  }

  void TakeLayers(const QdqFile& written) {
    for (const QdqLayer& layer : written.layers) {
      QuantizedLayerRow row;
      row.layer = layer;
      const auto tensor = std::ranges::find(result_.tensors, layer.output, &QuantizedTensorRow::name);
      if (tensor != result_.tensors.end()) row.tensor = tensor - result_.tensors.begin();
      result_.layers.push_back(std::move(row));
    }
  }

  // The float model with every layer alone beside it, and the quantised one, on the same inputs.
  void Check() {
    const QdqFile alone = model_.WriteAlone(quantizers_);
    const size_t layers = alone.layers.size();
    std::vector<std::string> exact, in_network;
    for (const QdqLayer& layer : alone.layers) exact.push_back(layer.output);
    const std::vector<std::string> outputs = SummarizeOnnx(file_.bytes, file_.source).outputs;
    exact.insert(exact.end(), outputs.begin(), outputs.end());
    in_network = exact;
    for (const QdqLayer& layer : alone.layers) exact.push_back(layer.own_output);
    TensorRunner reference = Runner(alone, exact),
                 quantized = Runner(model_.WriteSimulated(quantizers_), in_network);
    const auto comparable = [&](size_t i) {
      return reference.Has(i) && quantized.Has(i) && reference.TypeOf(i) == DataType::kF32;
    };
    for (size_t i = 0; i < layers; ++i) {
      result_.layers[i].own.emplace();
      if (comparable(i)) result_.layers[i].network.emplace();
    }
    std::vector<size_t> compared;
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (!comparable(layers + i)) continue;
      compared.push_back(layers + i);
      result_.outputs.push_back({.name = outputs[i], .error = {}});
    }
    const Graph first = reference.graph();
    int64_t done = 0;
    inputs_.ForEach(first, [&](const std::vector<Tensor>& inputs) {
      progress_.Expect(static_cast<int>(2 * (result_.samples - done)));
      progress_.Begin(fmt::format("errors: sample {}/{}", ++done, result_.samples), 2);
      reference.Run(inputs);
      quantized.Run(inputs);
      for (size_t i = 0; i < layers; ++i) {
        QuantizedLayerRow& row = result_.layers[i];
        row.own->Add(reference.Value(layers + outputs.size() + i), reference.Value(i));
        if (row.network) row.network->Add(quantized.Value(i), reference.Value(i));
      }
      for (size_t i = 0; i < compared.size(); ++i)
        AddOutput(quantized.Value(compared[i]), reference.Value(compared[i]), result_.outputs[i]);
    });
  }

  static void AddOutput(const Tensor& value, const Tensor& expected, QuantizedOutputRow& row) {
    row.error.Add(value, expected);
    CountAgreement(value, expected, &row.rows, &row.agreeing);
  }

  const QuantizeModelRequest& request_;
  const WorkSinks& sinks_;
  StageProgress progress_;
  const DevicePtr machine_;
  const CalibrationInputs inputs_;
  ModelFile file_;  // of floats of 32 bits, as the QdqModel has it
  QdqModel model_;
  std::vector<TensorQuantizer> quantizers_;  // by group
  QuantizedModel result_;
};

}  // namespace

void SignalError::Add(const Tensor& value, const Tensor& expected) {
  for (int64_t i = 0; i < expected.size(); ++i) {
    const double exact = expected.floats()[i], difference = value.floats()[i] - exact;
    if (!std::isfinite(exact) || !std::isfinite(difference)) continue;
    signal += exact * exact;
    noise += difference * difference;
  }
}

double SignalError::Decibels() const {
  if (noise == 0) return std::numeric_limits<double>::infinity();
  return 10 * std::log10(signal / noise);
}

QuantizedModel QuantizeModel(const QuantizeModelRequest& request, const WorkSinks& sinks) {
  const double percentile = request.calibration.percentile;
  if (!(percentile > 50 && percentile <= 100)) {
    throw Error(ErrorCode::kUsage, fmt::format("{} must be more than 50 and at most 100, got {}",
                                               settings::kPercentile, percentile));
  }
  std::vector<std::string> read = request.source.paths;
  for (std::string& file : FilesOf(request.model)) read.push_back(std::move(file));
  RequireReplaceable(request.output_path, OutputFormat::kOnnx, read);
  if (request.external_data) RequireWritable(PartPath(request.output_path), read);
  const DevicePtr machine = OpenMachine(request.machine);
  RequireCpu(machine, "quantize");
  return ModelQuantizer(request, machine, sinks).Quantize();
}

ModelQuantization CalibrateModel(const QuantizeModelRequest& request, const DevicePtr& machine,
                                 const WorkSinks& sinks) {
  RequireCpu(machine, "quantising");
  return ModelQuantizer(request, machine, sinks).Calibration();
}

}  // namespace tilesmith
