// Importers and references of the ops that resize images: transposed convs, pixel shuffles, interpolation.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "tests/ops/test_node.h"
#include "tests/support/random.h"

namespace tilesmith {
namespace {

using testing::ElementsAre;
using testing::FloatNear;
using testing::HasSubstr;
using testing::Pointwise;

Tensor RandomIntegers(const Shape& shape, uint64_t seed) {
  Tensor tensor(shape);
  FillIntegers({tensor.floats(), static_cast<size_t>(tensor.size())}, seed);
  return tensor;
}

TEST(ConvTransposeNode, ByHand) {
  TestNode node("ConvTranspose");
  node.Input(Counting({1, 1, 2, 2})).Const(Floats({1, 1, 2, 2}, {1, 10, 100, 1000}));
  EXPECT_THAT(F(node.Evaluate()), ElementsAre(1, 12, 20, 103, 1234, 2040, 300, 3400, 4000));
  node.Attr("strides", IntList{2, 2});
  EXPECT_THAT(F(node.Evaluate()),
              ElementsAre(1, 10, 2, 20, 100, 1000, 200, 2000, 3, 30, 4, 40, 300, 3000, 400, 4000));
  node.Attr("pads", IntList{1, 0, 0, 2}).Const(Floats({1}, {5}));
  EXPECT_THAT(F(node.Evaluate()), ElementsAre(105, 1005, 8, 35, 305, 3005));
}

// The sizes of ONNX's formulas, case by case.
TEST(ConvTransposeNode, OutputSizes) {
  const auto shape = [](const std::function<void(TestNode&)>& change) {
    TestNode node("ConvTranspose");
    node.Attr("strides", IntList{2, 3}).Input(Counting({1, 2, 4, 5})).Const(Counting({2, 6, 3, 3}));
    change(node);
    return node.Evaluate().shape();
  };
  EXPECT_EQ(shape([](TestNode&) {}), (Shape{1, 6, 9, 15}));
  EXPECT_EQ(shape([](TestNode& n) { n.Attr("output_padding", IntList{1, 2}); }), (Shape{1, 6, 10, 17}));
  EXPECT_EQ(shape([](TestNode& n) { n.Attr("output_shape", IntList{10, 8}); }), (Shape{1, 6, 10, 8}));
  EXPECT_EQ(shape([](TestNode& n) { n.Attr("auto_pad", std::string("SAME_UPPER")); }), (Shape{1, 6, 8, 15}));
  EXPECT_EQ(shape([](TestNode& n) { n.Attr("dilations", IntList{2, 1}); }), (Shape{1, 6, 11, 15}));
  EXPECT_EQ(shape([](TestNode& n) { n.Attr("group", int64_t{2}); }), (Shape{1, 12, 9, 15}));
}

struct TransposedCase {
  Shape input, weights;  // {C, OC, kh, kw}
  IntList strides, dilations, pads, extra;
  int64_t groups = 1;
};

TransposedCase RandomCase(uint64_t seed) {
  TestRandom random(seed);
  const auto pair = [&](int64_t low, int64_t high) {
    return IntList{random.Integer(low, high), random.Integer(low, high)};
  };
  TransposedCase c;
  c.groups = random.Integer(1, 2);
  const int64_t channels = c.groups * random.Integer(1, 3);
  const IntList image = pair(2, 5), kernel = pair(1, 4);
  c.input = {random.Integer(1, 2), channels, image[0], image[1]};
  c.weights = {channels, random.Integer(1, 3), kernel[0], kernel[1]};
  c.strides = pair(1, 3), c.dilations = random.Integer(0, 2) == 0 ? pair(1, 2) : IntList{1, 1};
  c.pads = {random.Integer(0, kernel[0] - 1), random.Integer(0, kernel[1] - 1),
            random.Integer(0, kernel[0] - 1), random.Integer(0, kernel[1] - 1)};
  c.extra = {random.Integer(0, c.strides[0] - 1), random.Integer(0, c.strides[1] - 1)};
  return c;
}

// Output element by output element, from what reaches it.
float Gathered(const TransposedCase& c, const Tensor& in, const Tensor& w, const Dims4& at) {
  const int64_t group = at.c / c.weights[1], per_group = c.input[1] / c.groups;
  double sum = 0;
  for (int64_t ch = group * per_group; ch < (group + 1) * per_group; ++ch) {
    for (int64_t i = 0; i < c.weights[2]; ++i) {
      for (int64_t j = 0; j < c.weights[3]; ++j) {
        const int64_t y = at.h + c.pads[0] - i * c.dilations[0], x = at.w + c.pads[1] - j * c.dilations[1];
        if (y < 0 || x < 0 || y % c.strides[0] != 0 || x % c.strides[1] != 0) continue;
        const int64_t u = y / c.strides[0], v = x / c.strides[1];
        if (u >= c.input[2] || v >= c.input[3]) continue;
        const int64_t o = at.c % c.weights[1];
        sum += in.floats()[((at.n * c.input[1] + ch) * c.input[2] + u) * c.input[3] + v] *
               w.floats()[((ch * c.weights[1] + o) * c.weights[2] + i) * c.weights[3] + j];
      }
    }
  }
  return static_cast<float>(sum);
}

TEST(ConvTransposeNode, EqualsTheGatherFormula) {
  int ran = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const TransposedCase c = RandomCase(seed);
    const Tensor in = RandomIntegers(c.input, seed), w = RandomIntegers(c.weights, seed + 1000);
    const auto size = [&](int axis) {
      return c.strides[axis] * (c.input[2 + axis] - 1) + (c.weights[2 + axis] - 1) * c.dilations[axis] + 1 +
             c.extra[axis] - c.pads[axis] - c.pads[axis + 2];
    };
    if (size(0) < 1 || size(1) < 1) continue;
    TestNode node("ConvTranspose");
    node.Attr("strides", c.strides).Attr("dilations", c.dilations).Attr("pads", c.pads);
    node.Attr("output_padding", c.extra).Attr("group", c.groups).Input(in).Const(w);
    const Tensor out = node.Evaluate();
    ASSERT_EQ(out.shape(), (Shape{c.input[0], c.groups * c.weights[1], size(0), size(1)}));
    const Dims4 d = ToDims4(out.shape());
    for (int64_t i = 0; i < out.size(); ++i) {
      const Dims4 at{i / (d.c * d.h * d.w), i / (d.h * d.w) % d.c, i / d.w % d.h, i % d.w};
      ASSERT_EQ(out.floats()[i], Gathered(c, in, w, at)) << "element " << i;
    }
    ++ran;
  }
  EXPECT_GT(ran, 250);
}

TEST(ConvTransposeNode, Refusals) {
  const auto node = [](const Shape& input) {
    return TestNode("ConvTranspose").Input(Counting(input)).Const(Counting({2, 3, 2, 2}));
  };
  EXPECT_THAT(TestNode("ConvTranspose").Input(Counting({1, 2})).Const(Counting({2, 3})).Refusal(),
              HasSubstr("one, two and three dimensions"));
  EXPECT_THAT(TestNode("ConvTranspose").Input(Counting({1, 2, 5, 5})).Input(Counting({2, 3, 2, 2})).Refusal(),
              HasSubstr("must be constant"));
  EXPECT_THAT(node({1, 3, 5, 5}).Refusal(), HasSubstr("3 input channels in 1 groups"));
  EXPECT_THAT(node({1, 2, 5, 5}).Const(Counting({4})).Refusal(), HasSubstr("4 values for 3 channels"));
  EXPECT_THAT(node({1, 2, 1, 1}).Attr("pads", IntList{1, 1, 1, 1}).Refusal(), HasSubstr("leave 0x0"));
  EXPECT_THAT(node({1, 2, 5, 5}).Attr("output_shape", IntList{1, 2, 3}).Refusal(),
              HasSubstr("output_shape has 3 values"));
  EXPECT_THAT(node({1, 2, 5, 5}).Attr("output_padding", IntList{0, -1}).Refusal(),
              HasSubstr("output_padding is [0, -1]"));
}

TEST(DepthToSpaceNode, ByHand) {
  const auto shuffle = [](const char* mode) {
    TestNode node("DepthToSpace");
    node.Attr("blocksize", int64_t{2}).Attr("mode", std::string(mode)).Input(Counting({1, 8, 1, 1}));
    return node;
  };
  EXPECT_THAT(F(shuffle("DCR").Evaluate()), ElementsAre(1, 3, 5, 7, 2, 4, 6, 8));
  EXPECT_THAT(F(shuffle("CRD").Evaluate()), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8));
  EXPECT_THAT(shuffle("XYZ").Refusal(), HasSubstr("mode \"XYZ\""));
  EXPECT_THAT(TestNode("DepthToSpace").Input(Counting({1, 4, 1, 1})).Refusal(), HasSubstr("blocksize is 0"));
  EXPECT_THAT(TestNode("DepthToSpace").Attr("blocksize", int64_t{2}).Input(Counting({1, 6, 1, 1})).Refusal(),
              HasSubstr("4 must divide the channels"));
}

