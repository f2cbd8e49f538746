#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <limits>

#include "layouts/base/error.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/output_file.h"
#include "tools/cli/results_file.h"
#include "tools/commands/commands.h"
#include "tools/quantize/quantize_model.h"

namespace tilesmith {
namespace {

class QuantizeCommand : public Command {
 public:
  QuantizeCommand()
      : Command({.name = "quantize",
                 .purpose = "Write a network with 8-bit integers (QDQ), calibrated on inputs, and its error",
                 .examples = "tilesmith quantize model.onnx --calibrate images.npz -o model.int8.onnx\n"
                             "tilesmith quantize model.onnx --calibrate images/ --method mse --keep-last -o "
                             "model.int8.onnx"}) {}
  void Declare(Args& args) override {
    DeclareModelOptions(args, &request_.model);
    args.Texts(
        "--calibrate", &request_.source.paths,
        "FILE.npz, FILE.npy or a directory of them, each with one or more samples of every input; may be "
        "repeated (default: seeded random inputs, good for trying out only)",
        "FILE|DIR");
    args.Positive("--samples", &request_.source.samples, "At most (default: all, or 8 random ones)");
    args.NonNegative("--seed", &seed_, "Of random inputs (default 1)");
    args.Choice("--method", &method_, CalibrationMethodNames(),
                "How ranges are chosen: all values seen (default), most of them, those that keep the "
                "distribution, or those with the least squared error");
    args.Real("--percentile", &percentile_,
              "Share of the values that --method percentile covers (default 99.99)");
    args.Choice("--activations", &activations_, ActivationNames(),
                "Activations' type (default u8); symmetric: zero point 0");
    args.Flag("--reduce-range", &reduce_range_,
              "Weights of 7 bits, for runtimes whose sums of two products saturate (x86 without VNNI)");
    args.Texts("--keep", &request_.qdq.keep, "A node that stays float; may be repeated", "NODE");
    args.Flag("--keep-first", &request_.qdq.keep_first, "First convolutions and products stay float");
    args.Flag("--keep-last", &request_.qdq.keep_last, "Last convolutions and products stay float");
    args.Texts("--op", &request_.qdq.op_types,
               "Quantise only this operator; may be repeated (default: every one that pays)", "TYPE");
    args.Group("Output");
    args.Text("-o,--output", &request_.output_path, "ONNX file to write", "FILE");
    args.Flag("--external-data", &request_.external_data,
              "Keep weights in a second file, FILE.data, beside it; where one would be 2 GiB or more they "
              "are anyway");
    args.Flag("--no-check", &no_check_, "Do not run the quantised model beside the one with floats");
    args.Text("--save", &save_path_, "Write what --json prints to this file, too", "FILE");
    DeclareMachineOptions(args, &request_.machine);
    args.Flag("--json", &json_, "Print JSON");
  }

  int Run() override {
    if (request_.output_path.empty()) throw Error(ErrorCode::kUsage, "-o FILE.onnx is required");
    RequireDifferent({request_.output_path, save_path_});
    RequireReplaceable(save_path_, OutputFormat::kJson, {request_.model.model});
    request_.source.seed = static_cast<uint64_t>(seed_);
    request_.calibration.method = ParseCalibrationMethod(method_);
    TakePercentile();
    request_.qdq.activations = ParseActivations(activations_);
    if (reduce_range_) request_.qdq.largest_weight = kLargestReducedWeight;
    request_.check = !no_check_;
    CatchInterrupts();
    ProgressLine progress;
    const WorkSinks sinks = SinksOf(progress);
    const QuantizedModel quantized = QuantizeModel(request_, sinks);
    if (quantized.random) {
      sinks.Warn("calibrated on random inputs: accuracy on real ones may be poor (--calibrate FILES)");
    }
    progress.Clear();
    Report report;
    AddQuantization(report, request_, quantized);
    AddOrigin(report.details(), OpenMachine(request_.machine)->target());
    report.Print(json_, save_path_);
    return 0;
  }

 private:
  void TakePercentile() {
    if (std::isnan(percentile_)) return;
    if (request_.calibration.method != CalibrationMethod::kPercentile)
      throw Error(ErrorCode::kUsage, "--percentile is for --method percentile, not " + method_);
    request_.calibration.percentile = percentile_;
  }

  QuantizeModelRequest request_;
  std::string method_ = "minmax", activations_ = "u8", save_path_;
  int64_t seed_ = 1;
  double percentile_ = std::numeric_limits<double>::quiet_NaN();  // none given
  bool reduce_range_ = false, no_check_ = false, json_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeQuantizeCommand() { return std::make_unique<QuantizeCommand>(); }

}  // namespace tilesmith
