// Parameters of fewer dimensions than what they apply to, where batch, channels, height and width are equal,
// so that only their place says which of these they belong to: what importing and the passes make of
// constants is what inputs in the same place do.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "ops/base/broadcast.h"
#include "tests/ops/test_node.h"
#include "tests/support/ops/written_model.h"
#include "tests/support/random.h"

namespace tilesmith {
namespace {

constexpr int64_t kSize = 3;

// Every shape of 1 and kSize that has at most so many dimensions.
std::vector<Shape> ParameterShapes(size_t most) {
  std::vector<Shape> shapes = {{}};
  for (size_t first = 0; shapes[first].size() < most; ++first) {
    for (const int64_t size : {int64_t{1}, kSize}) {
      Shape longer = shapes[first];
      longer.push_back(size);
      shapes.push_back(longer);
    }
  }
  return shapes;
}

Tensor RandomFloats(const Shape& shape, uint64_t seed) {
  Tensor tensor(shape);
  FillUniform({tensor.floats(), static_cast<size_t>(tensor.size())}, seed, 0.5f, 2.0f);
  for (int64_t i = 0; i < tensor.size(); i += 2) tensor.floats()[i] *= -1;
  return tensor;
}

struct Case {
  std::string front;  // what computes the tensor: Conv, ConvTranspose, MatMul, BatchNormalization, or ""
  std::string op;
  Shape shape, parameter;
  bool swapped = false;  // the parameter is the first operand
  std::string behind;    // what reads the result, or ""
};

// y = behind(op(front(x), p)), p being a constant or an input.
OnnxModel ModelOf(const Case& c, const Tensor& parameter, bool constant) {
  OnnxModel model(15);
  const auto floats = [&](const std::string& name, const Shape& shape, uint64_t seed) {
    model.Floats(name, shape, F(RandomFloats(shape, seed)));
  };
  model.Input("x", {c.shape.begin(), c.shape.end()});
  if (constant) {
    model.Floats("p", c.parameter, F(parameter));
  } else {
    model.Input("p", {c.parameter.begin(), c.parameter.end()});
  }
  std::string x = "x";
  if (c.front == "BatchNormalization") {
    for (const char* name : {"scale", "shift", "mean"}) floats(name, {kSize}, 5);
    model.Floats("variance", {kSize}, {1, 2, 3});
    model.Node(c.front, {x, "scale", "shift", "mean", "variance"}, {"t"});
  } else if (!c.front.empty()) {
    floats("w", c.front == "MatMul" ? Shape{kSize, kSize} : Shape{kSize, kSize, 1, 1}, 6);
    model.Node(c.front, {x, "w"}, {"t"});
  }
  if (!c.front.empty()) x = "t";
  const std::vector<std::string> operands =
      c.swapped ? std::vector<std::string>{"p", x} : std::vector<std::string>{x, "p"};
  if (c.op == "Where") {
    floats("zero", {}, 0);
    model.Node("Greater", {x, "zero"}, {"positive"});
    model.Node("Where", {"positive", operands[0], operands[1]}, {"u"});
  } else {
    model.Node(c.op, operands, {"u"});
  }
  if (c.behind == "Conv") {
    floats("v", {kSize, kSize, 1, 1}, 8);
    model.Node("Conv", {"u", "v"}, {"y"});
  } else {
    model.Node(c.behind.empty() ? "Identity" : c.behind, {"u"}, {"y"});
  }
  model.Output("y");
  return model;
}

void ExpectSameAsInput(const Case& c) {
  SCOPED_TRACE(fmt::format("{} of {} ({}) and {}{}, then {}", c.op, ShapeToString(c.shape), c.front,
                           ShapeToString(c.parameter), c.swapped ? ", swapped" : "", c.behind));
  const Tensor x = RandomFloats(c.shape, 1), parameter = RandomFloats(c.parameter, 2);
  const Tensor* both[] = {&x, &parameter};
  const Tensor want = RunReference(ModelOf(c, parameter, false).Import(), both)[0];
  const Tensor got = Outputs(ModelOf(c, parameter, true), {x})[0];
  ASSERT_EQ(got.shape(), want.shape());
  // Folding rounds weights of at most 2 once more, in sums of at most 3 * 3 terms below 2^6.
  const double tolerance = 9 * 64 * 0x1p-23;
  for (int64_t i = 0; i < want.size(); ++i)
    ASSERT_NEAR(got.floats()[i], want.floats()[i], tolerance) << "element " << i;
}

TEST(EqualSizes, ParametersBelongToTheirPlace) {
  for (const Shape& shape : {Shape{3, 3}, Shape{3, 3, 3}, Shape{3, 3, 3, 3}, Shape{1, 3, 3, 3}}) {
    std::vector<std::string> fronts = {"", "BatchNormalization", "MatMul"}, behinds = {"", "Relu"};
    if (shape.size() == 4) {
      fronts.insert(fronts.end(), {"Conv", "ConvTranspose"});
      behinds.emplace_back("Conv");
    }
    for (const Shape& parameter : ParameterShapes(shape.size())) {
      for (const char* op : {"Add", "Sub", "Mul", "Div", "Min", "Max", "PRelu", "Where"}) {
        for (const bool swapped : {false, true}) {
          const std::optional<Shape> all = BroadcastShapes(shape, parameter);
          if (op == std::string("PRelu") && (swapped || all != shape)) continue;
          for (const std::string& front : fronts) {
            for (const std::string& behind : behinds) {
              ExpectSameAsInput({front, op, shape, parameter, swapped, behind});
              if (testing::Test::HasFatalFailure()) return;
            }
          }
        }
      }
    }
  }
}

// One slope for each channel, as a list, is what opset 6 says, and what converters write still where that
// does not fit the last axis.
TEST(EqualSizes, ListsOfSlopes) {
  const auto run = [](int64_t opset, const Shape& shape) {
    Tensor x(shape);
    std::fill_n(x.floats(), x.size(), -1.0f);
    return F(TestNode("PRelu", opset).Input(x).Const(Floats({2}, {3, 4})).Evaluate());
  };
  EXPECT_EQ(run(7, {1, 2, 1, 2}), (std::vector<float>{-3, -4, -3, -4}));
  EXPECT_EQ(run(6, {1, 2, 1, 2}), (std::vector<float>{-3, -3, -4, -4}));
  EXPECT_EQ(run(16, {1, 2, 1, 3}), (std::vector<float>{-3, -3, -3, -4, -4, -4}));
  EXPECT_EQ(run(16, {1, 2}), (std::vector<float>{-3, -4}));
}

// Until opset 8, with spatial = 0, there is a mean for each element, which is no matter of channels.
TEST(EqualSizes, BatchNormalizationOfElements) {
  for (const Shape& shape : {Shape{2, 3, 3}, Shape{2, 3, 2, 3}, Shape{2, 3}}) {
    const Shape parameters(shape.begin() + 1, shape.end());
    const Tensor x = RandomFloats(shape, 1), scale = RandomFloats(parameters, 2),
                 shift = RandomFloats(parameters, 3), mean = RandomFloats(parameters, 4);
    Tensor variance = RandomFloats(parameters, 5);
    for (float& value : std::span(variance.floats(), static_cast<size_t>(variance.size())))
      value = std::abs(value);
    const Tensor* const given[] = {&scale, &shift, &mean, &variance};
    for (const int64_t opset : {7, 8}) {
      for (const bool known : {true, false}) {
        TestNode node("BatchNormalization", opset);
        node.Attr("spatial", int64_t{0}).Attr("epsilon", 0.5f).Input(x);
        for (const Tensor* parameter : given) {
          known ? node.Const(*parameter) : node.Input(*parameter);
        }
        const Tensor got = node.Evaluate();
        for (int64_t i = 0; i < x.size(); ++i) {
          const int64_t k = i % mean.size();
          const double want =
              (x.floats()[i] - mean.floats()[k]) / std::sqrt(variance.floats()[k] + 0.5) * scale.floats()[k] +
              shift.floats()[k];
          ASSERT_NEAR(got.floats()[i], want, 16 * 0x1p-23)
              << "element " << i << " of " << ShapeToString(shape);
        }
      }
    }
  }
  TestNode node("BatchNormalization", 8);
  node.Attr("spatial", int64_t{0}).Input(Counting({1, 2, 3}));
  for (int i = 0; i < 4; ++i) node.Const(Counting({2}));
  EXPECT_NE(node.Refusal().find("input 1 has 2 values for 6 elements of an image"), std::string::npos);
}

}  // namespace
}  // namespace tilesmith