TestNode ResizeNode(const std::string& mode, const std::string& coordinates, int64_t opset = 13) {
  TestNode node("Resize", opset);
  node.Attr("mode", mode).Attr("coordinate_transformation_mode", coordinates);
  return node;
}

// The examples of ONNX's operator page.
TEST(ResizeNode, ByHand) {
  const Tensor square = Counting({1, 1, 2, 2});
  const auto doubled = [&](TestNode node) {
    return F(node.Input(square).Absent().Const(Floats({4}, {1, 1, 2, 2})).Evaluate());
  };
  EXPECT_THAT(doubled(ResizeNode("nearest", "asymmetric").Attr("nearest_mode", std::string("floor"))),
              ElementsAre(1, 1, 2, 2, 1, 1, 2, 2, 3, 3, 4, 4, 3, 3, 4, 4));
  EXPECT_THAT(doubled(ResizeNode("linear", "half_pixel")),
              ElementsAre(1, 1.25f, 1.75f, 2, 1.5f, 1.75f, 2.25f, 2.5f, 2.5f, 2.75f, 3.25f, 3.5f, 3, 3.25f,
                          3.75f, 4));
  EXPECT_THAT(doubled(ResizeNode("linear", "align_corners")),
              Pointwise(FloatNear(1e-6f),
                        std::vector<float>{1, 4 / 3.f, 5 / 3.f, 2, 5 / 3.f, 2, 7 / 3.f, 8 / 3.f, 7 / 3.f,
                                           8 / 3.f, 3, 10 / 3.f, 3, 10 / 3.f, 11 / 3.f, 4}));
  const Tensor wide = Counting({1, 1, 2, 4});
  const Tensor shrunk = ResizeNode("linear", "half_pixel")
                            .Input(wide)
                            .Const(Floats({0}, {}))
                            .Const(Floats({4}, {1, 1, 0.6f, 0.6f}))
                            .Evaluate();
  EXPECT_THAT(F(shrunk), Pointwise(FloatNear(1e-5f), std::vector<float>{2.6666665f, 4.3333331f}));
  const Tensor sized = ResizeNode("nearest", "half_pixel", 18)
                           .Attr("axes", IntList{-1, 2})
                           .Input(wide)
                           .Absent()
                           .Absent()
                           .Const(Ints({2}, {2, 1}))
                           .Evaluate();
  EXPECT_EQ(sized.shape(), (Shape{1, 1, 1, 2}));
  EXPECT_THAT(F(sized), ElementsAre(1, 3)) << "0.5 and 2.5, rounded down";
}

