#include "ops/base/activation.h"

#include <gmock/gmock.h>

#include <cmath>

#include "layouts/base/error.h"

namespace tilesmith {
namespace {

TEST(Activation, TextRoundTrips) {
  for (const char* text : {"", "relu", "clip:0:6", "clip:-0.5:inf", "clip:-1e30:1e-30", "leaky_relu:0.1",
                           "hard_sigmoid:0.2:0.5", "hard_swish", "sigmoid", "tanh", "silu"}) {
    EXPECT_EQ(ActivationToString(ParseActivation(text)), text);
  }
}

TEST(Activation, BadTextIsRefused) {
  for (const char* text : {"Relu", "relu:1", "clip", "clip:0", "clip:0:6:7", "clip:a:6",
                           "clip:0:", "leaky_relu:", "clip:nan:1", "relu "}) {
    EXPECT_THROW(ParseActivation(text), Error) << text;
  }
  try {
    ParseActivation("swish");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("\"swish\" (known: relu, clip:LOW:HIGH"));
  }
}

TEST(Activation, Values) {
  EXPECT_EQ(ParseActivation("relu").Apply(-2), 0);
  EXPECT_EQ(ParseActivation("relu").Apply(3), 3);
  EXPECT_EQ(ParseActivation("clip:-1:6").Apply(-2), -1);
  EXPECT_EQ(ParseActivation("clip:-1:6").Apply(9), 6);
  EXPECT_EQ(ParseActivation("leaky_relu:0.5").Apply(-4), -2);
  EXPECT_EQ(ParseActivation("hard_sigmoid:0.25:0.5").Apply(1), 0.75f);
  EXPECT_EQ(ParseActivation("hard_sigmoid:0.25:0.5").Apply(5), 1);
  EXPECT_EQ(ParseActivation("hard_swish").Apply(-3), 0);
  EXPECT_EQ(ParseActivation("hard_swish").Apply(3), 3);
  EXPECT_FLOAT_EQ(ParseActivation("sigmoid").Apply(1), 1 / (1 + std::exp(-1.0f)));
  EXPECT_EQ(ParseActivation("sigmoid").Apply(-200), 0);
  EXPECT_FLOAT_EQ(ParseActivation("tanh").Apply(0.5f), std::tanh(0.5f));
  EXPECT_FLOAT_EQ(ParseActivation("silu").Apply(2), 2 / (1 + std::exp(-2.0f)));
  EXPECT_EQ(ParseActivation("silu").Apply(-200), 0);
  EXPECT_EQ(Activation{}.Apply(-7), -7);
}

TEST(Activation, NanStaysNan) {
  for (const char* text : {"", "relu", "clip:0:6", "clip:-0.5:inf", "clip:-inf:3", "leaky_relu:0.1",
                           "hard_sigmoid:0.2:0.5", "hard_swish", "sigmoid", "tanh", "silu"}) {
    EXPECT_TRUE(std::isnan(ParseActivation(text).Apply(NAN))) << text;
  }
}

TEST(Activation, Infinities) {
  EXPECT_EQ(ParseActivation("relu").Apply(INFINITY), INFINITY);
  EXPECT_EQ(ParseActivation("relu").Apply(-INFINITY), 0);
  EXPECT_EQ(ParseActivation("hard_sigmoid:0.2:0.5").Apply(-INFINITY), 0);
  EXPECT_TRUE(std::isnan(ParseActivation("hard_swish").Apply(-INFINITY)));
  EXPECT_EQ(ParseActivation("silu").Apply(INFINITY), INFINITY);
  EXPECT_EQ(ParseActivation("silu").Apply(-INFINITY), 0);
}

}  // namespace
}  // namespace tilesmith
