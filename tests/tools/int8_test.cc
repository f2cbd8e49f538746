// --precision int8 and mixed: networks that are quantised in place, and their plans.
#include <filesystem>
#include <nlohmann/json.hpp>

#include "graph_tuner/plan/plan_file.h"
#include "layouts/base/text_file.h"
#include "tests/support/ops/onnx_model.h"
#include "tests/support/random.h"
#include "tests/support/temporary_files.h"
#include "tests/tools/cli.h"
#include "tools/api/tilesmith.h"
#include "tools/api/tilesmith_c.h"
#include "tools/cli/npz.h"

namespace tilesmith {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;

// y = softmaxless classifier of two convolutions with a residual; its width is open.
std::string WriteClassifier(const std::string& path, uint64_t seed = 1) {
  OnnxModel model;
  const auto add_floats = [&](const std::string& name, const std::vector<int64_t>& dims) {
    std::vector<float> values(static_cast<size_t>(ElementCount(Shape(dims.begin(), dims.end()))));
    FillUniform(values, seed++);
    model.Floats(name, dims, values);
  };
  model.Input("x", {1, 3, 12, "width"});
  add_floats("w1", {8, 3, 3, 3});
  add_floats("w2", {8, 8, 3, 3});
  add_floats("b2", {8});
  add_floats("w3", {8, 4});
  SetInts(model.Node("Conv", {"x", "w1"}, {"c1"}, "first"), "pads", {1, 1, 1, 1});
  model.Node("Relu", {"c1"}, {"r1"});
  SetInts(model.Node("Conv", {"r1", "w2", "b2"}, {"c2"}, "second"), "pads", {1, 1, 1, 1});
  model.Node("Add", {"c2", "r1"}, {"sum"}, "add");
  model.Node("GlobalAveragePool", {"sum"}, {"pool"});
  model.Node("Flatten", {"pool"}, {"flat"});
  model.Node("Gemm", {"flat", "w3"}, {"y"}, "fc");
  model.Output("y");
  WriteTextFile(path, model.Bytes());
  return path;
}

std::vector<NamedTensor> OutputsOf(const std::vector<std::string>& run, const std::string& npz) {
  std::vector<std::string> arguments = {"run"};
  arguments.insert(arguments.end(), run.begin(), run.end());
  arguments.insert(arguments.end(), {"--threads", "1", "--runs", "1", "--output", npz, "-q"});
  const ProgramResult result = Tilesmith(arguments);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return result.exit_code == 0 ? ReadNpz(npz) : std::vector<NamedTensor>();
}

struct Int8Test : testing::Test {
  const TemporaryDirectory directory;
  const std::string model = WriteClassifier(directory.File("net.onnx")), log = directory.File("log.jsonl"),
                    plan = directory.File("plan.jsonl"), samples = directory.File("samples.npz");

