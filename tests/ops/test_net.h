// Small networks for the tests of passes: built by hand, run through the reference, compared.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "ops/base/op.h"
#include "ops/conv/conv.h"
#include "ops/elementwise/activations.h"
#include "ops/elementwise/batch_norm.h"
#include "ops/elementwise/binary.h"
#include "ops/graph/reference_run.h"
#include "ops/movement/concat.h"
#include "ops/movement/pad.h"
#include "ops/movement/view.h"
#include "tests/support/random.h"

namespace tilesmith {

inline std::vector<float> Uniform(size_t count, uint64_t seed, float low = -1, float high = 1) {
  std::vector<float> values(count);
  FillUniform(values, seed, low, high);
  return values;
}

inline std::shared_ptr<const Tensor> RandomTensor(Shape shape, uint64_t seed) {
  auto tensor = std::make_shared<Tensor>(std::move(shape));
  FillUniform({tensor->floats(), static_cast<size_t>(tensor->size())}, seed);
  return tensor;
}

// A graph under construction, with random weights.
struct Net {
  using Id = Graph::NodeId;
  Graph graph{"net"};
  uint64_t seed = 1;

  Id Input(const std::string& name, Shape shape) {
    return graph.Add(name, std::make_shared<InputOp>(std::move(shape)), {});
  }
  Id Conv(const std::string& name, Id x, int64_t channels, int64_t kernel, bool bias = false) {
    const Shape& in = graph.node(x).shape;
    ConvWorkload w;
    w.mb = in[0], w.ic = in[1], w.ih = in[2], w.iw = in[3], w.oc = channels;
    w.kh = w.kw = kernel, w.ph = w.pw = kernel / 2;
    w.oh = w.ih, w.ow = w.iw, w.post.bias = bias;
    const auto weights = RandomTensor(w.weights_shape(), seed++);
    return graph.Add(
        name, std::make_shared<ConvOp>(w, weights, bias ? RandomTensor({channels}, seed++) : nullptr), {x});
  }
  Id Scale(const std::string& name, Id x) {
    const int64_t channels = graph.node(x).shape[1];
    std::vector<float> scale = Uniform(channels, seed++);
    return graph.Add(name, std::make_shared<ScaleShiftOp>(scale, Uniform(channels, seed++)), {x});
  }
  Id Relu(const std::string& name, Id x) { return Act(name, x, {ActivationKind::kRelu}); }
  Id Act(const std::string& name, Id x, Activation activation) {
    return graph.Add(name, std::make_shared<ActivationOp>(activation), {x});
  }
  Id Add(const std::string& name, Id a, Id b) {
    return graph.Add(name, std::make_shared<BinaryOp>(BinaryKind::kAdd), {a, b});
  }
  Id Concat(const std::string& name, const std::vector<Id>& inputs) {
    return graph.Add(name, std::make_shared<ConcatOp>(1), inputs);
  }
  Id View(const std::string& name, Id x, const std::string& type) {
    return graph.Add(name, std::make_shared<ViewOp>(type), {x});
  }
  Id Pad(const std::string& name, Id x, std::vector<int64_t> begin, std::vector<int64_t> end,
         float value = 0) {
    return graph.Add(name, std::make_shared<PadOp>(PadMode::kConstant, begin, end, value), {x});
  }
};

inline std::vector<std::string> Types(const Graph& graph) {
  std::vector<std::string> types;
  for (Graph::NodeId id = 0; id < graph.size(); ++id) types.emplace_back(graph.node(id).op->Type());
  return types;
}

inline std::vector<std::string> Names(const Graph& graph, const std::vector<Graph::NodeId>& ids) {
  std::vector<std::string> names;
  for (const Graph::NodeId id : ids) names.push_back(graph.node(id).name);
  return names;
}

inline std::vector<Tensor> Run(const Graph& graph) {
  std::vector<Tensor> inputs;
  std::vector<const Tensor*> pointers;
  for (const Graph::NodeId id : graph.GraphInputs())
    inputs.push_back(*RandomTensor(graph.node(id).shape, 100 + id));
  for (const Tensor& input : inputs) pointers.push_back(&input);
  return RunReference(graph, pointers);
}

// The reference accumulates in double, so the two differ by the rounding of tensors and folded weights to
// float: eps per operation of the chain, relative to the magnitude of a sum's terms. With weights and inputs
// in [-1, 1], at most 5 * 3 * 3 taps and gains below 2 per node, eps * 45 * 2^4 covers every graph here.
constexpr float kTolerance = 45 * 16 * 1.2e-7f;

inline void ExpectSame(const Graph& before, const Graph& after) {
  EXPECT_EQ(Names(before, before.outputs()), Names(after, after.outputs()));
  EXPECT_EQ(Names(before, before.GraphInputs()), Names(after, after.GraphInputs()));
  const std::vector<Tensor> expected = Run(before), actual = Run(after);
  ASSERT_EQ(expected.size(), actual.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_EQ(expected[i].shape(), actual[i].shape());
    for (int64_t j = 0; j < expected[i].size(); ++j) {
      ASSERT_NEAR(expected[i].floats()[j], actual[i].floats()[j], kTolerance)
          << "output " << i << " at " << j;
    }
  }
}

inline const ConvOp& ConvNamed(const Graph& graph, const std::string& name) {
  const auto id = graph.Find(name);
  if (!id) throw std::runtime_error("no node " + name);
  return *graph.As<ConvOp>(*id);
}

}  // namespace tilesmith
