// `tilesmith compile`, and who takes what it writes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "tests/support/ops/onnx_model.h"
#include "tests/support/temporary_files.h"
#include "tests/tools/cli.h"
#include "tools/api/tilesmith.h"
#include "tools/cli/npz.h"

namespace tilesmith {
namespace {

using testing::HasSubstr;

class CompileTest : public testing::Test {
 protected:
  static const std::vector<std::string>& Sizes() {
    static const std::vector<std::string> sizes = {"input=1x3x64x64", "input=1x3x64x48"};
    return sizes;
  }

  std::string Compiled(std::vector<std::string> more = {}) const {
    std::vector<std::string> arguments = {"compile", "squeezenet1_1", "-o",
                                          path_,     "--input-shape", Sizes()[0]};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const ProgramResult result = Tilesmith(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.out, HasSubstr("networks in it"));
    return path_;
  }

  // What `run` gives for it.
  std::vector<NamedTensor> OutputsOf(std::vector<std::string> arguments) const {
    const std::string file = folder_.File("outputs.npz");
    arguments.insert(arguments.begin(), "run");
    arguments.insert(arguments.end(), {"--runs", "1", "--output", file});
    const ProgramResult result = Tilesmith(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return ReadNpz(file);
  }

  // A plan for the network's inputs of these sizes.
  static void GraphTune(const std::string& plan, const std::string& threads, const std::string& input_shape) {
    const ProgramResult result =
        Tilesmith({"graph-tune", "squeezenet1_1", "-o", plan, "--threads", threads, "--rounds", "1", "--time",
                   "50ms", "--no-baselines", "--default-schedules", "--input-shape", input_shape});
    ASSERT_EQ(result.exit_code, 0) << result.err;
  }

  // Images of these widths give the bits of models that are loaded for them.
  static void ExpectServes(Session& session, const std::vector<int64_t>& widths,
                           const std::string& plan = "") {
    for (const int64_t width : widths) {
      const std::vector<int64_t> shape = {1, 3, 64, width};
      const std::vector<float> image(static_cast<size_t>(3 * 64 * width), 0.25F);
      const Model alone = Model::Load(
          "squeezenet1_1",
          {.plan = plan, .threads = 1, .input_shapes = {"input=1x3x64x" + std::to_string(width)}});
      Session wanted = alone.NewSession();
      const OutputTensor expected = wanted.Run({{.data = image.data(), .shape = shape}})[0];
      const OutputTensor& got = session.Run({{.data = image.data(), .shape = shape}})[0];
      ASSERT_EQ(got.bytes, expected.bytes);
      EXPECT_EQ(std::memcmp(got.data, expected.data, got.bytes), 0) << width;
    }
  }

  static void ExpectSame(const std::vector<NamedTensor>& got, const std::vector<NamedTensor>& wanted) {
    ASSERT_EQ(got.size(), wanted.size());
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_EQ(got[i].first, wanted[i].first);
      const Tensor &a = got[i].second, &b = wanted[i].second;
      ASSERT_EQ(a.bytes(), b.bytes());
      EXPECT_TRUE(std::equal(a.raw(), a.raw() + a.bytes(), b.raw()));
    }
  }

