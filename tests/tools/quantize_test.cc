// `tilesmith quantize`, and the same through the APIs.
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "layouts/base/text_file.h"
#include "ops/onnx/onnx_import.h"
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
using testing::AnyOf;
using testing::HasSubstr;

// Two inputs, their first sizes and widths open: y = Gemm(pool(relu(conv(x)) + conv(z))).
std::string WriteQuantizable(const TemporaryDirectory& directory) {
  OnnxModel model;
  const auto add_floats = [&](const std::string& name, const std::vector<int64_t>& dims, uint64_t seed) {
    std::vector<float> values(static_cast<size_t>(ElementCount(Shape(dims.begin(), dims.end()))));
    FillUniform(values, seed);
    model.Floats(name, dims, values);
  };
  model.Input("x", {"batch", 3, 8, "width"});
  model.Input("z", {"batch", 3, 8, "width"});
  add_floats("wx", {4, 3, 3, 3}, 1);
  add_floats("wz", {4, 3, 3, 3}, 2);
  add_floats("bz", {4}, 3);
  add_floats("wg", {4, 10}, 4);
  model.Node("Conv", {"x", "wx"}, {"cx"}, "conv_x");
  model.Node("Relu", {"cx"}, {"rx"});
  model.Node("Conv", {"z", "wz", "bz"}, {"cz"}, "conv_z");
  model.Node("Add", {"rx", "cz"}, {"sum"});
  model.Node("GlobalAveragePool", {"sum"}, {"pool"});
  model.Node("Flatten", {"pool"}, {"flat"});
  model.Node("Gemm", {"flat", "wg"}, {"y"}, "fc");
  model.Output("y");
  const std::string path = directory.File("model.onnx");
  WriteFile(path, model.Bytes());
  return path;
}

Tensor Samples(int64_t count, int64_t width, uint64_t seed) {
  Tensor tensor({count, 3, 8, width});
  FillUniform({tensor.floats(), static_cast<size_t>(tensor.size())}, seed);
  return tensor;
}

struct QuantizeTest : testing::Test {
  const TemporaryDirectory directory;
  const std::string model = WriteQuantizable(directory), output = directory.File("model.int8.onnx");