  void SetUp() override {
    Tensor x({4, 3, 12, 10});
    FillUniform({x.floats(), static_cast<size_t>(x.size())}, 7);
    std::vector<NamedTensor> arrays;
    arrays.emplace_back("x", std::move(x));
    WriteNpz(samples, arrays);
  }
  Json Ran(std::vector<std::string> arguments) const {
    arguments.insert(arguments.end(), {"--threads", "1", "--json", "-q"});
    const ProgramResult result = Tilesmith(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.exit_code == 0 ? Json::parse(result.out) : Json();
  }
};

TEST_F(Int8Test, TheFloatModelRunsAsThePlanSays) {
  const std::vector<std::string> in_int8 = {"--precision", "int8", "--calibrate", samples};
  const auto with = [&](std::vector<std::string> command) {
    command.insert(command.end(), in_int8.begin(), in_int8.end());
    return Ran(command);
  };
  const Json tuned = with({"tune", model, "-o", log, "--trials", "2", "--no-baseline"});
  EXPECT_EQ(tuned["calibration"], "minmax, 4 samples of " + samples);
  EXPECT_EQ(tuned["random_inputs"], false);
  for (const Json& task : tuned["tasks"]) EXPECT_THAT(task["workload"], HasSubstr(":u8:i8:"));
  const Json planned =
      with({"graph-tune", model, "--log", log, "-o", plan, "--rounds", "1", "--time", "10ms"});
  EXPECT_EQ(planned["calibration"], tuned["calibration"]);
  EXPECT_EQ(planned["convs"], 3);
  // Beside the network in floats.
  ASSERT_EQ(planned["types"].size(), 3u);
  EXPECT_EQ(planned["types"][0]["type"], "f32");
  EXPECT_LT(planned["types"][0]["output_error"], 1e-5);
  EXPECT_EQ(planned["types"][0]["agreement"], 1.0);
  EXPECT_EQ(planned["types"][2]["type"], "int8");
  EXPECT_EQ(planned["types"][2]["is_plan"], true);
  EXPECT_GT(planned["types"][2]["measured_seconds"], 0.0);
  EXPECT_GT(planned["output_error"], 1e-5);
  EXPECT_LT(planned["output_error"], 0.1);

  // The plan is of the original model, and needs nothing else.
  const std::string quantized = directory.File("net.int8.onnx");
  Ran({"quantize", model, "--calibrate", samples, "-o", quantized, "--no-check"});
  const std::vector<std::string> size = {"--input-shape", "x=1x3x12x10"};
  const auto run = [&](std::vector<std::string> command, const std::string& npz) {
    command.insert(command.end(), size.begin(), size.end());
    return OutputsOf(command, directory.File(npz));
  };
  const std::vector<NamedTensor> by_plan = run({model, "--plan", plan}, "a.npz"),
                                 by_file = run({quantized}, "b.npz"), in_floats = run({model}, "c.npz");
  ASSERT_EQ(by_plan.size(), 1u);
  EXPECT_EQ(by_plan[0].first, "y");
  const auto values = [](const std::vector<NamedTensor>& outputs) {
    const Tensor& tensor = outputs.at(0).second;
    return std::vector<float>(tensor.floats(), tensor.floats() + tensor.size());
  };
  EXPECT_EQ(values(by_plan), values(by_file));
  EXPECT_NE(values(by_plan), values(in_floats));
  const Json benched = Ran({"bench", model, "--plan", plan, "--time", "5ms", "--network-time", "200ms",
                            "--onnxruntime", "none", "--input-shape", "x=1x3x12x10"});
  EXPECT_GT(benched["network_seconds"], 0.0);
  EXPECT_EQ(benched["calibration"], tuned["calibration"]);

  const Model loaded = Model::Load(model, {.plan = plan, .threads = 1, .input_shapes = {"x=1x3x12x10"}});
  EXPECT_GT(loaded.predicted_seconds(), 0);

  const std::string other = WriteClassifier(directory.File("other.onnx"), 5);
  ExpectRefusal({"run", other, "--plan", plan, "--input-shape", "x=1x3x12x10"}, 2,
                "scales and zero points are of another model");
  ExpectRefusal({"run", quantized, "--plan", plan, "--input-shape", "x=1x3x12x10"}, 3,
                "nothing can be quantised");

  const Json explained =
      Ran({"explain", model, "second", "--log", log, "--plan", plan, "--input-shape", "x=1x3x12x10"});
  // The sum behind it is in the convolution.
  EXPECT_EQ(explained["node"], "sum_quantized_QuantizeLinear");
  ASSERT_EQ(explained["types"].size(), 2u) << explained;
  EXPECT_EQ(explained["types"][0]["type"], "int8");
  EXPECT_EQ(explained["types"][0]["asked"], true);
  EXPECT_GT(explained["types"][0]["output_error"], explained["types"][1]["output_error"]);
}

TEST_F(Int8Test, RandomInputsAreSaidToBe) {
  const ProgramResult result =
      Tilesmith({"graph-tune", model, "--default-schedules", "-o", plan, "--precision", "int8", "--rounds",
                 "0", "--threads", "1", "--input-shape", "x=1x3x12x10"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("calibrated on random inputs"));
  EXPECT_THAT(result.out, HasSubstr("random inputs (seed 1)"));
  const Plan read = ReadPlan(plan);
  ASSERT_NE(read.quantization, nullptr);
  EXPECT_TRUE(read.quantization->random_inputs);
  EXPECT_EQ(read.quantization->tensors.count("r1"), 1u);
  const ProgramResult tasks =
      Tilesmith({"tasks", model, "--precision", "int8", "--input-shape", "x=1x3x12x10"});
  EXPECT_THAT(tasks.out, HasSubstr("mb1ic3ih12iw10oc8oh12ow10kh3ph1:u8:i8:u8"));
}

TEST_F(Int8Test, MixedChoosesLayerByLayerWithinALimit) {
  const Json tuned = Ran({"tune", model, "-o", log, "--precision", "mixed", "--calibrate", samples,
                          "--trials", "2", "--no-baseline", "--input-shape", "x=1x3x12x10"});
  int floats = 0, bytes = 0;
  for (const Json& task : tuned["tasks"])
    ++(task["workload"].get<std::string>().find(":i8:") == std::string::npos ? floats : bytes);
  EXPECT_GT(floats, 0);
  EXPECT_GT(bytes, 0);
  for (const char* limit : {"0.5", "1e-5"}) {
    const Json planned =
        Ran({"graph-tune", model, "--log", log, "-o", plan, "--precision", "mixed", "--calibrate", samples,
             "--rounds", "1", "--time", "10ms", "--max-output-error", limit, "--input-shape", "x=1x3x12x10"});
    // f32, bf16, int8 and mixed; and f32 with bf16, where the plan in floats has both.
    ASSERT_THAT(planned["types"].size(), testing::AnyOf(4u, 5u)) << planned;
    int plans = 0;
    for (const Json& type : planned["types"]) {
      plans += type["is_plan"].get<bool>();
      if (type["measured_seconds"].is_null()) continue;
      // Slower than the plan as far as it may be the plan.
      if (type["output_error"] > std::stod(limit)) {
        EXPECT_EQ(type["is_plan"], false);
      } else if (!type["is_plan"]) {
        EXPECT_GE(type["gain_high"], 0.0) << type;
      }
    }
    EXPECT_EQ(plans, 1);
    EXPECT_LE(planned["output_error"], std::stod(limit));
  }
  EXPECT_EQ(ReadPlan(plan).quantization, nullptr);  // by the second limit
}

TEST_F(Int8Test, ConvolutionsAndSuitesAreOfBytes) {
  const std::string suite = directory.File("some.txt");
  WriteTextFile(suite, "ic16ih7oc16kh3ph1+bias+relu\nic16ih7oc16kh1+bias+hard_swish\nic8ih7oc8kh1+sum\n");
  const ProgramResult tuned = Tilesmith({"tune", "--suite", suite, "--precision", "int8", "--trials", "2",
                                         "-o", log, "--no-db", "--no-baseline", "--threads", "1"});
  ASSERT_EQ(tuned.exit_code, 0) << tuned.err;
  const ProgramResult benched = Tilesmith({"bench", "--suite", suite, "--precision", "int8", "--log", log,
                                           "--time", "1ms", "--threads", "1", "--json"});
  ASSERT_EQ(benched.exit_code, 0) << benched.err;
  const Json rows = Json::parse(benched.out)["some"];
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0]["workload"], "mb1ic16ih7oc16oh7kh3ph1+bias:u8:i8:u8");
  EXPECT_EQ(rows[1]["workload"], "mb1ic8ih7oc8oh7kh1+sum:u8:i8:u8");
}

TEST_F(Int8Test, RefusesWhatIsNotQuantised) {
  ExpectRefusal({"tune", "-o", log, "--precision", "int8"}, 2, "needs a MODEL, a WORKLOAD, or --suite NAME");
  ExpectRefusal({"tune", "resnet51", "-o", log, "--precision", "int8"}, 2, "resnet51 is neither");
  ExpectRefusal({"bench", kSmallConv, "--calibrate", samples}, 2, "--calibrate is for a MODEL");
  ExpectRefusal({"tasks", kSmallConv, "--precision", "int8"}, 2, "--precision int8 is for a MODEL here");
  ExpectRefusal({"tune", model, "-o", log, "--calibrate", samples}, 2,
                "--calibrate is for a precision with int8 in it, not f32");
  ExpectRefusal(
      {"tune", "ic8ih5oc8kh3ph1+hard_swish", "-o", log, "--precision", "int8"}, 2,
      "ic8ih5oc8kh3ph1+hard_swish in int8: convolutions of bytes have nothing fused in front of them");
  ExpectRefusal({"optimize", model, "-o", plan, "--precision", "int8", "--calibrate", "image.png"}, 2,
                "--calibrate must be FILE.npz");
  EXPECT_FALSE(std::filesystem::exists(plan));
}

TEST_F(Int8Test, FromCppAndC) {
  GraphTune(model, "", plan,
            {.seconds = 10, .rounds = 0, .threads = 1, .precision = "int8", .calibrate = {samples}});
  ASSERT_NE(ReadPlan(plan).quantization, nullptr);
  EXPECT_FALSE(ReadPlan(plan).quantization->random_inputs);
  const char* path = samples.c_str();
  tilesmith_tune_settings settings = {};
  settings.rounds = -1;
  settings.threads = 1;
  settings.precision = "int8";
  settings.calibrate = &path;
  settings.calibrate_count = 1;
  const std::string other = directory.File("c.jsonl");
  EXPECT_EQ(tilesmith_graph_tune(model.c_str(), nullptr, other.c_str(), &settings), 0)
      << tilesmith_last_error();
  EXPECT_EQ(ReadPlan(other).quantization->tensors, ReadPlan(plan).quantization->tensors);
}

}  // namespace
}  // namespace tilesmith
