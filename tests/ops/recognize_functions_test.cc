// Formulas in the orders in which exporters write them.
#include <gmock/gmock.h>

#include <numbers>

#include "ops/base/op_registry.h"
#include "ops/passes/passes.h"
#include "ops/reduce/normalization.h"
#include "ops/reduce/reduce.h"
#include "tests/ops/test_net.h"
#include "tests/ops/test_node.h"

namespace tilesmith {
namespace {

using Id = Graph::NodeId;
using testing::ElementsAre;

// A graph whose nodes are imported as those of a model are.
struct WrittenModel {
  Net net;

  Id Input(Shape shape) { return net.Input("x", std::move(shape)); }
  Id Constant(const Tensor& value) {
    return net.graph.Add("", std::make_shared<ConstantOp>(std::make_shared<const Tensor>(value)), {});
  }
  Id Scalar(double value) { return Constant(Floats({}, {static_cast<float>(value)})); }

  Id Node(const std::string& type, const std::vector<Id>& inputs,
          const std::vector<std::pair<std::string, Attribute>>& attributes = {}) {
    NodeSpec spec;
    spec.op_type = type;
    for (const auto& [name, value] : attributes) spec.attributes.emplace(name, value);
    for (const Id id : inputs) {
      const auto* constant = net.graph.As<ConstantOp>(id);
      spec.inputs.push_back({true, net.graph.node(id).shape, net.graph.node(id).type,
                             constant == nullptr ? nullptr : constant->value()});
    }
    const BuiltOp built = FindOpImporter(type)->build(spec);
    std::vector<Id> edges;
    for (const int input : built.data_inputs) edges.push_back(inputs[input]);
    return net.graph.Add("", built.op, edges);
  }
  Id Mean(Id x, std::vector<int64_t> axes) { return Node("ReduceMean", {x}, {{"axes", std::move(axes)}}); }

