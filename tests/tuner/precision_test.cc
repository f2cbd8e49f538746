#include "tuner/precision.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "layouts/base/error.h"
#include "templates/base/conv_template.h"
#include "tests/tuner/support/sample_records.h"

namespace tilesmith {
namespace {

TEST(Precision, NamesRoundTrip) {
  for (const Precision precision : kPrecisions)
    EXPECT_EQ(ParsePrecision(PrecisionName(precision)), precision);
  EXPECT_THROW(ParsePrecision("int4"), Error);
}

TEST(Precision, KeepsTheRecordsOfItsTypes) {
  const Record floats = SampleRecord(1), other = [] {
    Record record = SampleRecord(2);
    record.workload = ParseWorkload("g64ic64ih56oc64kh3ph1+bias+relu");
    return record;
  }();
  Record narrow = SampleRecord(3, "NCHW16c:bf16", "NCHW16c:bf16");
  narrow.template_name = "direct_bf16";
  Record converting = SampleRecord(4);  // f32 outside, factors of bf16
  converting.template_name = "direct_bf16";
  Record failed = narrow;
  failed.status = TrialStatus::kWrongAnswer;
  Record bytes = SampleRecord(5, "NHWC:u8", "NHWC:u8");  // of a conv that is one of bytes in every precision
  bytes.workload = ParseWorkload("ic64ih56oc64kh3ph1:u8:i8:u8");
  EXPECT_FALSE(IsNarrow(bytes));
  EXPECT_FALSE(IsNarrow(floats));
  EXPECT_TRUE(IsNarrow(narrow));
  EXPECT_TRUE(IsNarrow(converting));
  const std::vector<Record> all = {floats, other, narrow, converting};
  const auto seconds = [](const std::vector<Record>& records) {
    std::vector<double> result;
    for (const Record& record : records) result.push_back(record.seconds);
    return result;
  };
  EXPECT_THAT(seconds(RecordsIn(Precision::kF32, all)), testing::ElementsAre(1, 2));
  EXPECT_THAT(seconds(RecordsIn(Precision::kInt8, all)), testing::ElementsAre(1, 2));
  EXPECT_THAT(seconds(RecordsIn(Precision::kBf16, all)), testing::ElementsAre(2, 3, 4));
  EXPECT_THAT(seconds(RecordsIn(Precision::kMixed, all)), testing::ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(seconds(RecordsIn(Precision::kBf16, {floats, failed})), testing::ElementsAre(1));
}

TEST(Bf16Templates, AreApartFromTheOthers) {
  for (const ConvTemplate* conv_template : ConvTemplates())
    EXPECT_EQ(conv_template->FactorType(), DataType::kF32) << conv_template->Name();
  for (const ConvTemplate* conv_template : ConvTemplates(kCpuDevice, DataType::kBf16))
    EXPECT_EQ(&FindConvTemplate(conv_template->Name()), conv_template);
}

}  // namespace
}  // namespace tilesmith
