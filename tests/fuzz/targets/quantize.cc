// An ONNX file to be quantised: planned, written in all three forms, and what is written read again.
#include "ops/onnx/onnx_import.h"
#include "ops/qdq/qdq_model.h"
#include "tests/fuzz/targets/onnx_proto.h"
#include "tests/fuzz/targets/targets.h"

namespace tilesmith::fuzz {
namespace {

constexpr std::string_view kWords[] = {"Conv",      "ConvTranspose", "Gemm",     "MatMul",
                                       "Add",       "Mul",           "Concat",   "Relu",
                                       "Clip",      "MaxPool",       "Resize",   "Upsample",
                                       "Identity",  "Pad",           "Slice",    "Split",
                                       "Softmax",   "Squeeze",       "Constant", "Dropout",
                                       "ReduceSum", "axis",          "axes",     "group",
                                       "transB",    "alpha",         "beta",     "mode",
                                       "pads",      "starts",        "constant", "BatchNormalization"};

void Run(const std::string& input) {
  const std::string bytes = ModelBytes(input);
  QdqModel model(bytes, "model.onnx", {});
  std::vector<TensorQuantizer> quantizers;
  for (const ValueEnds& group : model.groups()) quantizers.push_back(QuantizerFor(group.range, {}));
  const QdqFile file = model.Write(quantizers, {{"made", "by a fuzzer"}});
  model.WriteSimulated(quantizers);
  model.WriteAlone(quantizers);
  SummarizeOnnx(file.bytes, "model.int8.onnx");
}

}  // namespace

FuzzTarget QuantizeTarget() {
  return {.name = "quantize",
          .reads = "an ONNX file to be quantised: planned, written, read again",
          .run = Run,
          .mutate = MutateModel,
          .words = kWords,
          .short_runs = 500};
}

}  // namespace tilesmith::fuzz
