#include "tools/network/profile_report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace tilesmith {
namespace {

TEST(ProfileReport, ConvolutionsOfBytesAreConvolutions) {
  const auto step = [](const char* kind, double seconds) {
    StepProfile profile;
    profile.kind = kind;
    profile.seconds = seconds;
    return profile;
  };
  const StepProfile steps[] = {step("direct", 1), step("direct_int8", 2), step("MaxPool", 4),
                               step("transform", 8)};
  EXPECT_EQ(NonConvSeconds(steps), 12);
}

TEST(ProfileReport, WhatIsNotKnownIsNoZero) {
  StepProfile known, unknown;
  known.kind = unknown.kind = "direct";
  known.seconds = unknown.seconds = 2e-3;
  known.predicted_seconds = known.repeated_seconds = 1e-3;
  const auto row = [](const StepProfile& step) {
    Report report;
    report.AddTable(ProfileTable(std::span(&step, 1)));
    report.AddTable(KindTable(std::span(&step, 1)));
    return nlohmann::json::parse(report.ToJson());
  };
  const nlohmann::json of_known = row(known), of_unknown = row(unknown);
  EXPECT_EQ(of_known["steps"][0]["predicted_seconds"], 1e-3);
  EXPECT_EQ(of_known["steps"][0]["lost_seconds"], 1e-3);
  for (const char* name : {"predicted_seconds", "repeated_seconds", "lost_seconds"})
    EXPECT_TRUE(of_unknown["steps"][0][name].is_null()) << name;
  EXPECT_TRUE(of_unknown["kinds"][0]["lost_seconds"].is_null());
}

}  // namespace
}  // namespace tilesmith
