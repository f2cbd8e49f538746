#include "tools/network/profile_report.h"

#include <gtest/gtest.h>

namespace tilesmith {
namespace {

TEST(ProfileReport, ConvolutionsOfBytesThatRunAsOpsAreConvolutions) {
  const auto step = [](const char* kind, double seconds) {
    StepProfile profile;
    profile.kind = kind;
    profile.seconds = seconds;
    return profile;
  };
  const StepProfile steps[] = {step("direct", 1), step("QuantizedConv", 2), step("MaxPool", 4),
                               step("transform", 8)};
  EXPECT_EQ(NonConvSeconds(steps), 12);
}

}  // namespace
}  // namespace tilesmith