// Weights of 0 beside an infinity would make it a NaN.
TEST(ResizeNode, OfTheSameSizeChangesNothing) {
  const float inf = std::numeric_limits<float>::infinity();
  for (const char* mode : {"nearest", "linear", "cubic"}) {
    for (const char* coordinates : {"half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"}) {
      EXPECT_THAT(F(ResizeNode(mode, coordinates)
                        .Input(Floats({1, 1, 2, 2}, {1, inf, -inf, 4}))
                        .Absent()
                        .Absent()
                        .Const(Ints({4}, {1, 1, 2, 2}))
                        .Evaluate()),
                  ElementsAre(1, inf, -inf, 4))
          << mode << " " << coordinates;
    }
  }
}

TEST(ResizeNode, OfOldOpsets) {
  const Tensor row = Counting({1, 1, 1, 3});
  EXPECT_THAT(F(TestNode("Upsample", 7).Attr("scales", std::vector<float>{1, 1, 1, 2}).Input(row).Evaluate()),
              ElementsAre(1, 1, 2, 2, 3, 3));
  EXPECT_THAT(F(TestNode("Upsample", 9)
                    .Attr("mode", std::string("linear"))
                    .Input(row)
                    .Const(Floats({4}, {1, 1, 1, 2}))
                    .Evaluate()),
              ElementsAre(1, 1.5f, 2, 2.5f, 3, 3));
  EXPECT_THAT(F(TestNode("Resize", 10).Input(row).Const(Floats({4}, {1, 1, 1, 0.7f})).Evaluate()),
              ElementsAre(1, 3));
  EXPECT_THAT(TestNode("Resize", 10).Input(row).Const(Floats({4}, {1, 1, 2, 0.7f})).Refusal(),
              HasSubstr("opset 10"));
  EXPECT_THAT(TestNode("Upsample", 7).Input(row).Refusal(), HasSubstr("no scales"));
}

