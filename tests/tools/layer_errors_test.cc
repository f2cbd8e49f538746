#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "graph_tuner/check/output_errors.h"
#include "graph_tuner/executor/heuristic_plan.h"
#include "graph_tuner/planner/type_choice.h"
#include "layouts/base/text_file.h"
#include "tests/support/ops/onnx_model.h"
#include "tests/support/random.h"
#include "tests/support/temporary_files.h"
#include "tools/quantize/calibration_inputs.h"
#include "tools/quantize/in_place.h"
#include "tools/tune/graph_tune_model.h"

namespace tilesmith {
namespace {

void AddConv(OnnxModel& model, const std::string& from, const std::string& to, int64_t in, int64_t out,
             uint64_t seed) {
  std::vector<float> weights(static_cast<size_t>(in * out * 9));
  FillUniform(weights, seed);
  model.Floats(to + "_w", {out, in, 3, 3}, weights);
  SetInts(model.Node("Conv", {from, to + "_w"}, {to}, to + "_node"), "pads", {1, 1, 1, 1});
}

// Two branches of convolutions that meet, each followed by a Relu; a dense layer; one convolution's output is
// an output of the network's, too.
std::string BranchesBytes() {
  OnnxModel model;
  model.Input("x", {1, 4, 10, 10});
  AddConv(model, "x", "a", 4, 8, 1);
  model.Node("Relu", {"a"}, {"ra"});
  AddConv(model, "ra", "b", 8, 8, 2);
  AddConv(model, "ra", "c", 8, 8, 3);
  model.Node("Relu", {"b"}, {"rb"});
  model.Node("Add", {"rb", "c"}, {"sum"}, "add");
  model.Node("GlobalAveragePool", {"sum"}, {"pool"});
  model.Node("Flatten", {"pool"}, {"flat"});
  std::vector<float> weights(8 * 5);
  FillUniform(weights, 4);
  model.Floats("w", {8, 5}, weights);
  model.Node("Gemm", {"flat", "w"}, {"y"}, "fc");
  model.Output("y");
  model.Output("c");
  return model.Bytes();
}

class LayerErrorsTest : public testing::Test {
 protected:
  void SetUp() override {
    model_.model = directory_.File("branches.onnx");
    WriteTextFile(model_.model, BranchesBytes());
    CalibrateInPlace(machine_, {}, &model_);
  }
  // As the network of floats is beside which only this layer is in bytes.
  double ErrorOfOnly(const std::string& layer, const std::vector<std::string>& layers) const {
    ModelOptions floats = model_, one = model_;
    floats.quantization.reset();
    auto quantization = std::make_shared<ModelQuantization>(*model_.quantization);
    for (const std::string& other : layers)
      if (other != layer) quantization->options.keep.push_back(other);
    one.quantization = quantization;
    const Graph graph = LoadModel(floats), quantized = LoadModel(one);
    const OutputErrors errors(graph, machine_, SamplesOf(graph, {}, 2));
    return errors.Of(quantized, HeuristicPlan(quantized, machine_->target(), 1)).error;
  }

  QuantizedLayers LayerErrors() const {
    return QuantizedLayerErrors(ModelNetwork(model_, machine_), *model_.quantization, 2, machine_, {});
  }

