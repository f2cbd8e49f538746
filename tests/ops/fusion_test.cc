#include <gtest/gtest.h>

#include "ops/base/op.h"
#include "ops/conv/conv.h"
#include "ops/dense/tasks.h"
#include "ops/elementwise/activations.h"
#include "ops/elementwise/batch_norm.h"
#include "ops/networks/networks.h"
#include "ops/passes/passes.h"

namespace tilesmith {
namespace {

using Id = Graph::NodeId;

class FusionTest : public testing::Test {
 protected:
  FusionTest() { input_ = graph_.Add("input", std::make_shared<InputOp>(Shape{1, 8, 5, 5}), {}); }

  Id Conv(const std::string& text, const std::vector<Id>& inputs) {
    const ConvWorkload w = ParseWorkload(text);
    return graph_.Add(
        "conv", std::make_shared<ConvOp>(w, std::make_shared<Tensor>(w.weights_shape()), nullptr), inputs);
  }
  Id Relu(Id x) {
    return graph_.Add("relu", std::make_shared<ActivationOp>(Activation{ActivationKind::kRelu}), {x});
  }
  Id ScaleShift(Id x, ActivationKind kind) {
    const std::vector<float> values(8, 2.0f);
    return graph_.Add("bn", std::make_shared<ScaleShiftOp>(values, values, Activation{kind}), {x});
  }
  std::vector<std::string> Pairs() {
    std::vector<std::string> texts;
    for (const FusablePair& pair : FusablePairs(graph_)) texts.push_back(WorkloadToString(pair.workload));
    return texts;
  }

  const std::string plain_ = "mb1ic8ih5oc8oh5kh1";
  const std::string depthwise_ = "g8mb1ic8ih5oc8oh5kh3ph1";
  Graph graph_;
  Id input_;
};

TEST_F(FusionTest, AConvInTheMiddleIsInTwoPairs) {
  graph_.MarkOutput(Conv(plain_, {Conv(depthwise_, {Conv(plain_, {input_})})}));
  EXPECT_EQ(Pairs(), (std::vector{plain_ + ">" + depthwise_, depthwise_ + ">" + plain_}));
  EXPECT_EQ(FusablePairs(graph_)[0].first, 1U);
  EXPECT_EQ(FusablePairs(graph_)[0].conv, 2U);
}

TEST_F(FusionTest, ScalesAndActivationsInFrontOfAConv) {
  const Id a = Conv(plain_, {ScaleShift(input_, ActivationKind::kRelu)});
  const Id b = Conv(plain_, {ScaleShift(a, ActivationKind::kNone)});
  graph_.MarkOutput(Conv(plain_, {Relu(b)}));
  EXPECT_EQ(Pairs(), (std::vector{"scale_shift+relu>" + plain_, "scale_shift>" + plain_, "relu>" + plain_}));
}

TEST_F(FusionTest, NotWhatIsUsedElsewhereOrCannotBeInAKernel) {
  const Id both = Relu(input_), output = Relu(input_);
  graph_.MarkOutput(output);
  const Id sigmoid = ScaleShift(input_, ActivationKind::kSigmoid);
  graph_.MarkOutput(Conv(plain_, {sigmoid}));
  const Id a = Conv(plain_, {both});
  const Id b = Conv(plain_ + "+sum", {output, both});
  const Id c = Conv(plain_ + "+sum", {a, b});       // a > c
  const Id d = Conv(plain_ + "+sum", {input_, c});  // c is the residual
  const Id e = Conv(plain_, {d});                   // d adds one itself
  const Id twice = Relu(e);
  graph_.MarkOutput(Conv(plain_ + "+sum", {twice, twice}));
  EXPECT_EQ(Pairs(), std::vector{plain_ + ">" + plain_ + "+sum"});
}

TEST(FusablePairs, OfTheNetworksTheyAreMeantFor) {
  size_t depthwise = 0, input_ops = 0;
  for (const FusablePair& pair : FusablePairs(OptimizeGraph(BuildNetwork("mobilenet_v1")))) {
    depthwise += !pair.workload.before.empty() && pair.workload.before[0].g > 1;
  }
  for (const FusablePair& pair : FusablePairs(OptimizeGraph(BuildNetwork("densenet121")))) {
    input_ops += pair.workload.pre.scale_shift;
  }
  EXPECT_EQ(depthwise, 13U);
  EXPECT_EQ(input_ops, 61U);  // of each of 58 layers the first BN, the transitions' three
}

}  // namespace
}  // namespace tilesmith
