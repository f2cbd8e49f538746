// An ONNX file: imported, optimized, planned by default and run once on one thread.
#include "graph_tuner/executor/heuristic_plan.h"
#include "ops/onnx/onnx_import.h"
#include "ops/passes/passes.h"
#include "tests/fuzz/targets/network_run.h"
#include "tests/fuzz/targets/onnx_proto.h"
#include "tests/fuzz/targets/targets.h"

namespace tilesmith::fuzz {
namespace {

constexpr std::string_view kWords[] = {"Add",
                                       "AveragePool",
                                       "BatchNormalization",
                                       "Cast",
                                       "Clip",
                                       "Concat",
                                       "Constant",
                                       "ConstantOfShape",
                                       "Conv",
                                       "ConvTranspose",
                                       "DepthToSpace",
                                       "Div",
                                       "Dropout",
                                       "Equal",
                                       "Erf",
                                       "Expand",
                                       "Flatten",
                                       "Gather",
                                       "Gemm",
                                       "GlobalAveragePool",
                                       "HardSigmoid",
                                       "HardSwish",
                                       "Identity",
                                       "LRN",
                                       "LeakyRelu",
                                       "MatMul",
                                       "Max",
                                       "MaxPool",
                                       "Mul",
                                       "Not",
                                       "PRelu",
                                       "Pad",
                                       "Pow",
                                       "Range",
                                       "ReduceMean",
                                       "ReduceSum",
                                       "Relu",
                                       "Reshape",
                                       "Resize",
                                       "Shape",
                                       "Sigmoid",
                                       "Slice",
                                       "Softmax",
                                       "Split",
                                       "Sqrt",
                                       "Squeeze",
                                       "Sub",
                                       "Sum",
                                       "Tile",
                                       "Transpose",
                                       "Unsqueeze",
                                       "Upsample",
                                       "Where",
                                       "SAME_UPPER",
                                       "SAME_LOWER",
                                       "VALID",
                                       "NOTSET",
                                       "DCR",
                                       "CRD",
                                       "reflect",
                                       "edge",
                                       "constant",
                                       "nearest",
                                       "linear",
                                       "cubic",
                                       "half_pixel",
                                       "align_corners",
                                       "asymmetric",
                                       "axis",
                                       "axes",
                                       "perm",
                                       "pads",
                                       "strides",
                                       "dilations",
                                       "kernel_shape",
                                       "group",
                                       "blocksize",
                                       "ceil_mode",
                                       "auto_pad",
                                       "output_shape",
                                       "output_padding",
                                       "epsilon",
                                       "alpha",
                                       "beta",
                                       "count_include_pad",
                                       "value",
                                       "to",
                                       "mode",
                                       "starts",
                                       "ends"};

// So that what is within them takes milliseconds.
constexpr SizeLimits kLimits{
    .tensor_elements = 1 << 20, .network_bytes = 1 << 26, .folded_operations = 1 << 20};

void Run(const std::string& input) {
  const std::string bytes = ModelBytes(input);
  SummarizeOnnx(bytes, "model.onnx");
  Graph graph = OptimizeGraph(ImportOnnxBytes(bytes, "model.onnx", {.limits = kLimits}));
  GraphHash(graph);
  if (!IsSmall(graph)) return;
  const Target cpu = CapIsa(DetectCpu(), Isa::kAvx512);
  const Plan plan = HeuristicPlan(graph, cpu, 1);
  RunOnce(std::move(graph), plan, cpu);
}

}  // namespace

FuzzTarget OnnxTarget() {
  return {.name = "onnx",
          .reads = "an ONNX file: imported, optimized, planned, run on one thread",
          .run = Run,
          .mutate = MutateModel,
          .words = kWords,
          .short_runs = 500};
}

}  // namespace tilesmith::fuzz