  const TemporaryDirectory folder_;
  const std::string path_ = folder_.File("network.tsc");
};

TEST_F(CompileTest, RunsAsTheModelDoes) {
  const std::string file = Compiled({"--for-threads", "1", "--for-threads", "2", "--for", "portable"});
  for (const std::string threads : {"1", "2"}) {
    ExpectSame(OutputsOf({file, "--threads", threads, "--verify"}),
               OutputsOf({"squeezenet1_1", "--input-shape", Sizes()[0], "--threads", threads, "--max-isa",
                          "portable"}));
  }
  const ProgramResult profile = Tilesmith({"run", file, "--runs", "2", "--profile", "--threads", "1"});
  EXPECT_EQ(profile.exit_code, 0) << profile.err;
  EXPECT_THAT(profile.out, HasSubstr("features.0"));
  EXPECT_THAT(profile.out, HasSubstr("compiled"));
}

// Layer by layer, as a model is: with that model beside it.
TEST_F(CompileTest, IsCheckedBesideItsModel) {
  const std::string file = Compiled({"--input-shape", Sizes()[1], "--threads", "1"});
  const auto check = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments = {"run", file, "--runs", "1", "--check"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  };
  const ProgramResult checked =
      Tilesmith(check({"--model", "squeezenet1_1", "--input-shape", Sizes()[1], "--json"}));
  EXPECT_EQ(checked.exit_code, 0) << checked.err;
  const auto facts = nlohmann::json::parse(checked.out);
  EXPECT_GT(facts.at("checked_steps"), 25);
  EXPECT_LE(facts.at("difference"), facts.at("allowed_difference"));
  ExpectRefusal(check({}), 2, "--check needs the model that the network was compiled from: --model");
  ExpectRefusal(check({"--model", "resnet18"}), 2, "resnet18 is another one");
  ExpectRefusal(check({"--model", "squeezenet1_1", "--input-shape", "input=1x3x64x80"}), 2,
                "the inputs are 1x3x64x80");
  ExpectRefusal(check({"--model", "squeezenet1_1", "--input-shape", "image=1x3x64x64"}), 2,
                "has no input named \"image\"");
  ExpectRefusal({"run", file, "--model", "squeezenet1_1"}, 2, "--model is for --check");
}

// In bytes, where the plan says how the model was quantised.
TEST_F(CompileTest, IsCheckedBesideItsPlan) {
  const std::string plan = folder_.File("plan.jsonl");
  const ProgramResult planned = Tilesmith(
      {"graph-tune", "squeezenet1_1", "--input-shape", Sizes()[0], "-o", plan, "--threads", "1",
       "--precision", "int8", "--default-schedules", "--rounds", "0", "--time", "1ms", "--no-baselines"});
  ASSERT_EQ(planned.exit_code, 0) << planned.err;
  const std::string file = Compiled({"--threads", "1", "--plan", plan});
  const std::vector<std::string> check = {"run", file, "--runs", "1", "--check", "--model", "squeezenet1_1"};
  std::vector<std::string> whole = check;
  whole.insert(whole.end(), {"--plan", plan});
  const ProgramResult checked = Tilesmith(whole);
  EXPECT_EQ(checked.exit_code, 0) << checked.err;
  ExpectRefusal(check, 2, "unless a plan quantises it: give that, too");
}

TEST_F(CompileTest, IsTimedAloneAndBesideItsModel) {
  const std::string file = Compiled({"--input-shape", Sizes()[1], "--for-threads", "1"});
  const auto bench = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments = {"bench", file,     "--network-time", "50ms",    "--threads",
                                          "1",     "--json", "--input-shape",  Sizes()[1]};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const ProgramResult result = Tilesmith(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return nlohmann::json::parse(result.out);
  };
  const auto alone = bench({});
  EXPECT_GT(alone.at("network_seconds"), 0);
  EXPECT_EQ(alone.at("network_onednn_refusal"), "the model is not known (--model)");
  const auto beside = bench({"--model", "squeezenet1_1", "--time", "1ms", "--onnxruntime", "none"});
  EXPECT_GT(beside.at("network_seconds"), 0);
  EXPECT_EQ(beside.at("plan_hash"), alone.at("plan_hash"));
  EXPECT_FALSE(beside.at("rows").empty());
  ExpectRefusal({"bench", file, "--csv", "x.csv"}, 2, "--csv needs the model");
  ExpectRefusal({"bench", file, "--sweep", "threads"}, 2, "--sweep is for models");
  ExpectRefusal({"bench", file, "--model", "resnet18"}, 2, "resnet18 is another one");
}

TEST_F(CompileTest, TheInterfaceLoadsIt) {
  const Model model = Model::Load(Compiled({"--input-shape", Sizes()[1], "--threads", "1"}), {.threads = 1});
  EXPECT_EQ(model.threads(), 1);
  ASSERT_EQ(model.inputs().size(), 1U);
  EXPECT_EQ(model.inputs()[0].name, "input");
  Session session = model.NewSession();
  ExpectServes(session, {64, 48, 64});
  const std::vector<float> image(size_t{3} * 64 * 32, 0.25F);
  const std::vector<int64_t> unknown = {1, 3, 64, 32};
  EXPECT_THROW(session.Run({{.data = image.data(), .shape = unknown}}), Error);
}

// One file for a range: plans of its ends lend their schedules to what lies between.
TEST_F(CompileTest, OneFileServesARangeOfSizes) {
  const std::string plan = folder_.File("plan.jsonl"), range = "input=1x3x64x48..96:4";
  GraphTune(plan, "1", range);
  EXPECT_THAT(ReadFile(plan), testing::ContainsRegex("tilesmith_plan.*[^$]*tilesmith_plan"));
  const ProgramResult result = Tilesmith(
      {"compile", "squeezenet1_1", "-o", path_, "--threads", "1", "--plan", plan, "--input-shape", range});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, testing::ContainsRegex("networks in it +13"));
  EXPECT_THAT(result.err, HasSubstr("the schedules of the nearest size run"));
  EXPECT_THAT(result.err, HasSubstr("and 8 such notes more"));
  Session session = Model::Load(path_, {.threads = 1}).NewSession();
  ExpectServes(session, {96, 48, 52, 92, 48, 72}, plan);
  const std::vector<float> image(size_t{3} * 64 * 50, 0.25F);
  const std::vector<int64_t> between = {1, 3, 64, 50};
  EXPECT_THAT([&] { session.Run({{.data = image.data(), .shape = between}}); },
              testing::ThrowsMessage<std::runtime_error>(HasSubstr("and 7 more, the last one for")));
}

// One file of plans, and one compiled file, for several numbers of threads.
TEST_F(CompileTest, PlansForSeveralNumbersOfThreadsServeEach) {
  const std::string plan = folder_.File("plan.jsonl"), alone = folder_.File("alone.jsonl");
  std::string plans;
  for (const std::string threads : {"1", "2"}) {
    GraphTune(alone, threads, Sizes()[0]);
    plans += ReadFile(alone);
  }
  WriteFile(plan, plans);
  const std::string file = Compiled({"--plan", plan, "--for-threads", "1", "--for-threads", "2"});
  for (const std::string threads : {"1", "2"}) {
    const ProgramResult result = Tilesmith({"run", "squeezenet1_1", "--plan", plan, "--strict", "--threads",
                                            threads, "--runs", "1", "--input-shape", Sizes()[0]});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    ExpectSame(
        OutputsOf({file, "--threads", threads}),
        OutputsOf({"squeezenet1_1", "--plan", plan, "--input-shape", Sizes()[0], "--threads", threads}));
  }
  ExpectRefusal({"compile", "squeezenet1_1", "-o", path_, "--plan", plan, "--for-threads", "3",
                 "--input-shape", Sizes()[0]},
                2, "thread");
}

TEST_F(CompileTest, WhatItCannotDoIsRefusedByName) {
  ExpectRefusal({"compile", "squeezenet1_1"}, 2, "-o FILE is required");
  ExpectRefusal({"compile", "resnet51", "-o", path_}, 2, "resnet51");
  ExpectRefusal({"compile", "squeezenet1_1", "-o", path_, "--for-threads", "0"}, 2,
                "--for-threads must be at least 1, got 0");
  ExpectRefusal({"compile", "squeezenet1_1", "-o", path_, "--for", "sse"}, 2, "sse");
  ExpectRefusal({"compile", "squeezenet1_1", "-o", path_, "--plan", "x.jsonl", "--for", "avx2"}, 2, "--for");
  WriteFile(path_, "name,value\na,1\n");
  ExpectRefusal({"compile", "squeezenet1_1", "-o", path_}, 2, "holds something else than a compiled network");
}

// What only values say the sizes of is computed by nodes that the file has, too.
TEST_F(CompileTest, OutputsMayHaveSizesThatDependOnValues) {
  OnnxModel model;
  model.Input("boxes", {1, 60, 4});
  model.Input("raw", {1, 2, 60});
  model.Node("Sigmoid", {"raw"}, {"scores"});
  model.Ints("most", {30});
  model.Floats("overlap", {1}, {0.5F});
  model.Floats("least", {1}, {0.6F});
  model.Node("NonMaxSuppression", {"boxes", "scores", "most", "overlap", "least"}, {"kept"});
  model.Output("kept");
  model.Output("scores");
  const std::string detector = folder_.File("detector.onnx");
  WriteFile(detector, model.Bytes());
  const ProgramResult result = Tilesmith({"compile", detector, "-o", path_, "--threads", "1"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const std::vector<NamedTensor> outputs = OutputsOf({path_, "--threads", "1"});
  EXPECT_GT(outputs.at(0).second.size(), 0);
  ExpectSame(outputs, OutputsOf({detector, "--threads", "1"}));
}

TEST_F(CompileTest, CommandsSayWhatIsNotForIt) {
  ExpectRefusal({"run", "squeezenet1_1", "--verify"}, 2, "--verify is for compiled networks");
  ExpectRefusal({"run", "squeezenet1_1", "--model", "resnet18"}, 2, "--model is for compiled networks");
  const std::string file = Compiled({"--threads", "1"});
  for (const std::vector<std::string>& more : std::vector<std::vector<std::string>>{
           {"--strict"}, {"--batch", "2"}, {"--streams", "2"}, {"--precision", "int8"}}) {
    std::vector<std::string> arguments = {"run", file};
    arguments.insert(arguments.end(), more.begin(), more.end());
    ExpectRefusal(arguments, 2, more[0] + " is for models, not for compiled networks");
  }
  ExpectRefusal({"report", "log.jsonl", file, "-o", "x.html"}, 2, "is a compiled network: give the plan");
  ExpectRefusal({"tasks", file}, 2, "is a compiled network, for run and bench");
  std::string damaged = ReadFile(file);
  damaged[5000] ^= 1;
  WriteFile(file, damaged);
  ExpectRefusal({"run", file}, 3, "its tables are damaged");
}

}  // namespace
}  // namespace tilesmith