  Json Quantized(std::vector<std::string> more) const {
    std::vector<std::string> arguments = {"quantize", model, "-o", output, "--json", "--threads", "1"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const ProgramResult result = Tilesmith(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.exit_code == 0 ? Json::parse(result.out) : Json();
  }
  onnx::ModelProto Written() const {
    onnx::ModelProto proto;
    EXPECT_TRUE(proto.ParseFromString(ReadFile(output)));
    return proto;
  }
};

TEST_F(QuantizeTest, FilesAndDirectoriesOfSamples) {
  std::filesystem::create_directory(directory.File("inputs"));
  // Two samples in one file, and one of another width.
  WriteNpz(directory.File("inputs/a.npz"), {{"x", Samples(2, 9, 1)}, {"z", Samples(2, 9, 2)}});
  WriteNpz(directory.File("inputs/b.npz"), {{"x", Samples(1, 12, 3)}, {"z", Samples(1, 12, 4)}});
  WriteFile(directory.File("inputs/notes.txt"), "not an array");
  const Json json =
      Quantized({"--calibrate", directory.File("inputs"), "--save", directory.File("saved.json")});
  EXPECT_EQ(json["samples"], 3);
  EXPECT_EQ(json["random_inputs"], false);
  EXPECT_EQ(json["layers"].size(), 5u);
  EXPECT_EQ(json["kept_nodes"], 0);
  EXPECT_EQ(json["layers"][0]["node"], "conv_x");
  EXPECT_EQ(json["layers"][0]["low"], 0.0);
  for (const Json& layer : json["layers"]) {
    EXPECT_GT(layer["own_sqnr_db"], 30) << layer;
    EXPECT_GT(layer["network_sqnr_db"], 25) << layer;
  }
  EXPECT_EQ(json["outputs"][0]["output"], "y");
  EXPECT_GT(json["outputs"][0]["sqnr_db"], 25);
  EXPECT_GE(json["outputs"][0]["agreement"], 2.0 / 3);
  EXPECT_EQ(Json::parse(ReadFile(directory.File("saved.json"))), json);
  const onnx::ModelProto proto = Written();
  EXPECT_EQ(proto.graph().input(0).type().tensor_type().shape().dim(3).dim_param(), "width");
  std::string calibration;
  for (const auto& entry : proto.metadata_props()) {
    if (entry.key() == "tilesmith.calibration") calibration = entry.value();
  }
  EXPECT_EQ(calibration, "minmax, 3 samples of " + directory.File("inputs"));
  EXPECT_EQ(Quantized({"--calibrate", directory.File("inputs/a.npz"), "--calibrate",
                       directory.File("inputs/b.npz"), "--samples", "2"})["samples"],
            2);
}

TEST_F(QuantizeTest, WhatCannotBeQuantisedIsSaid) {
  ASSERT_EQ(Tilesmith({"quantize", model, "--input-shape", "width=10", "-o", output, "--samples", "1",
                       "--no-check", "-q"})
                .exit_code,
            0);
  EXPECT_THAT(Written().metadata_props(0).value(), HasSubstr("1 sample of "));
  ExpectRefusal({"quantize", output, "--input-shape", "width=10", "-o", directory.File("again.onnx")}, 3,
                "nothing can be quantised: it is quantised already");
  Tensor numbers = Samples(1, 10, 1);
  std::fill_n(numbers.floats(), numbers.size(), std::nanf(""));
  WriteNpz(directory.File("nan.npz"), {{"x", numbers}, {"z", Samples(1, 10, 2)}});
  ExpectRefusal({"quantize", model, "-o", directory.File("n.onnx"), "--calibrate", directory.File("nan.npz")},
                2, "none of the values of input x is finite");
}

TEST_F(QuantizeTest, RandomInputsAreSaidToBe) {
  const ProgramResult result = Tilesmith(
      {"quantize", model, "--input-shape", "width=10", "-o", output, "--samples", "2", "--no-check"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("2 samples of random inputs (seed 1)"));
  EXPECT_THAT(result.err, HasSubstr("warning: calibrated on random inputs"));
  EXPECT_THAT(Written().metadata_props(0).value(), HasSubstr("random inputs (seed 1)"));
}

TEST_F(QuantizeTest, ConvolutionsOfBytesAreTunedPlannedAndBenched) {
  OnnxModel pooled;
  std::vector<float> weights(4 * 3 * 3 * 3);
  FillUniform(weights, 1);
  pooled.Input("x", {1, 3, 8, 8});
  pooled.Floats("w", {4, 3, 3, 3}, weights);
  pooled.Node("Conv", {"x", "w"}, {"c"});
  pooled.Node("GlobalAveragePool", {"c"}, {"y"});
  pooled.Output("y");
  const std::string path = directory.File("pooled.onnx");
  WriteFile(path, pooled.Bytes());
  ASSERT_EQ(Tilesmith({"quantize", path, "-o", output, "-q"}).exit_code, 0);
  const std::string log = directory.File("log.jsonl"), plan = directory.File("plan.jsonl");
  const ProgramResult tuned =
      Tilesmith({"tune", output, "-o", log, "--trials", "3", "--no-baseline", "--threads", "1", "--json"});
  ASSERT_EQ(tuned.exit_code, 0) << tuned.err;
  EXPECT_THAT(tuned.out, HasSubstr("mb1ic3ih8oc4oh6kh3:u8:i8:"));
  const ProgramResult planned = Tilesmith({"graph-tune", output, "--log", log, "-o", plan, "--rounds", "0",
                                           "--no-baselines", "--time", "20ms", "--threads", "1", "-q"});
  ASSERT_EQ(planned.exit_code, 0) << planned.err;
  EXPECT_THAT(ReadTextFile(plan), AnyOf(HasSubstr("\"direct_int8\""), HasSubstr("\"amx_int8\"")));
  const ProgramResult benched = Tilesmith({"bench", output, "--plan", plan, "--threads", "1", "--time", "5ms",
                                           "--onnxruntime", "none", "--json", "-q"});
  ASSERT_EQ(benched.exit_code, 0) << benched.err;
  EXPECT_GT(Json::parse(benched.out)["network_seconds"], 0.0) << benched.out;
}

TEST_F(QuantizeTest, MethodsTypesAndNodesThatStayFloat) {
  const std::vector<std::string> size = {"--input-shape", "width=10", "--samples", "2"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.end(), size.begin(), size.end());
    return Quantized(more);
  };
  for (const char* method : {"percentile", "entropy", "mse"}) {
    const Json json = with({"--method", method});
    EXPECT_EQ(json["method"], method);
    EXPECT_GT(json["outputs"][0]["sqnr_db"], 15) << method;
    for (const Json& tensor : json["tensors"]) {
      EXPECT_LE(tensor["seen_low"], tensor["low"]);
      EXPECT_GE(tensor["seen_high"], tensor["high"]);
    }
  }
  EXPECT_EQ(with({"--activations", "i8"})["tensors"][0]["type"], "i8");
  EXPECT_EQ(with({"--activations", "i8-symmetric"})["tensors"][0]["zero_point"], 0);
  EXPECT_EQ(with({"--keep-last", "--keep", "conv_z"})["kept_nodes"], 2);
  EXPECT_EQ(with({"--keep-first"})["layers"].size(), 3u);
  const Json convs = with({"--op", "Conv", "--reduce-range"});
  EXPECT_EQ(convs["layers"].size(), 2u);
  const onnx::ModelProto proto = Written();
  for (const onnx::TensorProto& tensor : proto.graph().initializer()) {
    if (!tensor.name().ends_with("_quantized") || tensor.data_type() != onnx::TensorProto::INT8) continue;
    for (const char value : tensor.raw_data()) EXPECT_LE(std::abs(static_cast<signed char>(value)), 63);
  }
}

TEST_F(QuantizeTest, RefusesWhatDoesNotFit) {
  const auto refused = [&](std::vector<std::string> more, int code, const std::string& mentions) {
    std::vector<std::string> arguments = {"quantize", model, "-o", output};
    arguments.insert(arguments.end(), more.begin(), more.end());
    ExpectRefusal(arguments, code, mentions);
  };
  ExpectRefusal({"quantize", model}, 2, "-o FILE.onnx is required");
  refused({}, 3, "left open: \"x\" is [batch, 3, 8, width]");
  refused({"--calibrate", "images.png"}, 2, "--calibrate must be FILE.npz, FILE.npy or a directory");
  refused({"--calibrate", directory.path()}, 2, "no .npz or .npy file in it");
  WriteNpz(directory.File("one.npz"), {{"x", Samples(1, 9, 1)}});
  refused({"--calibrate", directory.File("one.npz"), "--input-shape", "width=9"}, 2,
          "nothing for the input \"z\" (the network's: x, z)");
  WriteNpz(directory.File("more.npz"),
           {{"x", Samples(1, 9, 1)}, {"z", Samples(1, 9, 1)}, {"w", Samples(1, 9, 1)}});
  refused({"--calibrate", directory.File("more.npz")}, 2, "no input named \"w\"");
  WriteNpz(directory.File("uneven.npz"), {{"x", Samples(2, 9, 1)}, {"z", Samples(3, 9, 1)}});
  refused({"--calibrate", directory.File("uneven.npz")}, 2, "2 samples of one input and 3 of another");
  WriteNpz(directory.File("typed.npz"),
           {{"x", Tensor({1, 3, 8, 9}, Layout::Nchw(DataType::kU8))}, {"z", Samples(1, 9, 1)}});
  refused({"--calibrate", directory.File("typed.npz")}, 2, "the file holds 1x3x8x9 of u8");
  WriteNpz(directory.File("foo.npz"), {{"foo", Tensor({1, 3, 64, 64})}});
  ExpectRefusal({"quantize", "squeezenet1_1", "-o", output, "--calibrate", directory.File("foo.npz"),
                 "--input-shape", "input=1x3x64x64"},
                2, "nothing for the input \"input\"");
  refused({"--input-shape", "width=9", "--method", "percentile", "--percentile", "20"}, 2,
          "--percentile must be more than 50");
  refused({"--input-shape", "width=9", "--keep", "nothing"}, 2, "no node \"nothing\" to keep");
  EXPECT_FALSE(std::filesystem::exists(output));
}

// The first of two files names the second, whichever command wrote or reads them.
TEST(QuantizeInTwoFilesTest, WeightsMayLieBesideTheModel) {
  const TemporaryDirectory directory;
  const std::string given = directory.File("given.onnx"), one = directory.File("one.onnx"),
                    two = directory.File("two.onnx");
  const auto succeeds = [](const std::vector<std::string>& arguments) {
    const ProgramResult result = Tilesmith(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
  };
  succeeds({"export", "squeezenet1_1", "-o", given, "--external-data", "--input-shape", "input=1x3x48x48"});
  EXPECT_THAT(SummarizeOnnx(ReadFile(given), "given").parts, testing::ElementsAre("given.onnx.data"));
  const std::vector<std::string> fast = {"--samples", "1", "--no-check", "--threads", "1"};
  for (std::vector<std::string> arguments : {std::vector<std::string>{"quantize", given, "-o", one},
                                             {"quantize", given, "-o", two, "--external-data"}}) {
    arguments.insert(arguments.end(), fast.begin(), fast.end());
    succeeds(arguments);
  }
  EXPECT_THAT(SummarizeOnnx(ReadFile(one), "one").parts, testing::IsEmpty());
  EXPECT_THAT(SummarizeOnnx(ReadFile(two), "two").parts, testing::ElementsAre("two.onnx.data"));
  const std::string npy = directory.File("one.npz"), other = directory.File("two.npz");
  succeeds({"run", one, "--runs", "1", "--threads", "1", "--output", npy});
  succeeds({"run", two, "--runs", "1", "--threads", "1", "--output", other});
  EXPECT_EQ(ReadNpz(npy).size(), 1u);
  const auto first = ReadNpz(npy), second = ReadNpz(other);
  EXPECT_TRUE(std::ranges::equal(std::span(first[0].second.floats(), 1000),
                                 std::span(second[0].second.floats(), 1000)));
  // Neither file of the input is overwritten.
  ExpectRefusal({"quantize", given, "-o", given}, 2, "both an input and the output");
  std::filesystem::rename(given + ".data", two + ".data");
  std::string moved = ReadFile(given);
  for (size_t at = 0; (at = moved.find("given.onnx.data", at)) != std::string::npos;)
    moved.replace(at, 15, "./two.onnx.data");
  WriteFile(given, moved);
  ExpectRefusal({"quantize", given, "-o", two, "--external-data"}, 2, "both an input and the output");
}

TEST_F(QuantizeTest, FromCppAndC) {
  std::vector<std::string> stages;
  const Json json =
      Json::parse(Quantize(model, output,
                           {.samples = 2,
                            .keep = {"fc"},
                            .threads = 1,
                            .input_shapes = {"width=10"},
                            .on_progress = [&](const std::string& stage) { stages.push_back(stage); }}));
  EXPECT_EQ(json["kept_nodes"], 1);
  EXPECT_THAT(stages, testing::Contains(HasSubstr("ranges: sample 1/2")));
  EXPECT_THAT(stages, testing::Contains(HasSubstr("errors: sample 2/2")));
  EXPECT_THROW(Quantize(model, output, {.method = "best"}), std::runtime_error);
  EXPECT_THROW(Quantize(model, output, {.samples = -1}), std::runtime_error);

  const char* shape = "width=10";
  const char* kept = "fc";
  tilesmith_quantize_settings settings = {};
  settings.samples = 1;
  settings.input_shapes = &shape;
  settings.input_shape_count = 1;
  settings.keep = &kept;
  settings.keep_count = 1;
  settings.threads = 1;
  const std::string other = directory.File("c.onnx");
  EXPECT_EQ(tilesmith_quantize(model.c_str(), other.c_str(), &settings), 0) << tilesmith_last_error();
  EXPECT_TRUE(std::filesystem::exists(other));

  // From memory.
  const std::string bytes = ReadFile(model), again = directory.File("again.onnx");
  tilesmith_memory memory = {};
  memory.data = bytes.data();
  memory.bytes = bytes.size();
  EXPECT_EQ(tilesmith_quantize_memory(&memory, again.c_str(), &settings), 0) << tilesmith_last_error();
  EXPECT_EQ(ReadFile(again), ReadFile(other));
  memory.data = nullptr;
  EXPECT_EQ(tilesmith_quantize_memory(&memory, again.c_str(), &settings), 2);

  settings.keep_count = 0;
  settings.activations = "i4";
  EXPECT_EQ(tilesmith_quantize(model.c_str(), other.c_str(), &settings), 2);
  EXPECT_THAT(tilesmith_last_error(), HasSubstr("activations must be one of u8, i8, i8-symmetric, got i4"));
  tilesmith_stop* const stop = tilesmith_new_stop();
  tilesmith_cancel(stop);
  settings.activations = nullptr;
  settings.stop = stop;
  EXPECT_EQ(tilesmith_quantize(model.c_str(), other.c_str(), &settings), 130);
  tilesmith_free_stop(stop);
}

}  // namespace
}  // namespace tilesmith
