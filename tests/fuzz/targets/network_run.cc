#include "tests/fuzz/targets/network_run.h"

#include <algorithm>

#include "graph_tuner/executor/executor.h"
#include "layouts/transform.h"
#include "tests/support/random.h"

namespace tilesmith::fuzz {
namespace {

constexpr double kMaxElements = 1 << 20;
constexpr double kMaxFlops = 2e8;

Tensor MakeInput(const Node& node, const Layout& layout) {
  Tensor plain(node.shape, Layout::Nchw(node.type));
  const auto count = static_cast<size_t>(plain.size());
  if (node.type == DataType::kF32) FillUniform({plain.floats(), count}, count);
  return layout.is_nchw() ? std::move(plain) : TransformGeneric(plain, layout);
}

}  // namespace

bool IsSmall(const Graph& graph) {
  double elements = 0, flops = 0;
  for (Graph::NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph.node(id);
    double product = 1;
    for (const int64_t size : node.shape) product *= static_cast<double>(size);
    elements += product;
    if (node.op != nullptr) flops += node.op->Flops(graph.InputShapes(id));
  }
  return elements <= kMaxElements && flops <= kMaxFlops;
}

void RunOnce(Graph graph, const Plan& plan, const Target& cpu) {
  std::vector<Tensor> inputs, outputs;
  for (const Graph::NodeId id : graph.GraphInputs())
    inputs.push_back(MakeInput(graph.node(id), EndLayout(graph.node(id), plan.ends.inputs)));
  for (const Graph::NodeId id : graph.outputs()) {
    const Node& node = graph.node(id);
    outputs.emplace_back(node.shape, EndLayout(node, plan.ends.outputs));
  }
  std::vector<const Tensor*> input_pointers;
  std::vector<Tensor*> output_pointers;
  for (const Tensor& input : inputs) input_pointers.push_back(&input);
  for (Tensor& output : outputs) output_pointers.push_back(&output);
  Executor executor(std::move(graph), plan, OpenDevice(cpu, 1));
  executor.Run(input_pointers, output_pointers);
}

}  // namespace tilesmith::fuzz
