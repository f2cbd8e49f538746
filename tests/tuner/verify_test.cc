#include "tuner/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "tests/tuner/support/sample_records.h"
#include "tests/tuner/support/simulated_measurer.h"

namespace tilesmith {
namespace {

using ::testing::HasSubstr;

// A machine of the tests' own: every config takes a millisecond, unless told otherwise.
class OneMillisecond : public SimulatedMeasurer {
 public:
  TrialResult Measure(const TrialRequest& request) override {
    order.push_back(request.config.Get("rows"));
    TrialResult result;
    if (request.config.Get("rows") == wrong_rows) {
      result.status = TrialStatus::kWrongAnswer;
      return result;
    }
    result.sample_seconds = {1e-3, 2e-3};
    result.error = 1e-6;
    return result;
  }

  std::vector<int64_t> order;
  int64_t wrong_rows = -1;
};

Target Cpu() {
  Target cpu;
  cpu.model = "Test CPU 3000";
  cpu.isa = Isa::kAvx512;
  cpu.cores = 2;
  return cpu;
}

// A valid config of the portable template.
Record Portable(double seconds, int64_t rows) {
  Record record = SampleRecord(seconds);
  const ConvTemplate& portable = FindConvTemplate("portable");
  record.template_name = "portable";
  record.config = portable.Default(record.workload, Cpu());
  record.config.Set("rows", rows);
  record.config.Set("ow_tile", 1);  // valid on every ISA
  record.layouts = portable.Layouts(record.workload, record.config);
  return record;
}

std::vector<Verification> Verify(const std::vector<Record>& records, Measurer& measurer,
                                 bool retarget = false) {
  VerifyRequest request;
  request.cpu = Cpu();
  request.retarget = retarget;
  request.threads = 2;
  return VerifyRecords(records, request, measurer, {});
}

TEST(Verify, TakesTheFastestOfEachWorkloadAndConditions) {
  std::vector<Record> records = {Portable(3, 1), Portable(1, 2), Portable(2, 4)};
  Record cold = Portable(5, 1);
  cold.conditions.cold_weights = true;
  records.push_back(cold);
  const std::vector<Record> best = FastestRecords(records, 2);
  ASSERT_EQ(best.size(), 3u);
  EXPECT_EQ(best[0].seconds, 1);
  EXPECT_EQ(best[1].seconds, 2);
  EXPECT_TRUE(best[2].conditions.cold_weights);
}

TEST(Verify, MeasuresInTurnUnderTheRecordsConditions) {
  OneMillisecond measurer;
  Record cold = Portable(2e-3, 1);
  cold.conditions = {1, false, true};
  cold.target.isa = Isa::kAvx2;
  const std::vector<Verification> all = Verify({Portable(1e-3, 2), cold, Portable(1e-3, 4)}, measurer);
  ASSERT_EQ(measurer.sessions.size(), 2u);
  EXPECT_EQ(measurer.sessions[1].conditions, cold.conditions);
  EXPECT_EQ(measurer.sessions[1].cpu.isa, Isa::kAvx2) << "the record's, not the machine's";
  EXPECT_EQ(measurer.order, (std::vector<int64_t>{2, 4, 2, 4, 2, 4, 1, 1, 1}));
  ASSERT_EQ(all.size(), 3u);
  for (const Verification& v : all) {
    EXPECT_EQ(v.skipped, "");
    EXPECT_EQ(v.now.status, TrialStatus::kOk);
    EXPECT_EQ(v.now.sample_seconds.size(), 6u);
    EXPECT_DOUBLE_EQ(v.now.seconds, 1e-3);
    EXPECT_EQ(v.now.error, 1e-6);
    EXPECT_EQ(v.now.config, v.old.config);
    EXPECT_NE(v.now.time, v.old.time);
  }
}

TEST(Verify, SaysWhatIsWrongAndStopsMeasuringIt) {
  OneMillisecond measurer;
  measurer.wrong_rows = 2;
  const std::vector<Verification> all = Verify({Portable(1e-3, 2), Portable(1e-3, 4)}, measurer);
  EXPECT_EQ(all[0].now.status, TrialStatus::kWrongAnswer);
  EXPECT_EQ(all[0].now.seconds, 0);
  EXPECT_EQ(all[1].now.status, TrialStatus::kOk);
  EXPECT_EQ(measurer.order, (std::vector<int64_t>{2, 4, 4, 4}));
}

TEST(Verify, MeasuresAgainWhatSeemsSlow) {
  OneMillisecond measurer;
  std::vector<Record> recorded;
  VerifyRequest request;
  request.cpu = Cpu();
  VerifySinks sinks;
  sinks.on_record = [&](const Record& record) { recorded.push_back(record); };
  const std::vector<Record> records = {Portable(1e-4, 2), Portable(0.95e-3, 4)};
  const std::vector<Verification> all = VerifyRecords(records, request, measurer, sinks);
  EXPECT_EQ(measurer.order, (std::vector<int64_t>{2, 4, 2, 4, 2, 4, 2, 2, 2}));
  EXPECT_DOUBLE_EQ(all[0].now.seconds, 1e-3);
  ASSERT_EQ(recorded.size(), 2u) << "no faster the second time: the first one stays";
  EXPECT_TRUE(all[0].comparable());
}

TEST(Verify, SkipsWithAReason) {
  OneMillisecond measurer;
  std::vector<Record> records(6, Portable(1e-3, 2));
  records[0].target.model = "llvm -mcpu=znver3";
  records[1].conditions.threads = 64;
  records[2].template_name = "sorcery";
  records[3].config.Set("rows", 999);
  records[4].template_name = "depthwise";
  records[5].config = {};
  const std::vector<Verification> all = Verify(records, measurer);
  EXPECT_THAT(all[0].skipped, HasSubstr("measured on llvm -mcpu=znver3"));
  EXPECT_THAT(all[1].skipped, HasSubstr("64 threads, this machine has 2 cores"));
  EXPECT_THAT(all[2].skipped, HasSubstr("unknown template \"sorcery\""));
  EXPECT_THAT(all[3].skipped, HasSubstr("invalid config: knob \"rows\" is 999"));
  EXPECT_THAT(all[4].skipped, HasSubstr("not supported: "));
  EXPECT_THAT(all[5].skipped, HasSubstr("invalid config: knob \"ic_block\" is missing"));
  EXPECT_TRUE(measurer.order.empty());
}

TEST(Verify, RetargetsRecordsOfOtherMachines) {
  OneMillisecond measurer;
  Record foreign = Portable(1e-3, 3);  // not a value of the knob
  foreign.target.model = "llvm -mcpu=znver3";
  foreign.conditions = {64, false, false};
  foreign.origin = "{}";
  foreign.tuner = "autotvm";
  const std::vector<Verification> all = Verify({foreign}, measurer, true);
  const Record& now = all[0].now;
  EXPECT_EQ(all[0].skipped, "");
  EXPECT_EQ(now.target.model, Cpu().model);
  EXPECT_EQ(now.conditions, (MeasureConditions{2, true, false}));
  EXPECT_EQ(FindConvTemplate("portable").Space(now.workload, Cpu()).WhyInvalid(now.config), "");
  EXPECT_EQ(now.origin, "");
  EXPECT_EQ(now.tuner, "autotvm") << "who chose the config";
}

TEST(Verify, StopsWhenAsked) {
  OneMillisecond measurer;
  VerifyRequest request;
  request.cpu = Cpu();
  int recorded = 0;
  VerifySinks sinks;
  sinks.on_record = [&](const Record&) { ++recorded; };
  sinks.should_stop = [&] { return measurer.order.size() >= 3; };
  Record other = Portable(1e-3, 2);
  other.conditions.cold_weights = true;
  const std::vector<Verification> all = VerifyRecords({Portable(1e-3, 2), other}, request, measurer, sinks);
  EXPECT_EQ(all[0].skipped, "");
  EXPECT_EQ(all[1].skipped, "interrupted");
  EXPECT_EQ(recorded, 1);
}

}  // namespace
}  // namespace tilesmith