TEST(ResizeNode, Refusals) {
  const auto refusal = [](TestNode node) {
    return node.Input(Counting({1, 1, 2, 2})).Absent().Const(Floats({4}, {1, 1, 2, 2})).Refusal();
  };
  EXPECT_THAT(refusal(ResizeNode("sinc", "half_pixel")), HasSubstr("mode \"sinc\""));
  EXPECT_THAT(refusal(ResizeNode("linear", "sideways")), HasSubstr("\"sideways\""));
  EXPECT_THAT(refusal(ResizeNode("linear", "tf_crop_and_resize")), HasSubstr("needs the input roi"));
  EXPECT_THAT(ResizeNode("linear", "tf_crop_and_resize")
                  .Input(Counting({1, 1, 2, 2}))
                  .Const(Floats({5}, {0, 0, 0, 0, 1}))
                  .Const(Floats({4}, {1, 1, 2, 2}))
                  .Refusal(),
              HasSubstr("are given for 4 axes"));
  EXPECT_THAT(ResizeNode("linear", "half_pixel", 18)
                  .Attr("keep_aspect_ratio_policy", std::string("none"))
                  .Input(Counting({1, 1, 2, 2}))
                  .Absent()
                  .Absent()
                  .Const(Ints({4}, {1, 1, 4, 4}))
                  .Refusal(),
              HasSubstr("\"none\" is unknown"));
  EXPECT_THAT(refusal(ResizeNode("linear", "half_pixel", 18).Attr("axes", IntList{2, 3})),
              HasSubstr("4 sizes or scales are given for 2 axes"));
  const auto linear = [] { return ResizeNode("linear", "half_pixel").Input(Counting({1, 1, 2, 2})); };
  EXPECT_THAT(linear().Refusal(), HasSubstr("either scales or sizes"));
  EXPECT_THAT(linear().Absent().Input(Floats({4}, {1, 1, 2, 2})).Refusal(), HasSubstr("must be constant"));
  EXPECT_THAT(linear().Absent().Const(Floats({4}, {1, 1, 2, 0.4f})).Refusal(), HasSubstr("scale 0.4"));
  EXPECT_THAT(linear().Absent().Absent().Const(Ints({4}, {1, 1, 2, 0})).Refusal(),
              HasSubstr("makes 0 elements"));
}

// A Resize of one plane, with its definitions followed element by element in double.
struct ResizeByDefinition {
  std::string mode, coordinates, rounding;
  Shape in, out;
  std::vector<double> scales;
  bool antialias = false, exclude_outside = false;
  double cubic = -0.75;

  // Where output position i stands in the input.
  double Position(size_t axis, int64_t i) const {
    const double scale = scales[axis], at = static_cast<double>(i);
    const auto last = [&](const Shape& shape) { return static_cast<double>(shape[axis] - 1); };
    if (scale == 1) return at;
    if (coordinates == "asymmetric") return at / scale;
    if (coordinates == "tf_half_pixel_for_nn") return (at + 0.5) / scale;
    if (coordinates == "align_corners") return out[axis] == 1 ? 0 : at * last(in) / last(out);
    if (coordinates == "pytorch_half_pixel" && out[axis] == 1) return 0;
    if (coordinates == "half_pixel_symmetric") {
      const auto whole = static_cast<double>(in[axis]);
      const double adjustment = static_cast<double>(out[axis]) / (scale * whole);
      return whole / 2 * (1 - adjustment) + (at + 0.5) / scale - 0.5;
    }
    return (at + 0.5) / scale - 0.5;
  }

  double Nearest(double at) const {
    if (rounding == "floor") return std::floor(at);
    if (rounding == "ceil") return std::ceil(at);
    const double below = std::floor(at);
    if (at - below == 0.5) return rounding == "round_prefer_ceil" ? below + 1 : below;
    return std::round(at);
  }

