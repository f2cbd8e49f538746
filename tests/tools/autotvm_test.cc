// A tuning log of AutoTVM's, all the way to a network that runs: imported, re-measured here, graph-tuned.

#include <nlohmann/json.hpp>

#include "ops/conv/workload.h"
#include "tests/support/temporary_files.h"
#include "tests/support/test_cpu.h"
#include "tests/tools/cli.h"

namespace tilesmith {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;

// A trial of the conv alone, as AutoTVM tunes it.
std::string TrialLine(const ConvWorkload& w, int64_t tile_ic, int64_t tile_oc, double seconds) {
  const auto tensor = [](const Shape& shape) { return Json{"TENSOR", shape, "float32"}; };
  const auto tile = [](const char* name, int64_t inner) { return Json{name, "sp", {-1, inner}}; };
  const Json input = {"llvm -mcpu=core-avx2", "conv2d_NCHWc.x86",
                      Json::array({tensor(w.input_shape()),
                                   tensor(w.weights_shape()),
                                   {w.sh, w.sw},
                                   {w.ph, w.pw, w.pad_bottom(), w.pad_right()},
                                   {1, 1},
                                   "NCHW",
                                   "NCHW",
                                   "float32"}),
                      Json::object()};
  const Json last = w.kh == 1 ? Json{"tile_oh", "ot", 1} : Json{"unroll_kw", "ot", true};
  const Json config = {{"index", 1},
                       {"code_hash", nullptr},
                       {"entity", Json::array({tile("tile_ic", tile_ic), tile("tile_oc", tile_oc),
                                               tile("tile_ow", 4), last})}};
  return Json{{"input", input},
              {"config", config},
              {"result", Json::array({{seconds}, 0, 1.0, 1676344759})},
              {"version", 0.2},
              {"tvm_version", "0.10.0"}}
             .dump() +
         "\n";
}

class AutotvmNetworkTest : public testing::Test {
 protected:
  void SetUp() override {
    if (DetectCpu().isa == Isa::kPortable) GTEST_SKIP() << "no generated templates on this CPU";
  }
  Json Run(std::vector<std::string> arguments) const {
    arguments.insert(arguments.end(), {"--json"});
    const ProgramResult result = Tilesmith(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return Json::parse(result.out, nullptr, false);
  }
  Json OnNetwork(std::vector<std::string> arguments) const {
    arguments.insert(arguments.end(), {"--input-shape", "input=1x3x64x64"});
    return Run(arguments);
  }
  const TemporaryDirectory directory_;
};

TEST_F(AutotvmNetworkTest, DrivesTheGraphTunerEndToEnd) {
  const Json tasks = OnNetwork({"tasks", "resnet18", "--no-fusion"})["tasks"];
  std::string text;
  for (const Json& task : tasks) {
    ConvWorkload conv = ParseWorkload(task["workload"].get<std::string>());
    conv.post = {};
    text += TrialLine(conv, std::min<int64_t>(conv.ic, 8), 8, 2e-4);
    text += TrialLine(conv, std::min<int64_t>(conv.ic, 16), 16, 1e-4);
  }
  const std::string theirs = directory_.File("autotvm.log"), imported = directory_.File("imported.jsonl"),
                    here = directory_.File("here.jsonl"), plan = directory_.File("plan.jsonl");
  WriteFile(theirs, text);
  const Json report = OnNetwork({"log", "import", theirs, "-o", imported, "--model", "resnet18"});
  EXPECT_EQ(report["tasks"], tasks.size());
  EXPECT_EQ(report["served_tasks"], tasks.size());
  EXPECT_GE(report["records"], 2 * tasks.size());

  // Another machine's times are refused until they are asked for.
  const ProgramResult refused = Tilesmith(
      {"graph-tune", "resnet18", "--log", imported, "-o", plan, "--input-shape", "input=1x3x64x64"});
  EXPECT_EQ(refused.exit_code, 4);
  EXPECT_THAT(refused.err, HasSubstr("no usable record"));
  const Json believed =
      OnNetwork({"graph-tune", "resnet18", "--log", imported, "--any-machine", "--time", "1ms", "-o", plan});
  // A plan that ran may be the one without tuning, if that was faster.
  const auto is_certified = testing::AnyOf(testing::StartsWith("optimal"), HasSubstr("without tuning"));
  EXPECT_THAT(believed["certificate"].get<std::string>(), is_certified);
  EXPECT_GE(believed["candidates"], tasks.size());  // blocks of 8 are not for every CPU

  const Json verified = Run({"log", "verify", imported, "--retarget", "-o", here});
  EXPECT_EQ(verified["verified"], tasks.size()) << "the best of each";
  const Json planned = OnNetwork({"graph-tune", "resnet18", "--log", here, "--time", "1ms", "-o", plan});
  EXPECT_THAT(planned["certificate"].get<std::string>(), is_certified);
  EXPECT_LE(OnNetwork({"run", "resnet18", "--plan", plan, "--runs", "1", "--check"})["difference"], 1e-4);
}

TEST_F(AutotvmNetworkTest, ALogThatServesNoTaskIsRefused) {
  const std::string theirs = directory_.File("autotvm.log");
  WriteFile(theirs, TrialLine(ParseWorkload("ic16ih9oc16kh3ph1"), 8, 8, 1e-4));
  const ProgramResult result =
      Tilesmith({"log", "import", theirs, "-o", directory_.File("imported.jsonl"), "--model", "resnet18"});
  EXPECT_EQ(result.exit_code, 4);
  EXPECT_THAT(result.err, HasSubstr("none of its 1 records is of a convolution of resnet18"));
}

}  // namespace
}  // namespace tilesmith
