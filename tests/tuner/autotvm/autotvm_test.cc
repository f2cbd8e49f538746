#include "tuner/autotvm/autotvm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "layouts/base/error.h"
#include "tests/support/test_cpu.h"
#include "tests/tuner/support/sample_records.h"
#include "tuner/records/record_groups.h"

namespace tilesmith {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

// As AutoTVM writes them, but for the numbers.
constexpr const char* kConv3x3 =
    R"({"input": ["llvm -mcpu=skylake-avx512", "conv2d_NCHWc.x86", [["TENSOR", [1, 64, 56, 56], "float32"], )"
    R"(["TENSOR", [64, 64, 3, 3], "float32"], [1, 1], [1, 1, 1, 1], [1, 1], "NCHW", "NCHW", "float32"], {}], )"
    R"("config": {"index": 441, "code_hash": null, "entity": [["tile_ic", "sp", [-1, 16]], )"
    R"(["tile_oc", "sp", [-1, 32]], ["tile_ow", "sp", [-1, 7]], ["unroll_kw", "ot", true]]}, )"
    R"("result": [[0.00066373275, 0.0006597502499999999, 0.000640892], 0, 0.5309267044067383, 1676344759.520081], )"
    R"("version": 0.2, "tvm_version": "0.10.0"})";
constexpr const char* kFirstLayer =
    R"({"input": ["llvm -keys=cpu -num-cores=4", "conv2d_NCHWc.x86", [["TENSOR", [1, 3, 224, 224], "float32"], )"
    R"(["TENSOR", [64, 3, 7, 7], "float32"], [2, 2], [3, 3, 3, 3], [1, 1], "NCHW", "NCHW", "float32"], {}], )"
    R"("config": {"index": 47, "code_hash": null, "entity": [["tile_ic", "sp", [-1, 3]], )"
    R"(["tile_oc", "sp", [-1, 4]], ["tile_ow", "sp", [-1, 56]], ["unroll_kw", "ot", false]]}, )"
    R"("result": [[0.0035256785999999997], 0, 1.644679069519043, 1676344759], "version": 0.2, "tvm_version": "0.10.0"})";
constexpr const char* kConv1x1 =
    R"({"input": ["llvm -mcpu=core-avx2", "conv2d_NCHWc.x86", [["TENSOR", [2, 8, 28, 28, 16], "float32"], )"
    R"(["TENSOR", [16, 8, 1, 1, 16, 32], "float32"], [1, 1], [0, 0, 0, 0], [1, 1], "NCHW16c", "NCHW32c", "float32"], )"
    R"({}], "config": {"index": 5, "code_hash": null, "entity": [["tile_ic", "sp", [-1, 16]], )"
    R"(["tile_oc", "sp", [-1, 32]], ["tile_ow", "sp", [-1, 4]], ["tile_oh", "ot", 2]]}, )"
    R"("result": [[0.001], 0, 1.5, 1676344760], "version": 0.2, "tvm_version": "0.8.0"})";
constexpr const char* kDepthwise =
    R"({"input": ["llvm -mcpu=znver3", "depthwise_conv2d_NCHWc.x86", [["TENSOR", [1, 96, 112, 112], "float32"], )"
    R"(["TENSOR", [96, 1, 3, 3], "float32"], [2, 2], [1, 1, 1, 1], [1, 1], "NCHW", "NCHW", "float32"], {}], )"
    R"("config": {"index": 31, "code_hash": null, "entity": [["tile_ic", "sp", [-1, 16]], )"
    R"(["tile_oc", "sp", [-1, 16]], ["tile_ow", "sp", [-1, 8]], ["unroll_kw", "ot", true]]}, )"
    R"("result": [[0.000123], 0, 1.5, 1676344761], "version": 0.2, "tvm_version": "0.10.0"})";
constexpr const char* kDilatedFailure =
    R"({"input": ["llvm -mcpu=cascadelake", "conv2d_NCHWc.x86", [["TENSOR", [1, 32, 28, 30], "float32"], )"
    R"(["TENSOR", [32, 32, 3, 3], "float32"], [1, 1], [2, 2, 2, 2], [2, 2], "NCHW", "NCHW", "float32"], {}], )"
    R"("config": {"index": 1, "code_hash": null, "entity": [["tile_ic", "sp", [-1, 8]], )"
    R"(["tile_oc", "sp", [-1, 16]], ["tile_ow", "sp", [-1, 10]], ["unroll_kw", "ot", true]]}, )"
    R"("result": [[1000000000.0], 7, 10.5, 1676344762], "version": 0.2, "tvm_version": "0.10.0"})";

class Autotvm : public testing::Test {
 protected:
  void SetUp() override {
    if (DetectCpu().isa == Isa::kPortable) GTEST_SKIP() << "no generated templates on this CPU";
  }
};

// What both formats have.
json Common(const std::string& line) {
  json object = json::parse(line);
  object["result"][2] = 0;                                              // all_cost
  object["result"][3] = std::floor(object["result"][3].get<double>());  // whole seconds
  return object;
}

std::string WhyRefused(const std::string& line) {
  try {
    RecordFromAutotvm(line);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    return error.what();
  }
  return "accepted";
}

std::string With(std::string line, const std::string& from, const std::string& to) {
  const size_t at = line.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return line.replace(at, from.size(), to);
}

TEST_F(Autotvm, ReadsWorkloadConfigAndResult) {
  const Record record = RecordFromAutotvm(kConv3x3).record;
  EXPECT_EQ(WorkloadToString(record.workload), "mb1ic64ih56oc64oh56kh3ph1");
  EXPECT_EQ(record.template_name, "direct");
  EXPECT_EQ(record.config.Get("ic_block"), 16);
  EXPECT_EQ(record.config.Get("oc_block"), 32);
  EXPECT_EQ(record.config.Get("oc_vectors"), 2);
  EXPECT_EQ(record.config.Get("width_tile"), 7);
  EXPECT_EQ(record.detail, "") << "all of it has an equal";
  EXPECT_TRUE(RecordFromAutotvm(kConv3x3).same_tiles);
  EXPECT_EQ(record.layouts.in.ToString(), "NCHW16c");
  EXPECT_EQ(record.target.model, "llvm -mcpu=skylake-avx512");
  EXPECT_EQ(record.target.isa, Isa::kAvx512);
  EXPECT_EQ(record.target.version, "tvm 0.10.0");
  EXPECT_EQ(record.sample_seconds.size(), 3u);
  EXPECT_EQ(record.tuner, "autotvm");
  EXPECT_EQ(record.time, "2023-02-14T03:19:19Z");
  EXPECT_EQ(record.status, TrialStatus::kOk);
}

TEST_F(Autotvm, TakesTheNearestConfigAndSaysSo) {
  const Record record = RecordFromAutotvm(kFirstLayer).record;
  EXPECT_EQ(WorkloadToString(record.workload), "mb1ic3ih224oc64oh112kh7sh2ph3");
  EXPECT_THAT(record.detail, HasSubstr("nearest to AutoTVM's tile_ic=3 tile_oc=4 tile_ow=56 unroll_kw=0"));
  EXPECT_FALSE(RecordFromAutotvm(kFirstLayer).same_tiles);
  EXPECT_EQ(record.conditions.threads, 4);
  const ConvTemplate& direct = FindConvTemplate("direct");
  Target cpu;
  cpu.isa = record.target.isa;
  EXPECT_EQ(direct.Space(record.workload, cpu).WhyInvalid(record.config), "");
}

TEST_F(Autotvm, ReadsPackedTensorsDepthwiseDilationAndFailures) {
  const Record packed = RecordFromAutotvm(kConv1x1).record;
  EXPECT_EQ(WorkloadToString(packed.workload), "mb2ic128ih28oc512oh28kh1");
  EXPECT_EQ(packed.config.Get("rows"), 2);
  EXPECT_EQ(packed.config.Get("flat_width"), 0);
  const Record depthwise = RecordFromAutotvm(kDepthwise).record;
  EXPECT_EQ(WorkloadToString(depthwise.workload), "g96mb1ic96ih112oc96oh56kh3sh2ph1");
  EXPECT_EQ(depthwise.template_name, "depthwise");
  EXPECT_EQ(depthwise.config.Get("block"), 16);
  const Record failed = RecordFromAutotvm(kDilatedFailure).record;
  EXPECT_EQ(failed.workload.dh, 1) << "TVM counts a dense kernel as 1";
  EXPECT_EQ(failed.workload.oh, 28);
  EXPECT_EQ(failed.status, TrialStatus::kRunTimeout);
  EXPECT_TRUE(failed.sample_seconds.empty());
  EXPECT_EQ(failed.seconds, 0);
}

TEST_F(Autotvm, ExportOfAnImportIsTheSame) {
  for (const char* line : {kConv3x3, kFirstLayer, kConv1x1, kDepthwise, kDilatedFailure}) {
    // Through a log.
    const Record record = RecordFromJson(json::parse(RecordToJson(RecordFromAutotvm(line).record).dump()));
    EXPECT_EQ(Common(RecordToAutotvm(record)), Common(line));
  }
}

TEST_F(Autotvm, OwnRecordsAreExportedWithTheirTiles) {
  for (const char* line : {kConv3x3, kDepthwise}) {
    Record own = RecordFromAutotvm(line).record;
    own.origin.clear();  // as if measured here
    own.workload.post.bias = true;
    const json exported = json::parse(RecordToAutotvm(own));
    const json original = json::parse(line);
    EXPECT_EQ(exported["input"][2][0], original["input"][2][0]);
    EXPECT_EQ(exported["input"][2][1], original["input"][2][1]);
    EXPECT_EQ(exported["input"][1], original["input"][1]);
    EXPECT_EQ(exported["config"]["entity"].size(), original["config"]["entity"].size());
    const Record again = RecordFromAutotvm(exported.dump()).record;
    EXPECT_EQ(again.config, own.config);
    EXPECT_EQ(again.sample_seconds, own.sample_seconds);
    own.workload.post.bias = false;  // AutoTVM's tasks are bare convs
    EXPECT_EQ(again.workload, own.workload);
  }
  Record winograd = SampleRecord();
  winograd.template_name = "winograd";
  EXPECT_THROW(RecordToAutotvm(winograd), Error);
}

TEST_F(Autotvm, ConfigsWithoutKnobsAreNotExported) {
  Record record = RecordFromAutotvm(kConv3x3).record;
  record.origin.clear();
  record.config = {};
  try {
    RecordToAutotvm(record);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    EXPECT_THAT(error.what(), HasSubstr("without knob \"width_tile\""));
  }
}

TEST_F(Autotvm, NeverWinsHere) {
  const std::vector<Record> records = {RecordFromAutotvm(kConv3x3).record};
  EXPECT_TRUE(BestRecords(records, DetectCpu()).empty());
  EXPECT_EQ(BestRecords(records, records[0].target).size(), 1u);
}

TEST_F(Autotvm, RefusesWhatItDoesNotUnderstand) {
  EXPECT_THAT(WhyRefused("{"), HasSubstr("not JSON"));
  EXPECT_THAT(WhyRefused("[]"), HasSubstr("not a JSON object"));
  EXPECT_THAT(WhyRefused("{}"), HasSubstr("\"version\" is missing"));
  EXPECT_THAT(WhyRefused(R"({"i": ["llvm", "conv2d"], "v": 0.1})"), HasSubstr("\"version\" is missing"));
  EXPECT_THAT(WhyRefused(With(kConv3x3, "\"version\": 0.2", "\"version\": 0.1")), HasSubstr("version 0.1"));
  EXPECT_THAT(WhyRefused(With(kConv3x3, "conv2d_NCHWc.x86", "dense_nopack.x86")),
              HasSubstr("task dense_nopack.x86 (known: conv2d_NCHWc.x86, "));
  EXPECT_THAT(WhyRefused(With(kConv3x3, "float32", "int8")), HasSubstr("type int8 (allowed: float32)"));
  EXPECT_THAT(WhyRefused(With(kConv3x3, "[64, 64, 3, 3]", "[64, 2, 3, 3]")), HasSubstr("grouped"));
  EXPECT_THAT(WhyRefused(With(kConv3x3, "[64, 64, 3, 3]", "[64, 64, 3]")), HasSubstr("kernel has shape"));
  EXPECT_THAT(WhyRefused(With(kConv3x3, "[64, 64, 3, 3]", "[64, 64, 99, 3]")), HasSubstr("does not fit"));
  EXPECT_THAT(WhyRefused(With(kConv3x3, "tile_ow", "tile_x")), HasSubstr("\"tile_ow\" is missing"));
  EXPECT_THAT(WhyRefused(With(kConv3x3, "0, 0.53", "11, 0.53")), HasSubstr("error_no is 11"));
  EXPECT_THAT(WhyRefused(With(kConv3x3, "0.000640892", "\"slow\"")), HasSubstr("is no time"));
  EXPECT_THAT(WhyRefused(With(kConv3x3, "[1, 1, 1, 1]", "[1, 1, 1]")), HasSubstr("padding"));
  EXPECT_THAT(WhyRefused(With(kConv3x3, "[1, 1], [1, 1, 1, 1]", "[0, 0], [1, 1, 1, 1]")),
              HasSubstr("strides"));
  EXPECT_THAT(WhyRefused(With(kConv3x3, "[1, 1, 1, 1]", "[1, 3, 1, 1]")), HasSubstr("kernel: 0 to 2)"));
  EXPECT_THAT(WhyRefused(With(kConv3x3, "[1, 1, 1, 1]", "[1, 1, -1, 1]")), HasSubstr("padding is -1"));
  EXPECT_THAT(WhyRefused(With(kConv3x3, "[1, 1, 1, 1], [1, 1]", "[1, 1, 1, 1], [1, -9223372036854775808]")),
              HasSubstr("dilation is -9223372036854775808"));
  const std::string deep = std::string(300'000, '[') + std::string(300'000, ']');
  EXPECT_THAT(WhyRefused(With(kConv3x3, "\"version\": 0.2", "\"version\": " + deep)), HasSubstr("not JSON"));
  EXPECT_THAT(WhyRefused(With(kConv3x3, "[1, 1, 1, 1]", "[9223372036854775807, 1, 9223372036854775807, 1]")),
              HasSubstr("padding is 9223372036854775807"));
  EXPECT_THAT(WhyRefused(With(kConv3x3, "0.000640892", "1e300")), HasSubstr("is no time"));
}

TEST(AutotvmTarget, HasAsManyCoresAsMachinesHave) {
  EXPECT_EQ(CoresOfAutotvmTarget("llvm -num-cores=8"), 8);
  EXPECT_EQ(CoresOfAutotvmTarget("llvm -num-cores=2000000000"), kMaxThreads);
  EXPECT_EQ(CoresOfAutotvmTarget("llvm -num-cores=-3"), 1);
}

TEST(AutotvmTarget, NamesTheIsa) {
  EXPECT_EQ(IsaOfAutotvmTarget("llvm -keys=cpu -mcpu=skylake-avx512 -link-params=0"), Isa::kAvx512);
  EXPECT_EQ(IsaOfAutotvmTarget("llvm -mcpu=core-avx2"), Isa::kAvx2);
  EXPECT_EQ(IsaOfAutotvmTarget("llvm -mattr=+avx512f,+avx512vl"), Isa::kAvx512);
  EXPECT_EQ(IsaOfAutotvmTarget("llvm"), Isa::kAvx2);
  EXPECT_EQ(CoresOfAutotvmTarget("llvm -num-cores=16"), 16);
  EXPECT_EQ(CoresOfAutotvmTarget("llvm -num-cores=x"), 1);
  for (const Isa isa : {Isa::kAvx2, Isa::kAvx512}) EXPECT_EQ(IsaOfAutotvmTarget(AutotvmTargetText(isa)), isa);
}

}  // namespace
}  // namespace tilesmith