  // The passes' result, which computes the same.
  std::vector<std::string> Optimized(Id output) {
    net.graph.MarkOutput(output);
    const Graph graph = OptimizeGraph(net.graph);
    ExpectSame(net.graph, graph);
    return Types(graph);
  }
};

TEST(RecognizeFunctions, GeluByErf) {
  for (const int order : {0, 1, 2, 3}) {
    SCOPED_TRACE(order);
    WrittenModel m;
    const Id x = m.Input({2, 3, 5});
    const Id scaled = order == 3 ? m.Node("Mul", {x, m.Scalar(std::numbers::sqrt2 / 2)})
                                 : m.Node("Div", {x, m.Scalar(1.4142135381698608)});
    const Id gate = m.Node("Add", {m.Node("Erf", {scaled}), m.Scalar(1)});
    Id y = 0;
    if (order == 0) y = m.Node("Mul", {m.Node("Mul", {x, gate}), m.Scalar(0.5)});
    if (order == 1) y = m.Node("Mul", {m.Node("Mul", {x, m.Scalar(0.5)}), gate});
    if (order == 2) y = m.Node("Mul", {x, m.Node("Mul", {m.Scalar(0.5), gate})});
    if (order == 3) y = m.Node("Mul", {gate, m.Node("Mul", {m.Scalar(0.5), x})});
    EXPECT_THAT(m.Optimized(y), ElementsAre("Input", "Gelu"));
  }
}

TEST(RecognizeFunctions, GeluByTanh) {
  for (const int order : {0, 1, 2}) {
    SCOPED_TRACE(order);
    WrittenModel m;
    const Id x = m.Input({2, 3, 5});
    const double slope = std::sqrt(2 / std::numbers::pi);
    Id argument = 0;
    if (order == 2) {
      // slope x (1 + 0.044715 x^2)
      const Id square = m.Node("Mul", {m.Node("Mul", {x, m.Scalar(0.044715)}), x});
      argument = m.Node("Mul", {m.Node("Mul", {x, m.Scalar(slope)}), m.Node("Add", {square, m.Scalar(1)})});
    } else {
      const Id cube =
          order == 0 ? m.Node("Pow", {x, m.Scalar(3)}) : m.Node("Mul", {x, m.Node("Mul", {x, x})});
      const Id sum = m.Node("Add", {x, m.Node("Mul", {cube, m.Scalar(0.044715)})});
      argument = m.Node("Mul", {sum, m.Scalar(slope)});
    }
    const Id gate = m.Node("Add", {m.Scalar(1), m.Node("Tanh", {argument})});
    const Id y = m.Node("Mul", {m.Node("Mul", {x, m.Scalar(0.5)}), gate});
    EXPECT_THAT(m.Optimized(y), ElementsAre("Input", "GeluTanh"));
  }
}

TEST(RecognizeFunctions, LeavesOtherFormulas) {
  WrittenModel m;
  const Id x = m.Input({2, 3, 5});
  const Id gate = m.Node("Add", {m.Node("Erf", {m.Node("Div", {x, m.Scalar(1.5)})}), m.Scalar(1)});
  EXPECT_THAT(m.Optimized(m.Node("Mul", {x, gate})), testing::Contains("Erf"));
  WrittenModel two;
  const Id a = two.Input({2, 3, 5}), b = two.net.Input("b", {2, 3, 5});
  const Id erf = two.Node("Erf", {two.Node("Div", {a, two.Scalar(std::numbers::sqrt2)})});
  EXPECT_THAT(two.Optimized(two.Node("Mul", {b, two.Node("Add", {erf, two.Scalar(1)})})),
              testing::Contains("Erf"));
}

TEST(RecognizeFunctions, Mish) {
  WrittenModel m;
  const Id x = m.Input({1, 3, 4, 5});
  const Id gate = m.Node("Tanh", {m.Node("Softplus", {x})});
  EXPECT_THAT(m.Optimized(m.Node("Mul", {x, gate})), ElementsAre("Input", "Mish"));
}

Id WrittenOutLayer(WrittenModel& m, Id x, bool shared) {
  const Id mean = m.Mean(x, {-1}), difference = m.Node("Sub", {x, mean});
  const Id other = shared ? difference : m.Node("Sub", {x, mean});
  const Id variance = m.Mean(m.Node("Pow", {other, m.Scalar(2)}), {-1});
  return m.Node("Div", {difference, m.Node("Sqrt", {m.Node("Add", {variance, m.Scalar(1e-5)})})});
}

TEST(RecognizeFunctions, LayerNormalization) {
  for (const bool shared : {true, false}) {
    WrittenModel m;
    const Id x = m.Input({2, 3, 5});
    const Id y = m.Node("Mul", {WrittenOutLayer(m, x, shared), m.Constant(*RandomTensor({5}, 1))});
    EXPECT_THAT(m.Optimized(m.Node("Add", {y, m.Constant(*RandomTensor({5}, 2))})),
                ElementsAre("Input", "LayerNormalization"));
  }
  WrittenModel bare;
  const Id z = WrittenOutLayer(bare, bare.Input({2, 3, 5}), true);
  EXPECT_THAT(bare.Optimized(z), ElementsAre("Input", "LayerNormalization"));
  WrittenModel varied;  // scales that vary along another axis stay outside
  const Id w = WrittenOutLayer(varied, varied.Input({2, 3, 5}), true);
  EXPECT_THAT(varied.Optimized(varied.Node("Mul", {w, varied.Constant(*RandomTensor({3, 5}, 1))})),
              ElementsAre("Input", testing::_, testing::_, "Mul"));
}

// As torch.nn.functional.normalize is exported, and shorter.
TEST(RecognizeFunctions, DivisionByANorm) {
  for (const char* norm : {"ReduceL2", "ReduceL1"}) {
    for (const bool expanded : {true, false}) {
      WrittenModel m;
      const Id x = m.Input({2, 3, 4, 5});
      const Id reduced = m.Node(norm, {x}, {{"axes", std::vector<int64_t>{-1}}});
      Id least = m.Node("Clip", {reduced, m.Scalar(0.25)});
      if (expanded) least = m.Node("Expand", {least, m.Constant(Ints({4}, {2, 3, 4, 5}))});
      EXPECT_THAT(m.Optimized(m.Node("Div", {x, least})), ElementsAre("Input", "LpNormalization"));
    }
  }
  WrittenModel unbounded;  // 0 / 0 is no number
  const Id x = unbounded.Input({2, 3, 5});
  const Id bare = unbounded.Node("ReduceL2", {x}, {{"axes", std::vector<int64_t>{2}}});
  EXPECT_THAT(unbounded.Optimized(unbounded.Node("Div", {x, bare})), ElementsAre("Input", "ReduceL2", "Div"));
  WrittenModel other;  // along an axis that is not the last
  const Id z = other.Input({2, 3, 5});
  const Id first = other.Node("ReduceL2", {z}, {{"axes", std::vector<int64_t>{1}}});
  EXPECT_THAT(other.Optimized(other.Node("Div", {z, other.Node("Clip", {first, other.Scalar(0.25)})})),
              ElementsAre("Input", "ReduceL2", testing::_, "Div"));
}

TEST(RecognizeFunctions, ANormHasALeastValue) {
  Normalization normalization;
  normalization.spread = Spread::kL2;
  normalization.epsilon = 2;
  normalization.axes = {1};
  const NormalizationOp op("LpNormalization", normalization);
  const Tensor in = Floats({3, 2}, {0, 0, 0.6f, 0.8f, 30, 40});
  const Tensor* inputs[] = {&in};
  const Tensor out = op.Reference(inputs);
  EXPECT_THAT(std::vector<float>(out.floats(), out.floats() + 6),
              testing::Pointwise(testing::FloatEq(), {0.0f, 0.0f, 0.3f, 0.4f, 0.6f, 0.8f}));
}

}  // namespace
}  // namespace tilesmith
