// Models that are loaded without the sizes of their inputs, which the first run says; and plans for other
// threads than there are.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <thread>

#include "graph_tuner/executor/heuristic_plan.h"
#include "graph_tuner/plan/plan_file.h"
#include "tests/tools/cli.h"
#include "tests/tools/open_model.h"
#include "tools/api/tilesmith_c.h"

namespace tilesmith {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using Sizes = std::vector<int64_t>;

template <typename Action>
std::string ThrownBy(const Action& action) {
  try {
    action();
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "no error";
}

struct OpenSizesTest : testing::Test {
  const TemporaryDirectory directory;
  const std::string path = WriteOpenModel(directory), plan = directory.File("plan.jsonl");

  SizedExample Example(const Sizes& shape) const { return ExampleOf(path, shape, 3); }
  // For that size of x, and so many threads.
  void WritePlanFor(const Sizes& shape, int threads) const {
    ModelOptions options;
    options.model = path;
    options.shapes["x"] = shape;
    Plan made = HeuristicPlan(LoadModel(options), DetectCpu(), threads);
    for (NodePlan& node : made.nodes) made.predicted_seconds += node.predicted_seconds = 1e-6;
    WritePlan(plan, made);
  }
};

TEST_F(OpenSizesTest, TheFirstRunSaysThem) {
  const Model model = Model::Load(path, {.threads = 1});
  ASSERT_EQ(model.inputs().size(), 1u);
  EXPECT_EQ(model.inputs()[0].name, "x");
  EXPECT_EQ(model.inputs()[0].shape, (Sizes{-1, 3, -1, -1}));
  EXPECT_EQ(model.inputs()[0].type, "f32");
  EXPECT_EQ(model.inputs()[0].layout, "NCHW");
  EXPECT_EQ(model.inputs()[0].bytes, 0u);
  ASSERT_EQ(model.outputs().size(), 2u);
  EXPECT_EQ(model.outputs()[1].name, "mean");
  EXPECT_EQ(model.outputs()[1].type, "");
  EXPECT_EQ(model.packed_weight_bytes(), 0u);
  EXPECT_EQ(model.predicted_seconds(), 0);
  EXPECT_TRUE(model.warnings().empty());

  const SizedExample example = Example({2, 3, 33, 20});
  Session session = model.NewSession(), other = model.NewSession();
  std::vector<float> y(2 * 8 * 17 * 10), mean(16);
  const auto run_bare = [&](Session& of) { of.Run({example.x.raw()}, {y.data(), mean.data()}); };
  EXPECT_EQ(session.activation_bytes(), 0u);
  EXPECT_THAT(
      ThrownBy([&] { run_bare(session); }),
      AllOf(HasSubstr("left open until a run is given their shapes"), HasSubstr("\"x\" is -1x3x-1x-1")));
  EXPECT_THAT(ThrownBy([&] {
                const void* const in = example.x.raw();
                void* const out[] = {y.data(), mean.data()};
                session.Profile(std::span(&in, 1), out, 1);
              }),
              HasSubstr("\"x\" is -1x3x-1x-1"));
  EXPECT_THAT(ThrownBy([&] { session.Run({{example.x.raw()}}); }), HasSubstr("input_shapes"));
  const auto refusal = [&](const Sizes& shape) {
    return ThrownBy([&] { session.Run(std::vector<InputTensor>{{example.x.raw(), shape}}); });
  };
  EXPECT_THAT(refusal({2, 4, 33, 20}), HasSubstr("has shape 2x4x33x20, expected -1x3x-1x-1"));
  EXPECT_THAT(refusal({2, 3, 33}), HasSubstr("expected -1x3x-1x-1"));
  EXPECT_THAT(refusal({2, 3, -1, 20}), HasSubstr("expected -1x3x-1x-1"));
  EXPECT_THAT(refusal({1, 3, 0, 20}), HasSubstr("Conv"));
  EXPECT_EQ(model.inputs()[0].shape, (Sizes{-1, 3, -1, -1})) << "what was refused changes nothing";

  ExpectRight(RunExample(session, example), example);
  EXPECT_EQ(model.inputs()[0].shape, example.shape);
  EXPECT_EQ(model.outputs()[0].shape, (Sizes{2, 8, 17, 10}));
  EXPECT_GT(model.packed_weight_bytes(), 0u);
  for (Session* of : {&session, &other}) {
    std::ranges::fill(mean, NAN);
    run_bare(*of);
    EXPECT_NEAR(mean[15], example.expected[1].second.floats()[15], 1e-4);
  }
  EXPECT_THAT(refusal({1, 3, 33, 20}), HasSubstr("loaded for 2x3x33x20 only"));
  EXPECT_FALSE(session.Profile(std::vector<InputTensor>{{example.x.raw()}}, 2).empty());
}

TEST_F(OpenSizesTest, WhatIsGivenAtLoadTimeHolds) {
  const auto shape_with = [&](const LoadOptions& options) {
    return Model::Load(path, options).inputs()[0].shape;
  };
  EXPECT_EQ(shape_with({.threads = 1, .batch = 2}), (Sizes{2, 3, -1, -1}));
  const Model model = Model::Load(path, {.threads = 1, .input_shapes = {"H=32"}});
  EXPECT_EQ(model.inputs()[0].shape, (Sizes{-1, 3, 32, -1}));
  Session session = model.NewSession();
  const SizedExample other = Example({1, 3, 33, 20}), example = Example({1, 3, 32, 20});
  EXPECT_THAT(ThrownBy([&] { RunExample(session, other); }), HasSubstr("expected -1x3x32x-1"));
  ExpectRight(RunExample(session, example), example);
  EXPECT_EQ(shape_with({.threads = 1, .input_shapes = {"H=32", "W=20"}}), (Sizes{1, 3, 32, 20}))
      << "an open batch is one";
  EXPECT_THAT(ThrownBy([&] {
                shape_with({.input_shapes = {"H=32", "H=16"}});
              }),
              HasSubstr("left open: \"x\" is [N, 3, 32, W]"));
  EXPECT_THAT(ThrownBy([&] { shape_with({.input_shapes = {"Q=32"}}); }), HasSubstr("no symbolic dimension"));
}

TEST_F(OpenSizesTest, MoreSizesFollowAndNothingOfAModelInMemoryIsNeeded) {
  std::string bytes = ReadFile(path);
  const Model model = Model::Load(std::as_bytes(std::span(bytes)), {.threads = 1, .sizes = 3});
  std::ranges::fill(bytes, 'x');
  Session session = model.NewSession();
  for (int round = 0; round < 2; ++round) {
    for (const Sizes& shape :
         {Sizes{1, 3, 33, 20}, {2, 3, 32, 32}, {1, 3, 1, 1}, {0, 3, 8, 8}, {1, 3, 50, 7}}) {
      const SizedExample example = Example(shape);
      ExpectRight(RunExample(session, example), example);
    }
  }
  EXPECT_EQ(model.inputs()[0].shape, (Sizes{1, 3, 33, 20})) << "the first stays";
}

// Threads that come at once with sizes of their own: one of them is the model's.
TEST_F(OpenSizesTest, OneOfManyThreadsIsFirst) {
  for (const int sizes : {1, 4}) {
    const Model model = Model::Load(path, {.threads = 1, .sizes = sizes});
    std::atomic<int> right = 0, refused = 0;
    std::vector<std::thread> threads;
    for (int64_t t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        const SizedExample example = Example({1, 3, 8 + t, 9});
        Session session = model.NewSession();
        for (int run = 0; run < 20; ++run) {
          try {
            ExpectRight(RunExample(session, example), example);
            ++right;
          } catch (const std::runtime_error& error) {
            EXPECT_THAT(error.what(), testing::AnyOf(HasSubstr("loaded for"), HasSubstr("expected")));
            ++refused;
          }
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(right, sizes == 1 ? 20 : 80);
    EXPECT_EQ(refused, sizes == 1 ? 60 : 0);
  }
}

TEST_F(OpenSizesTest, APlanIsForTheSizeOfTheFirstRun) {
  WritePlanFor({1, 3, 33, 20}, 1);
  const SizedExample example = Example({1, 3, 33, 20}), other = Example({1, 3, 32, 32});
  const Model model = Model::Load(path, {.plan = plan, .threads = 1});
  Session session = model.NewSession();
  EXPECT_THAT(ThrownBy([&] { RunExample(session, other); }), HasSubstr("made for inputs of"));
  ExpectRight(RunExample(session, example), example);
  EXPECT_GT(model.predicted_seconds(), 0);
}

TEST_F(OpenSizesTest, CSaysThemToo) {
  tilesmith_load_options options = {};
  options.threads = 1;
  tilesmith_model* model = nullptr;
  tilesmith_session* session = nullptr;
  ASSERT_EQ(tilesmith_load(path.c_str(), &options, &model), 0) << tilesmith_last_error();
  EXPECT_EQ(tilesmith_input(model, 0).shape[2], -1);
  EXPECT_EQ(tilesmith_output(model, 0).rank, 0u);
  EXPECT_EQ(tilesmith_warning(model, 0), nullptr);
  ASSERT_EQ(tilesmith_new_session(model, nullptr, 0, &session), 0) << tilesmith_last_error();
  const SizedExample example = Example({1, 3, 33, 20});
  const void* in = example.x.raw();
  std::vector<float> y(8 * 17 * 10), mean(8);
  void* out[] = {y.data(), mean.data()};
  EXPECT_EQ(tilesmith_run(session, &in, out), 2);
  EXPECT_THAT(tilesmith_last_error(), HasSubstr("\"x\" is -1x3x-1x-1"));
  tilesmith_tensor input = {};
  input.data = in;
  EXPECT_EQ(tilesmith_run_inputs(session, &input), 2);
  input.shape = example.shape.data();
  input.rank = example.shape.size();
  ASSERT_EQ(tilesmith_run_inputs(session, &input), 0) << tilesmith_last_error();
  EXPECT_EQ(tilesmith_result(session, 0).shape[2], 17);
  EXPECT_EQ(tilesmith_input(model, 0).shape[2], 33);
  EXPECT_EQ(tilesmith_run(session, &in, out), 0) << tilesmith_last_error();
  tilesmith_free_session(session);
  tilesmith_free_model(model);
}

// What a model leaves open is said with a whole line to give it.
TEST_F(OpenSizesTest, CommandsNameThemAndProposeUsualOnes) {
  const std::string log = directory.File("log.jsonl");
  const auto of_input = [&](const std::vector<OnnxDim>& dims) {
    OnnxModel model;
    model.Input("in", dims);
    model.Input("scale", {"N", 2});
    model.Node("Relu", {"in"}, {"y"});
    model.Node("Relu", {"scale"}, {"z"});
    model.Output("y");
    model.Output("z");
    const std::string open = directory.File("asks.onnx");
    WriteFile(open, model.Bytes());
    return ThrownBy([&] { LoadModel({.model = open, .input_shapes = {}}); });
  };
  EXPECT_THAT(
      of_input({"N", 3, "H", "W"}),
      HasSubstr(
          "\"in\" is [N, 3, H, W]; give them, such as `input_shapes` in=1x3x224x224 (usual, which need not "
          "be this model's: 224x224 of classifiers, 640x640 of detectors, 48x320 of"));
  EXPECT_THAT(of_input({-1, 3, 48, -1}),
              HasSubstr("\"in\" is [?, 3, 48, ?]; give them, such as `input_shapes` in=1x3x48x320 ("));
  EXPECT_THAT(of_input({-1, 1, "H", 100}), HasSubstr("`input_shapes` in=1x1x100x100"));
  EXPECT_THAT(of_input({"N", "tokens"}), HasSubstr("`input_shapes` in=1x128"));
  EXPECT_THAT(of_input({2, 5, "D", "H", "W"}), HasSubstr("`input_shapes` in=2x5x224x224x224"));
  EXPECT_EQ(of_input({"N", 3, 8, 8}), "no error");
  ExpectRefusal({"tune", path, "-o", log}, 3, "such as --input-shape x=1x3x224x224");
  ExpectRefusal({"optimize", path, "-o", log}, 3, "640x640 of detectors");
  EXPECT_THAT(ThrownBy([&] { GraphTune(path, "", log, {}); }),
              HasSubstr("such as `input_shapes` x=1x3x224x224"));
}

TEST_F(OpenSizesTest, APlanOfOtherThreadsRunsAndIsWarnedOf) {
  WritePlanFor({1, 3, 33, 20}, 2);
  const SizedExample example = Example({1, 3, 33, 20});
  for (const bool open : {false, true}) {
    LoadOptions options = {.plan = plan, .threads = 1};
    if (!open) options.input_shapes = {"x=1x3x33x20"};
    const Model model = Model::Load(path, options);
    EXPECT_THAT(model.warnings(), ElementsAre(HasSubstr("plan.jsonl: made for 2 threads, and 1 runs it")));
    Session session = model.NewSession();
    ExpectRight(RunExample(session, example), example);
    EXPECT_EQ(model.threads(), 1);
    EXPECT_EQ(model.predicted_seconds(), 0) << "that is of two threads";
    options.strict = true;
    EXPECT_THAT(ThrownBy([&] {
                  const Model strict = Model::Load(path, options);
                  Session of_strict = strict.NewSession();
                  RunExample(of_strict, example);
                }),
                HasSubstr("made for 2 threads, asked to run with 1"));
  }
}

// Who names the plan's threads does not know of a quota.
TEST_F(OpenSizesTest, ThreadsThatAPlanWasMadeForMayBeMoreThanCores) {
  WritePlanFor({1, 3, 33, 20}, 4096);
  LoadOptions options = {.plan = plan, .threads = 4096, .input_shapes = {"x=1x3x33x20"}};
  const Model model = Model::Load(path, options);
  EXPECT_EQ(model.threads(), DetectCpu().cores);
  EXPECT_THAT(model.warnings(), ElementsAre(HasSubstr("made for 4096 threads")));
  options.threads = 4097;
  EXPECT_THAT(ThrownBy([&] { Model::Load(path, options); }), HasSubstr("`threads` must be at most"));
  options.threads = 4096;
  options.strict = true;
  EXPECT_THAT(ThrownBy([&] { Model::Load(path, options); }), HasSubstr("`threads` must be at most"));

  tilesmith_load_options c_options = {};
  c_options.plan = plan.c_str();
  c_options.threads = 4096;
  const char* const shape = "x=1x3x33x20";
  c_options.input_shapes = &shape;
  c_options.input_shape_count = 1;
  tilesmith_model* c_model = nullptr;
  ASSERT_EQ(tilesmith_load(path.c_str(), &c_options, &c_model), 0) << tilesmith_last_error();
  EXPECT_THAT(tilesmith_warning(c_model, 0), HasSubstr("made for 4096 threads"));
  EXPECT_EQ(tilesmith_warning(c_model, 1), nullptr);
  EXPECT_EQ(tilesmith_warning(nullptr, 0), nullptr);
  tilesmith_free_model(c_model);
  c_options.strict = 1;
  EXPECT_EQ(tilesmith_load(path.c_str(), &c_options, &c_model), 2);
}

}  // namespace
}  // namespace tilesmith
