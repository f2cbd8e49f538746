#include "tools/network/profile_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
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

// A step, two of a region whose threads compute two rows of the first one twice, and one behind it.
std::vector<StepProfile> StepsWithRegion() {
  std::vector<StepProfile> steps(4);
  for (size_t i = 0; i < steps.size(); ++i) {
    steps[i].name = steps[i].kind = "abcd"[i];
    steps[i].seconds = static_cast<double>(i + 1) * 1e-3;
  }
  steps[1].region = {1, 34, 32};
  steps[2].region = {1, 32, 32};
  return steps;
}

TEST(ProfileReport, StepsSayTheirRegion) {
  const std::vector<StepProfile> steps = StepsWithRegion();
  Report report;
  report.AddTable(ProfileTable(steps));
  report.AddTable(RegionTable(std::array{RegionProfile{1, 2, 8, 4, 3000, 66, 64}}));
  const nlohmann::json json = nlohmann::json::parse(report.ToJson());
  EXPECT_TRUE(json["steps"][0]["region"].is_null());
  EXPECT_EQ(json["steps"][1]["region"], 1);
  EXPECT_EQ(json["steps"][1]["computed_rows"], 34);
  EXPECT_EQ(json["steps"][1]["result_rows"], 32);
  EXPECT_EQ(json["regions"][0]["buffer_bytes"], 3000);
  EXPECT_EQ(json["regions"][0]["twice_share"], 66.0 / 64 - 1);
  EXPECT_THAT(report.ToText(80), testing::HasSubstr("32+2"));
  EXPECT_THAT(ProfileTable(std::span(steps).first(1)).ToCsv(), testing::Not(testing::HasSubstr("region")));
}

TEST(ProfileReport, ARegionHasOneBarrier) {
  const Table totals = TotalsTable(StepsWithRegion(), 1, 1e-3);
  EXPECT_EQ(std::get<double>(totals.rows()[1][1].value), 3 * 1e-3);
}

TEST(ProfileReport, StepsOfARegionLieInItsEvent) {
  const nlohmann::json events = nlohmann::json::parse(ChromeTrace(StepsWithRegion()))["traceEvents"];
  ASSERT_EQ(events.size(), 5u);
  EXPECT_EQ(events[1]["name"], "region 1");
  EXPECT_EQ(events[1]["ts"], events[2]["ts"]);
  EXPECT_NEAR(events[1]["dur"], 5e3, 1e-6);
  EXPECT_NEAR(events[4]["ts"], 6e3, 1e-6);
}

}  // namespace
}  // namespace tilesmith