  double Kernel(double distance) const {
    const double x = std::abs(distance);
    if (mode == "linear") return std::max(0.0, 1 - x);
    if (x <= 1) return (cubic + 2) * x * x * x - (cubic + 3) * x * x + 1;
    return x < 2 ? cubic * x * x * x - 5 * cubic * x * x + 8 * cubic * x - 4 * cubic : 0;
  }

  // A window around the element on the left, as ONNX defines it, and what each of its elements counts.
  std::vector<std::pair<double, double>> Window(size_t axis, int64_t i) const {
    const double position = Position(axis, i), scale = antialias ? std::min(1.0, scales[axis]) : 1;
    const double left = std::ceil(position) - 1, ratio = position - left;
    const double start = std::floor((mode == "linear" ? -1 : -2) / scale) + 1;
    std::vector<std::pair<double, double>> window;
    double sum = 0;
    for (double at = start; at < 2 - start; ++at) {
      const bool inside = left + at >= 0 && left + at < static_cast<double>(in[axis]);
      window.emplace_back(left + at, exclude_outside && !inside ? 0 : Kernel(scale * (at - ratio)));
      sum += window.back().second;
    }
    for (auto& [at, weight] : window) weight /= sum;
    return window;
  }

  double Element(const Tensor& image, int64_t i, int64_t j) const {
    // Outside lies what is at the edge.
    const auto pixel = [&](double y, double x) {
      const auto row = static_cast<int64_t>(std::clamp<double>(y, 0, static_cast<double>(in[2] - 1)));
      const auto column = static_cast<int64_t>(std::clamp<double>(x, 0, static_cast<double>(in[3] - 1)));
      return static_cast<double>(image.floats()[row * in[3] + column]);
    };
    const double y = Position(2, i), x = Position(3, j);
    if (mode == "nearest") return pixel(Nearest(y), Nearest(x));
    if (mode == "cubic" || antialias) {
      double sum = 0;
      for (const auto& [row, of_row] : Window(2, i)) {
        for (const auto& [column, of_column] : Window(3, j)) sum += of_row * of_column * pixel(row, column);
      }
      return sum;
    }
    const double top = std::floor(y), left = std::floor(x), v = y - top, u = x - left;
    return (1 - v) * ((1 - u) * pixel(top, left) + u * pixel(top, left + 1)) +
           v * ((1 - u) * pixel(top + 1, left) + u * pixel(top + 1, left + 1));
  }
};

// Scales that floats hold exactly, so that no position falls on the other side of a tie.
TEST(ResizeNode, FollowsTheDefinitions) {
  TestRandom random(5);
  for (const char* coordinates :
       {"asymmetric", "half_pixel", "pytorch_half_pixel", "align_corners", "tf_half_pixel_for_nn"}) {
    for (const char* rounding : {"floor", "ceil", "round_prefer_floor", "round_prefer_ceil", ""}) {
      for (int trial = 0; trial < 12; ++trial) {
        ResizeByDefinition want;
        want.mode = *rounding == 0 ? "linear" : "nearest";
        want.coordinates = coordinates, want.rounding = rounding;
        want.in = {1, 1, random.Integer(2, 6), random.Integer(2, 6)};
        const std::vector<float> scales = {1, 1, random.Pick(std::vector{0.5f, 1.0f, 1.5f, 2.0f, 4.0f}),
                                           random.Pick(std::vector{0.5f, 0.75f, 2.0f, 2.5f, 8.0f})};
        want.scales = {scales.begin(), scales.end()};
        TestNode node = ResizeNode(want.mode, coordinates);
        if (*rounding != 0) node.Attr("nearest_mode", std::string(rounding));
        const Tensor image = RandomIntegers(want.in, trial);
        node.Input(image).Absent().Const(Floats({4}, scales));
        const bool whole = std::fmod(static_cast<float>(want.in[2]) * scales[2], 1.0f) == 0 &&
                           std::fmod(static_cast<float>(want.in[3]) * scales[3], 1.0f) == 0;
        if (want.coordinates == "align_corners" && !whole) {
          EXPECT_THAT(node.Refusal(), HasSubstr("no whole size"));
          continue;
        }
        const Tensor out = node.Evaluate();
        want.out = out.shape();
        ASSERT_EQ(want.out[2], static_cast<int64_t>(static_cast<double>(want.in[2]) * want.scales[2]));
        ASSERT_EQ(want.out[3], static_cast<int64_t>(static_cast<double>(want.in[3]) * want.scales[3]));
        for (int64_t i = 0; i < out.size(); ++i) {
          ASSERT_NEAR(out.floats()[i], want.Element(image, i / want.out[3], i % want.out[3]), 2e-5)
              << coordinates << " " << rounding << " " << ShapeToString(want.in) << " to "
              << ShapeToString(want.out) << " element " << i;
        }
      }
    }
  }
}

