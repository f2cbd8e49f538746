// A plan for one small network: read, checked, and run when it fits.
#include "graph_tuner/plan/plan_file.h"
#include "ops/onnx/onnx_import.h"
#include "ops/passes/passes.h"
#include "tests/fuzz/targets/network_run.h"
#include "tests/fuzz/targets/onnx_proto.h"
#include "tests/fuzz/targets/record_uses.h"
#include "tests/fuzz/targets/targets.h"

namespace tilesmith::fuzz {
namespace {

// Two convs, one of them depthwise, beside a pool, and a concat: transforms, fusion and slices have a place.
constexpr const char* kNetwork = R"(
  ir_version: 8
  opset_import { version: 13 }
  graph {
    name: "fuzz"
    input { name: "x" type { tensor_type { elem_type: 1 shape {
      dim { dim_value: 1 } dim { dim_value: 8 } dim { dim_value: 6 } dim { dim_value: 6 } } } } }
    node { name: "conv1" op_type: "Conv" input: "x" input: "w1" output: "a"
      attribute { name: "group" type: INT i: 8 }
      attribute { name: "pads" type: INTS ints: 1 ints: 1 ints: 1 ints: 1 } }
    node { name: "relu1" op_type: "Relu" input: "a" output: "b" }
    node { name: "conv2" op_type: "Conv" input: "b" input: "w2" output: "c" }
    node { name: "pool1" op_type: "MaxPool" input: "x" output: "p"
      attribute { name: "kernel_shape" type: INTS ints: 3 ints: 3 }
      attribute { name: "pads" type: INTS ints: 1 ints: 1 ints: 1 ints: 1 } }
    node { name: "concat1" op_type: "Concat" input: "c" input: "p" output: "y"
      attribute { name: "axis" type: INT i: 1 } }
    node { name: "add1" op_type: "Add" input: "b" input: "p" output: "z" }
    initializer { name: "w1" data_type: 1 dims: 8 dims: 1 dims: 3 dims: 3 }
    initializer { name: "w2" data_type: 1 dims: 16 dims: 8 dims: 1 dims: 1 }
    output { name: "y" }
    output { name: "z" }
  })";

Graph MakeGraph() {
  // Weights are not what a plan is about: they are all the same.
  std::string text = kNetwork;
  for (const auto& [dims, count] :
       {std::pair("dims: 1 dims: 3 dims: 3 }", 72), std::pair("dims: 8 dims: 1 dims: 1 }", 128)}) {
    std::string data;
    for (int i = 0; i < count; ++i) data += " float_data: 0.5";
    text.insert(text.find(dims) + std::string_view(dims).size() - 1, data);
  }
  return OptimizeGraph(ImportOnnxBytes(ModelBytes(text), "fuzz.onnx"));
}

void Run(const std::string& input) {
  static const Graph graph = MakeGraph();
  const Target cpu = FuzzCpu();
  const InputFile file(input);
  const Plan plan = ReadPlan(file.path());
  CheckPlan(plan, graph, cpu, 1, true);
  const Target here = CapIsa(DetectCpu(), Isa::kAvx2);
  if (here.isa == cpu.isa) RunOnce(graph, plan, cpu);
}

}  // namespace

FuzzTarget PlanTarget() {
  return {.name = "plan",
          .reads = "a plan file: read, checked, run on one thread",
          .run = Run,
          .mutate = MutateJsonLines,
          .words = RecordWords(),
          .short_runs = 1500};
}

}  // namespace tilesmith::fuzz