  const TemporaryDirectory directory_;
  const DevicePtr machine_ = OpenDevice(DetectCpu(), 1);
  ModelOptions model_;
};

TEST_F(LayerErrorsTest, AreWhatTheLayerDoesAlone) {
  const QuantizedLayers quantized = LayerErrors();
  std::vector<std::string> weighted;
  for (const QuantizedLayerError& layer : quantized.layers)
    if (layer.weighted) weighted.push_back(layer.layer);
  EXPECT_THAT(weighted, testing::ElementsAre("a_node", "b_node", "c_node", "fc"));
  EXPECT_EQ(quantized.titles.at("ra"), "a_node");
  for (const QuantizedLayerError& layer : quantized.layers) {
    if (!layer.weighted) continue;
    const double injected = std::sqrt(layer.square), whole = ErrorOfOnly(layer.layer, weighted);
    EXPECT_GT(injected, 1e-5) << layer.layer;
    // What is quantised around it, to and fro, is in the network's only.
    EXPECT_LT(injected, 3 * whole + 1e-6) << layer.layer;
    EXPECT_GT(injected, whole / 5) << layer.layer;
  }
}

// Bytes take half the time; what they do to the outputs is limited.
TEST_F(LayerErrorsTest, TypesAreChosenWithinALimit) {
  const QuantizedLayers quantized = LayerErrors();
  ModelOptions floats = model_;
  floats.quantization.reset();
  const Graph graph = LoadModel(floats), bytes = LoadModel(model_);
  Plan float_plan = HeuristicPlan(graph, machine_->target(), 1),
       byte_plan = HeuristicPlan(bytes, machine_->target(), 1);
  for (NodePlan& node : float_plan.nodes) node.predicted_seconds = node.op_type == "Conv" ? 2e-3 : 1e-6;
  for (NodePlan& node : byte_plan.nodes)
    node.predicted_seconds = node.op_type == "QuantizedConv" ? 1e-3 : 1e-6;
  const ErrorSquares no_squares;
  const TypedNetworks networks = {graph, float_plan, nullptr, no_squares, bytes, byte_plan, quantized};
  double sum = 0, least = 1;
  for (const QuantizedLayerError& layer : quantized.layers) {
    sum += layer.square;
    if (layer.weighted) least = std::min(least, layer.square);
  }
  const auto kept_with_weights = [&](const TypeChoice& choice) {
    std::vector<std::string> kept;
    for (const QuantizedLayerError& layer : quantized.layers)
      if (layer.weighted && std::ranges::find(choice.keep, layer.layer) != choice.keep.end())
        kept.push_back(layer.layer);
    EXPECT_EQ(std::ssize(kept), static_cast<ptrdiff_t>(choice.weighted - choice.quantized));
    return kept;
  };
  const TypeChoice all = ChooseTypes(networks, 1);
  EXPECT_THAT(kept_with_weights(all), testing::Each("fc"));  // which takes as long either way
  EXPECT_LE(all.square, sum * (1 + 1e-9));
  EXPECT_LT(all.seconds, 4.1e-3);
  const TypeChoice some = ChooseTypes(networks, 0.7 * all.square);
  EXPECT_LE(some.square, 0.7 * all.square);
  EXPECT_GE(kept_with_weights(some).size(), 1u);
  EXPECT_GT(some.seconds, all.seconds);
  const TypeChoice none = ChooseTypes(networks, 0);
  EXPECT_EQ(none.quantized, 0u);
  EXPECT_EQ(none.square, 0);
  // Prices of their own: each tensor's, in the layout that it has.
  class Prices final : public CostSource {
   public:
    explicit Prices(double seconds) : seconds_(seconds) {}
    double TransformSeconds(const Shape&, const Layout&, const Layout&) override { return seconds_; }
    double CopySeconds(const Shape&, const Layout&) override { return seconds_; }
    double OpSeconds(const OpUse& use) override {
      EXPECT_THAT(use.op->Type(), testing::AnyOf("QuantizeLinear", "DequantizeLinear"));
      EXPECT_NE(use.op->MakeKernel({use.inputs, use.output, use.layout, DetectCpu(), use.input_types}),
                nullptr);
      return ElementCount(use.output) < 100 ? seconds_ : 0;
    }
    CrossingPrices PricesOfCrossing() override { return {}; }

   private:
    double seconds_;
  };
  Prices small(1e-3);
  TypedNetworks priced = networks;
  priced.costs = &small;
  // All but the dense layer, whose tensors are small and whose bytes gain nothing.
  EXPECT_EQ(ChooseTypes(priced, 1).quantized, 3u);
  EXPECT_THAT(kept_with_weights(ChooseTypes(priced, 1)), testing::ElementsAre("fc"));
  // Conversions that take longer than what bytes gain leave nothing in bytes.
  for (NodePlan& node : byte_plan.nodes)
    if (node.op_type.ends_with("QuantizeLinear") || node.op_type == "DequantizeLinear")
      node.predicted_seconds = 1;
  EXPECT_EQ(ChooseTypes(networks, 1).quantized, 0u);
}

// All mixtures of the layers are tried: none within the limit is faster than the choice's bound, and the
// choice is as fast as the fastest where it says so.
TEST_F(LayerErrorsTest, NoMixtureWithinTheLimitIsFasterThanTheBound) {
  const QuantizedLayers measured = LayerErrors();
  ModelOptions floats = model_;
  floats.quantization.reset();
  const Graph graph = LoadModel(floats), bytes = LoadModel(model_);
  int exact = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    TestRandom random(seed);
    QuantizedLayers layers = measured;
    for (QuantizedLayerError& layer : layers.layers) layer.square = layer.weighted ? random.Uniform(0, 1) : 0;
    const auto planned = [&](const Graph& of, float most) {
      Plan plan = HeuristicPlan(of, machine_->target(), 1);
      plan.transforms.clear();
      for (NodePlan& node : plan.nodes) {
        const bool conv = node.op_type == "Conv" || node.op_type == "QuantizedConv";
        node.predicted_seconds = conv ? random.Uniform(most / 3, most) : 0;
      }
      return plan;
    };
    const Plan float_plan = planned(graph, 3), byte_plan = planned(bytes, 1);
    const ErrorSquares no_squares;
    const TypedNetworks networks = {graph, float_plan, nullptr, no_squares, bytes, byte_plan, layers};
    const TypeChoice all = ChooseTypes(networks, 1e9);
    const double most = random.Uniform(0.2F, 0.9F) * all.square;
    const TypeChoice choice = ChooseTypes(networks, most);
    EXPECT_LE(choice.square, most);
    EXPECT_LE(choice.bound, choice.seconds);
    // Which layers are in bytes decides everything here: other squares leave only what they are worth.
    double fastest = std::numeric_limits<double>::infinity();
    std::vector<size_t> weighted;
    for (size_t i = 0; i < layers.layers.size(); ++i)
      if (layers.layers[i].weighted) weighted.push_back(i);
    for (unsigned set = 0; set < (1U << weighted.size()); ++set) {
      QuantizedLayers some = layers;
      double square = 0;
      for (size_t i = 0; i < weighted.size(); ++i) {
        double& of = some.layers[weighted[i]].square;
        if (set >> i & 1) square += of;
        of = set >> i & 1 ? 0 : 1e6;
      }
      if (square > most) continue;
      const TypedNetworks only = {graph, float_plan, nullptr, no_squares, bytes, byte_plan, some};
      fastest = std::min(fastest, ChooseTypes(only, 1).seconds);
    }
    EXPECT_GE(fastest, choice.bound * (1 - 1e-9));
    EXPECT_GE(choice.seconds, fastest * (1 - 1e-9));
    if (choice.bound >= choice.seconds * (1 - 1e-9)) {
      EXPECT_NEAR(choice.seconds, fastest, 1e-9 * fastest);
      ++exact;
    }
  }
  EXPECT_GT(exact, 30);  // so few layers leave little between two prices
}

// A convolution's output is added to what comes behind it, which takes the sum along: in bytes the first is
// worth it, and the second is not.
TEST_F(LayerErrorsTest, ASumCountsWithTheConvolutionThatTakesIt) {
  OnnxModel model;
  model.Input("x", {1, 4, 10, 10});
  AddConv(model, "x", "a", 4, 8, 1);
  AddConv(model, "a", "b", 8, 8, 2);
  AddConv(model, "b", "c", 8, 8, 3);
  model.Node("Add", {"b", "c"}, {"sum"}, "add");
  AddConv(model, "sum", "d", 8, 8, 4);
  model.Output("d");
  WriteTextFile(model_.model, model.Bytes());
  model_.quantization.reset();
  CalibrateInPlace(machine_, {}, &model_);
  const QuantizedLayers quantized = LayerErrors();
  ModelOptions floats = model_;
  floats.quantization.reset();
  const Graph graph = LoadModel(floats), bytes = LoadModel(model_);
  const std::map<std::string, std::string>& byte_nodes = quantized.byte_nodes;
  ASSERT_TRUE(bytes.Find(byte_nodes.at("b")) && bytes.Find(byte_nodes.at("sum")) &&
              !bytes.Find(byte_nodes.at("c")));
  const auto planned = [&](const Graph& of, const std::map<std::string, double>& seconds) {
    Plan plan = HeuristicPlan(of, machine_->target(), 1);
    for (NodePlan& node : plan.nodes) {
      const auto found = seconds.find(node.node);
      node.predicted_seconds = found == seconds.end() ? 1e-9 : found->second;
    }
    return plan;
  };
  const Plan float_plan = planned(graph, {{"a_node", 1}, {"b_node", 6}, {"c_node", 1}, {"d", 1}});
  const Plan byte_plan = planned(bytes, {{byte_nodes.at("a"), .5},
                                         {byte_nodes.at("b"), 5},
                                         {byte_nodes.at("sum"), 2},
                                         {byte_nodes.at("d"), .5}});
  const ErrorSquares no_squares;
  const TypeChoice choice =
      ChooseTypes({graph, float_plan, nullptr, no_squares, bytes, byte_plan, quantized}, 1e9);
  EXPECT_THAT(choice.keep, testing::ElementsAre("c_node", "add"));
  EXPECT_EQ(choice.weighted - choice.quantized, 1u);
  EXPECT_NEAR(choice.seconds, 7, 1e-3);
  // In floats nothing counts as an error, the sum neither.
  EXPECT_EQ(ChooseTypes({graph, float_plan, nullptr, no_squares, bytes, byte_plan, quantized}, 0).byte_square,
            0);
}

// Bytes take a third of the time, bf16 half of it, and a hundredth of the squares of bytes.
TEST_F(LayerErrorsTest, Bf16StandsBesideBytes) {
  const QuantizedLayers quantized = LayerErrors();
  ModelOptions floats = model_;
  floats.quantization.reset();
  const Graph graph = LoadModel(floats), bytes = LoadModel(model_);
  const auto planned = [&](const Graph& of, double seconds) {
    Plan plan = HeuristicPlan(of, machine_->target(), 1);
    for (NodePlan& node : plan.nodes) {
      const bool conv = node.op_type == "Conv" || node.op_type == "QuantizedConv";
      node.predicted_seconds = conv ? seconds : 1e-6;
    }
    return plan;
  };
  const Plan f32 = planned(graph, 3e-3), byte_plan = planned(bytes, 1e-3);
  Plan bf16 = planned(graph, 1.5e-3);
  for (NodePlan& node : bf16.nodes)
    if (node.record) node.record->template_name = "direct_bf16";
  ErrorSquares squares;
  for (const QuantizedLayerError& layer : quantized.layers)
    if (layer.weighted) squares[layer.layer] = layer.square / 100;
  const auto choose = [&](const Plan* bf16_plan, double most) {
    return ChooseTypes({graph, f32, bf16_plan, squares, bytes, byte_plan, quantized}, most);
  };
  const double all = choose(nullptr, 1).square;
  for (const double share : {0.02, 0.1, 0.3}) {
    const TypeChoice two = choose(nullptr, share * all), three = choose(&bf16, share * all);
    for (const TypeChoice& choice : {two, three}) EXPECT_LE(choice.square, share * all);
    EXPECT_EQ(two.square, two.byte_square);
    EXPECT_GT(three.square, three.byte_square) << share;
    EXPECT_LT(three.seconds, two.seconds) << share;
  }
  EXPECT_EQ(choose(&bf16, 0).square, 0);
}

}  // namespace
}  // namespace tilesmith