TEST(ResizeNode, CubicAndAntialiasedFollowTheDefinitions) {
  TestRandom random(6);
  for (const char* coordinates :
       {"asymmetric", "half_pixel", "pytorch_half_pixel", "align_corners", "half_pixel_symmetric"}) {
    for (int trial = 0; trial < 48; ++trial) {
      ResizeByDefinition want;
      want.antialias = trial % 2 == 1;
      want.mode = trial % 4 == 1 ? "linear" : "cubic";
      want.exclude_outside = want.mode == "cubic" && trial % 3 == 0;
      want.coordinates = coordinates;
      want.cubic = trial % 5 == 0 ? -0.5 : -0.75;
      want.in = {1, 1, random.Integer(1, 9), random.Integer(1, 9)};
      want.out = {1, 1, random.Integer(1, 14), random.Integer(1, 14)};
      for (size_t axis = 0; axis < 4; ++axis) {
        want.scales.push_back(static_cast<float>(want.out[axis]) / static_cast<float>(want.in[axis]));
      }
      const Tensor image = RandomIntegers(want.in, trial);
      const Tensor out = ResizeNode(want.mode, coordinates, 19)
                             .Attr("antialias", int64_t{want.antialias})
                             .Attr("exclude_outside", int64_t{want.exclude_outside})
                             .Attr("cubic_coeff_a", static_cast<float>(want.cubic))
                             .Input(image)
                             .Absent()
                             .Absent()
                             .Const(Ints({4}, want.out))
                             .Evaluate();
      ASSERT_EQ(out.shape(), want.out);
      for (int64_t i = 0; i < out.size(); ++i) {
        ASSERT_NEAR(out.floats()[i], want.Element(image, i / want.out[3], i % want.out[3]), 1e-3)
            << coordinates << " trial " << trial << " " << ShapeToString(want.in) << " to "
            << ShapeToString(want.out) << " element " << i;
      }
    }
  }
}

TEST(ResizeNode, CropsAndKeepsTheAspect) {
  const auto crop = [](const std::vector<float>& roi, const std::string& mode) {
    return F(ResizeNode(mode, "tf_crop_and_resize")
                 .Attr("extrapolation_value", 9.0f)
                 .Input(Counting({1, 1, 3, 3}))
                 .Const(Floats({8}, roi))
                 .Absent()
                 .Const(Ints({4}, {1, 1, 2, 2}))
                 .Evaluate());
  };
  EXPECT_THAT(crop({0, 0, 0, 0, 1, 1, 1, 0.5f}, "linear"), ElementsAre(1, 2, 7, 8));
  EXPECT_THAT(crop({0, 0, 0, 0, 1, 1, 0.25f, 0.75f}, "linear"), ElementsAre(1, 2.5f, 2.5f, 4));
  EXPECT_THAT(crop({0, 0, 0.5f, -1, 1, 1, 2, 0}, "nearest"), ElementsAre(9, 4, 9, 9));
  EXPECT_THAT(crop({0, 0, NAN, 0, 1, 1, 1, 1}, "cubic"), ElementsAre(9, 9, 9, 9));
  const auto sized = [](const std::string& policy) {
    return ResizeNode("nearest", "half_pixel", 18)
        .Attr("keep_aspect_ratio_policy", policy)
        .Attr("axes", IntList{3, 2})
        .Input(Counting({1, 1, 4, 8}))
        .Absent()
        .Absent()
        .Const(Ints({2}, {12, 2}))
        .Evaluate()
        .shape();
  };
  EXPECT_EQ(sized("not_larger"), (Shape{1, 1, 2, 4}));
  EXPECT_EQ(sized("not_smaller"), (Shape{1, 1, 6, 12}));
}

}  // namespace
}  // namespace tilesmith
