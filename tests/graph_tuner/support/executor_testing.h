// What an executor computes, compared with the reference run; and small networks with plans for them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include "graph_tuner/executor/executor.h"
#include "layouts/transform.h"
#include "ops/base/op.h"
#include "ops/conv/conv.h"
#include "ops/graph/reference_run.h"
#include "tests/support/random.h"
#include "tests/support/test_cpu.h"

namespace tilesmith {

// Numbers from 0 to 9; bools.
inline void FillWhole(Tensor& tensor, uint64_t seed) {
  TestRandom random(seed);
  VisitType(tensor.type(), [&](auto tag) {
    using T = typename decltype(tag)::Type;
    for (int64_t i = 0; i < tensor.size(); ++i)
      tensor.data<T>()[i] = ConvertElement<T>(random.Integer(0, tensor.type() == DataType::kBool ? 1 : 9));
  });
}

inline std::vector<Tensor> RandomInputs(const Graph& graph, uint64_t seed) {
  std::vector<Tensor> inputs;
  for (const Graph::NodeId id : graph.GraphInputs()) {
    const Node& node = graph.node(id);
    Tensor& tensor = inputs.emplace_back(node.shape, Layout::Nchw(node.type));
    if (node.type == DataType::kF32) {
      FillUniform({tensor.floats(), static_cast<size_t>(tensor.size())}, seed + id);
    } else {
      FillWhole(tensor, seed + id);
    }
  }
  return inputs;
}

// Output tensors full of NaN, or of the bytes that NaN has.
inline std::vector<Tensor> UnwrittenOutputs(const Graph& graph, const Layout& layout = Layout::Nchw()) {
  std::vector<Tensor> outputs;
  for (const Graph::NodeId id : graph.outputs()) {
    Tensor& tensor = outputs.emplace_back(graph.node(id).shape, EndLayout(graph.node(id), layout));
    std::fill_n(tensor.raw(), tensor.bytes(), std::byte{0xff});
  }
  return outputs;
}

// In the order of the layout, of the type that it has.
inline Tensor InOrder(const Tensor& tensor, const Layout& layout) {
  return tensor.layout() == layout ? tensor : TransformGeneric(tensor, layout.WithType(tensor.type()));
}

inline std::vector<const Tensor*> Pointers(const std::vector<Tensor>& tensors) {
  std::vector<const Tensor*> pointers;
  pointers.reserve(tensors.size());
  for (const Tensor& tensor : tensors) pointers.push_back(&tensor);
  return pointers;
}
inline std::vector<Tensor*> Pointers(std::vector<Tensor>& tensors) {
  std::vector<Tensor*> pointers;
  pointers.reserve(tensors.size());
  for (Tensor& tensor : tensors) pointers.push_back(&tensor);
  return pointers;
}

inline bool SameBits(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  return std::ranges::equal(a, b, [](const Tensor& x, const Tensor& y) {
    return x.layout() == y.layout() && std::equal(x.raw(), x.raw() + x.bytes(), y.raw(), y.raw() + y.bytes());
  });
}

// The largest difference relative to the largest expected element; infinite when an element is not finite, or
// when not all are the same in tensors of other types.
inline double LargestDifference(const Tensor& actual, const Tensor& expected) {
  if (actual.layout() != expected.layout()) return std::numeric_limits<double>::infinity();
  if (actual.type() != DataType::kF32) {
    const bool same = std::equal(actual.raw(), actual.raw() + actual.bytes(), expected.raw());
    return same ? 0 : std::numeric_limits<double>::infinity();
  }
  double largest = 0, difference = 0;
  for (int64_t i = 0; i < expected.size(); ++i) {
    if (!std::isfinite(actual.floats()[i])) return std::numeric_limits<double>::infinity();
    largest = std::max(largest, std::abs(double{expected.floats()[i]}));
    difference = std::max(difference, std::abs(double{actual.floats()[i]} - expected.floats()[i]));
  }
  return largest > 0 ? difference / largest : difference;
}

// A network with inputs, what it must compute of them, all plain, and how the executor is to get them.
struct ExpectedRun {
  const Graph& graph;
  const std::vector<Tensor>& inputs;
  const std::vector<Tensor>& expected;
  EndLayouts ends = {};
};

inline std::vector<Tensor> InputsInTheirLayouts(const ExpectedRun& run) {
  std::vector<Tensor> inputs;
  const std::vector<Graph::NodeId> ids = run.graph.GraphInputs();
  for (size_t i = 0; i < ids.size(); ++i)
    inputs.push_back(InOrder(run.inputs[i], EndLayout(run.graph.node(ids[i]), run.ends.inputs)));
  return inputs;
}

// How far each output of one execution is off.
inline std::vector<double> OutputDifferences(Executor& executor, const ExpectedRun& run,
                                             const std::vector<Tensor>& inputs) {
  std::vector<Tensor> outputs = UnwrittenOutputs(run.graph, run.ends.outputs);
  executor.Run(Pointers(inputs), Pointers(outputs));
  std::vector<double> differences;
  for (size_t i = 0; i < outputs.size(); ++i)
    differences.push_back(LargestDifference(InOrder(outputs[i], Layout::Nchw()), run.expected[i]));
  return differences;
}

inline void ExpectOutputs(Executor& executor, const ExpectedRun& run, double tolerance) {
  const std::vector<Tensor> inputs = InputsInTheirLayouts(run);
  const std::vector<double> differences = OutputDifferences(executor, run, inputs);
  for (size_t i = 0; i < differences.size(); ++i) {
    EXPECT_LE(differences[i], tolerance)
        << "output " << i << ", " << run.graph.node(run.graph.outputs()[i]).name;
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    EXPECT_EQ(LargestDifference(InOrder(inputs[i], Layout::Nchw()), run.inputs[i]), 0)
        << "input " << i << " was written to";
  }
}

inline void ExpectOutputs(Executor& executor, const Graph& graph, const std::vector<Tensor>& inputs,
                          const std::vector<Tensor>& expected, double tolerance) {
  ExpectOutputs(executor, {graph, inputs, expected}, tolerance);
}

// A convolution of size `kernel` with seeded weights, a bias and relu; with a residual when one is given.
inline Graph::NodeId AddFilledConv(Graph& graph, const std::string& name, std::vector<Graph::NodeId> inputs,
                                   int64_t oc, int64_t kernel = 1) {
  const Shape in = graph.node(inputs[0]).shape;
  ConvWorkload w;
  std::tie(w.mb, w.ic, w.ih, w.iw) = std::tie(in[0], in[1], in[2], in[3]);
  std::tie(w.oc, w.oh, w.ow) = std::tie(oc, in[2], in[3]);
  w.kh = w.kw = kernel;
  w.ph = w.pw = kernel / 2;
  w.post = {.bias = true, .sum = inputs.size() > 1, .activation = {ActivationKind::kRelu}};
  auto weights = std::make_shared<Tensor>(w.weights_shape());
  auto bias = std::make_shared<Tensor>(Shape{oc});
  FillUniform({weights->floats(), static_cast<size_t>(weights->size())}, graph.size());
  FillUniform({bias->floats(), static_cast<size_t>(bias->size())}, graph.size() + 1000);
  return graph.Add(name, std::make_shared<ConvOp>(w, weights, bias), inputs);
}

// Every node in one layout where it can (`block` channels per block), convs by the portable template.
inline Plan UniformPlan(const Graph& graph, const Target& cpu, int64_t block) {
  const Layout layout = Layout::Blocked(block);
  Plan plan;
  for (Graph::NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph.node(id);
    NodePlan planned;
    planned.node = node.name;
    planned.op_type = node.op->Type();
    if (const auto* conv = graph.As<ConvOp>(id)) {
      const ConvTemplate& conv_template = FindConvTemplate("portable");
      planned.record.emplace();
      planned.record->workload = conv->workload();
      planned.record->template_name = "portable";
      planned.record->config = conv_template.Default(conv->workload(), cpu);
      planned.record->config.Set("ic_block", block);
      planned.record->config.Set("oc_block", block);
      planned.layouts = {layout, layout};
    } else {
      std::vector<DataType> types = graph.InputTypes(id);
      types.push_back(node.type);
      const auto is_float = [](DataType type) { return type == DataType::kF32; };
      const bool runs =
          std::ranges::all_of(types, is_float) && node.op->RunsIn(layout, graph.InputShapes(id));
      const Layout order = runs ? layout : Layout::Nchw();
      planned.layouts = NodeLayouts(graph, id, order, order);
    }
    plan.nodes.push_back(std::move(planned));
  }
  return plan;
}

}  // namespace tilesmith
