#include "tuner/records/record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "layouts/base/error.h"
#include "tests/tuner/support/sample_records.h"

namespace tilesmith {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

// The message of the error that reading `object` throws.
std::string WhyRefused(const json& object) {
  try {
    RecordFromJson(object);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    return error.what();
  }
  return "accepted";
}

TEST(Record, HasPinnedBytes) {
  EXPECT_EQ(RecordToJson(SampleRecord(0.5)).dump(),
            R"({"conditions":{"cold_weights":false,"pinned":true,"threads":2},)"
            R"("config":{"ic_block":16,"oc_block":32,"rows":2},"early_stopped":false,)"
            R"("layouts":["NCHW16c","NCHW32c"],"samples":[0.5,0.625,0.5],"seconds":0.5,"seed":7,)"
            R"("statistic":"p25","status":"ok","target":{"cores":2,"cpu":"Test CPU 3000","isa":"avx512",)"
            R"("l1d_bytes":32768,"l2_bytes":1048576,"l3_bytes":16777216,"version":"0.1.0"},)"
            R"("template":"direct","tilesmith":1,"time":"2025-01-02T03:04:05Z","tuner":"ga",)"
            R"("workload":"mb1ic64ih56oc64oh56kh3ph1+bias+sum+relu"})");
}

TEST(Record, OfAnotherArchitectureIsRead) {
  Record record = SampleRecord(0.5);
  record.target.isa = Isa::kSve;
  record.target.sve_bytes = 32;
  record.target.dot = record.target.i8mm = true;
  json object = RecordToJson(record);
  EXPECT_EQ(object["target"]["sve_bytes"], 32);
  EXPECT_EQ(RecordFromJson(object).target, record.target);
  object["target"]["sve_bytes"] = 24;
  EXPECT_THAT(WhyRefused(object), HasSubstr("sve_bytes"));
  object["target"].erase("sve_bytes");
  EXPECT_THAT(WhyRefused(object), HasSubstr("sve_bytes"));
}

TEST(Record, SurvivesARoundTrip) {
  Record record = SampleRecord(1.0 / 3);
  record.status = TrialStatus::kRunCrash;
  record.detail = "worker killed by SIGSEGV while running";
  record.seconds = 0;
  record.early_stopped = true;
  record.seed = ~uint64_t{0};
  record.purpose = kPurposeLayouts;
  record.task_trials = 300;
  record.conditions = {1, false, true};
  const Record copy = RecordFromJson(json::parse(RecordToJson(record).dump()));
  EXPECT_EQ(RecordToJson(copy), RecordToJson(record));
  EXPECT_EQ(copy.target, record.target);
  EXPECT_EQ(copy.workload, record.workload);
  EXPECT_EQ(copy.config, record.config);
  EXPECT_EQ(copy.layouts, record.layouts);
  EXPECT_EQ(copy.conditions, record.conditions);
  EXPECT_EQ(copy.status, record.status);
  EXPECT_EQ(copy.sample_seconds, record.sample_seconds) << "bit by bit";
  EXPECT_EQ(copy.seed, record.seed);
  EXPECT_EQ(copy.purpose, "layouts");
  EXPECT_EQ(copy.task_trials, 300);
}

TEST(Record, LayoutsHaveTypes) {
  Record record = SampleRecord();
  record.layouts = {Layout::Nhwc(DataType::kU8), Layout::Blocked(16, DataType::kBf16)};
  const json text = RecordToJson(record);
  EXPECT_EQ(text["layouts"], json({"NHWC:u8", "NCHW16c:bf16"}));
  EXPECT_EQ(RecordFromJson(text).layouts, record.layouts);
}

TEST(Record, NamesTheFieldThatIsMissingOrWrong) {
  const json good = RecordToJson(SampleRecord());
  EXPECT_EQ(WhyRefused(good), "accepted");
  for (const auto& [name, value] : good.items()) {
    json broken = good;
    broken.erase(name);
    if (name == "early_stopped") continue;  // defaults to false
    EXPECT_THAT(WhyRefused(broken), HasSubstr("\"" + name + "\" is missing"));
    broken[name] = nullptr;
    EXPECT_NE(WhyRefused(broken), "accepted") << name;
  }
  json broken = good;
  broken["tilesmith"] = kRecordFormat + 1;
  EXPECT_THAT(WhyRefused(broken), HasSubstr("record format 2 (this version reads up to 1)"));
  broken = good;
  broken["status"] = "fine";
  EXPECT_THAT(WhyRefused(broken), HasSubstr("unknown trial status \"fine\" (known: ok, "));
  broken = good;
  broken["layouts"] = {"NCHW16c", "CHWN"};
  EXPECT_THAT(WhyRefused(broken), HasSubstr("CHWN"));
  broken = good;
  broken["seconds"] = 0;
  EXPECT_THAT(WhyRefused(broken), HasSubstr("\"seconds\" is 0"));
  EXPECT_THAT(WhyRefused(json::array()), HasSubstr("not a JSON object"));
}

TEST(Record, RefusesFiguresThatNobodyCanHaveMeasured) {
  const json good = RecordToJson(SampleRecord());
  const auto with = [&](const char* pointer, const json& value) {
    json broken = good;
    broken[json::json_pointer(pointer)] = value;
    return WhyRefused(broken);
  };
  EXPECT_EQ(with("/seconds", 1e6), "accepted");
  EXPECT_THAT(with("/seconds", 1e300), HasSubstr("\"seconds\" is 1e+300"));
  EXPECT_THAT(with("/seconds", 1e-300), HasSubstr("\"seconds\" is 1e-300"));
  EXPECT_THAT(with("/seconds", -1.0), HasSubstr("\"seconds\" is -1"));
  EXPECT_THAT(with("/samples", {1e-3, -1e-3}), HasSubstr("\"samples\" is -0.001"));
  EXPECT_THAT(with("/error", -1), HasSubstr("\"error\" is -1"));
  EXPECT_THAT(with("/task_trials", -5), HasSubstr("\"task_trials\" is -5"));
  EXPECT_THAT(with("/conditions/threads", 0), HasSubstr("\"threads\" is 0 (allowed: 1 to 65536)"));
  EXPECT_THAT(with("/conditions/threads", 4294967298), HasSubstr("\"threads\" is 4294967298"))
      << "is not cut to 2";
  EXPECT_THAT(with("/target/cores", 0), HasSubstr("\"cores\" is 0"));
  EXPECT_THAT(with("/target/l2_bytes", -1), HasSubstr("\"l2_bytes\" is -1"));
  EXPECT_THAT(with("/config/rows", 18446744073709551615ULL), HasSubstr("\"rows\" is 18446744073709551615"));
}

TEST(Target, SaysWhichMachinesAreTheSame) {
  Target target;
  target.model = "Test CPU 3000";
  target.isa = Isa::kAvx2;
  EXPECT_FALSE(target.version.empty());
  Target other = target;
  other.cores = 64;
  other.version = "9.9";
  EXPECT_TRUE(SameMachine(target, other));
  other.isa = Isa::kAvx512;
  EXPECT_FALSE(SameMachine(target, other));
  other = target;
  other.model = "Test CPU 4000";
  EXPECT_FALSE(SameMachine(target, other));
  other = target;
  other.device = "another";
  EXPECT_FALSE(SameMachine(target, other));
  other = target;
  other.tf32 = true;
  EXPECT_FALSE(SameMachine(target, other));
  other = target;
  other.sve_bytes = 16;
  EXPECT_FALSE(SameMachine(target, other));
}

}  // namespace
}  // namespace tilesmith
