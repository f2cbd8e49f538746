// Sizes that are not known when a model is loaded: of outputs that depend on values, and of inputs.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <cstring>
#include <filesystem>
#include <thread>

#include "tests/support/ops/onnx_model.h"
#include "tests/support/temporary_files.h"
#include "tests/tools/cli.h"
#include "tests/tools/open_model.h"
#include "tools/api/tilesmith.h"
#include "tools/api/tilesmith_c.h"
#include "tools/cli/model.h"
#include "tools/cli/npz.h"

namespace tilesmith {
namespace {

using testing::HasSubstr;

// Boxes and raw scores -> the boxes that are kept, and the scores.
std::string WriteDetector(const TemporaryDirectory& directory) {
  OnnxModel model;
  model.Input("boxes", {1, 6, 4});
  model.Input("raw", {1, 2, 6});
  model.Node("Sigmoid", {"raw"}, {"scores"});
  model.Ints("most", {3});
  model.Floats("overlap", {1}, {0.5f});
  model.Floats("least", {1}, {0.6f});
  model.Node("NonMaxSuppression", {"boxes", "scores", "most", "overlap", "least"}, {"kept"});
  model.Output("kept");
  model.Output("scores");
  const std::string path = directory.File("detector.onnx");
  WriteFile(path, model.Bytes());
  return path;
}

// Six boxes apart from each other, and raw scores of which the given ones are large.
struct Detections {
  std::vector<float> boxes, raw = std::vector<float>(12, -3.0f);
  explicit Detections(const std::vector<int>& large) {
    for (int i = 0; i < 6; ++i) {
      const auto at = static_cast<float>(2 * i);
      boxes.insert(boxes.end(), {at, at, at + 1, at + 1});
    }
    float score = 3;
    for (const int i : large) raw[i] = score, score -= 0.1f;
  }
};

std::vector<int64_t> Int64s(const OutputTensor& output) {
  const auto* values = static_cast<const int64_t*>(output.data);
  return {values, values + output.elements};
}

TEST(ApiSizesTest, OutputsWhoseSizeDependsOnValuesHaveTheirTrueSize) {
  const TemporaryDirectory directory;
  const Model model = Model::Load(WriteDetector(directory), {.threads = 1});
  EXPECT_EQ(model.outputs()[0].name, "kept");
  EXPECT_EQ(model.outputs()[0].bytes, 0u);
  Session session = model.NewSession();
  const auto run = [&](const Detections& given) -> const std::vector<OutputTensor>& {
    return session.Run({{given.boxes.data()}, {given.raw.data()}});
  };
  const Detections two({4, 7}), none({}), many({0, 1, 2, 3, 4, 5});
  EXPECT_EQ(run(two)[0].shape, (std::vector<int64_t>{2, 3}));
  EXPECT_THAT(Int64s(run(two)[0]), testing::ElementsAre(0, 0, 4, 0, 1, 1));
  EXPECT_EQ(run(two)[0].type, "i64");
  EXPECT_EQ(run(two)[1].shape, (std::vector<int64_t>{1, 2, 6}));
  EXPECT_EQ(run(none)[0].shape, (std::vector<int64_t>{0, 3}));
  EXPECT_EQ(run(many)[0].shape, (std::vector<int64_t>{3, 3}));
  const size_t before = mallinfo2().uordblks;
  for (int i = 0; i < 200; ++i) run(i % 2 == 0 ? many : two);
  run(many);
  EXPECT_LE(mallinfo2().uordblks, before + 4096);
  std::vector<float> outputs(64);
  EXPECT_THAT(
      [&] {
        session.Run({two.boxes.data(), two.raw.data()}, {outputs.data(), outputs.data() + 32});
      },
      testing::ThrowsMessage<std::runtime_error>(HasSubstr("depend on values")));
  EXPECT_THAT(([&] { session.Run({{two.boxes.data()}}); }),
              testing::ThrowsMessage<std::runtime_error>(HasSubstr("1 inputs given, expected 2")));
  EXPECT_THAT(([&] {
                session.Run({{two.boxes.data()}, {nullptr}});
              }),
              testing::ThrowsMessage<std::runtime_error>(HasSubstr("null pointer")));
}

TEST(ApiSizesTest, SessionsInManyThreadsGiveTheirOwnSizes) {
  const TemporaryDirectory directory;
  const Model model = Model::Load(WriteDetector(directory), {.threads = 1});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&model, t] {
      Session session = model.NewSession();
      std::vector<int> large;
      for (int i = 0; i < t; ++i) large.push_back(i);
      const Detections given(large);
      for (int run = 0; run < 50; ++run) {
        EXPECT_EQ(session.Run({{given.boxes.data()}, {given.raw.data()}})[0].shape,
                  (std::vector<int64_t>{std::min(t, 3), 3}));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(CApiSizesTest, ResultsSayTheirShapes) {
  const TemporaryDirectory directory;
  tilesmith_load_options options = {};
  options.threads = 1;
  tilesmith_model* model = nullptr;
  ASSERT_EQ(tilesmith_load(WriteDetector(directory).c_str(), &options, &model), 0) << tilesmith_last_error();
  tilesmith_session* session = nullptr;
  ASSERT_EQ(tilesmith_new_session(model, nullptr, 0, &session), 0) << tilesmith_last_error();
  EXPECT_EQ(tilesmith_result(session, 0).data, nullptr);
  const Detections given({3});
  tilesmith_tensor inputs[2] = {};
  inputs[0].data = given.boxes.data();
  inputs[1].data = given.raw.data();
  ASSERT_EQ(tilesmith_run_inputs(session, inputs), 0) << tilesmith_last_error();
  const tilesmith_tensor kept = tilesmith_result(session, 0);
  ASSERT_EQ(kept.rank, 2u);
  EXPECT_EQ(kept.shape[0], 1);
  EXPECT_EQ(static_cast<const int64_t*>(kept.data)[2], 3);
  EXPECT_EQ(tilesmith_result(session, 2).data, nullptr);
  const int64_t wrong[] = {1, 7, 4};
  inputs[0].shape = wrong;
  inputs[0].rank = 3;
  EXPECT_EQ(tilesmith_run_inputs(session, inputs), 2);
  EXPECT_THAT(tilesmith_last_error(), HasSubstr("1x7x4"));
  EXPECT_EQ(tilesmith_result(session, 0).data, nullptr);
  EXPECT_EQ(tilesmith_run_inputs(nullptr, inputs), 2);
  EXPECT_EQ(tilesmith_run_inputs(session, nullptr), 2);
  tilesmith_free_session(session);
  tilesmith_free_model(model);
}

std::vector<SizedExample> Examples(const std::string& path) {
  std::vector<SizedExample> examples;
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{1, 3, 32, 32},
                                            {1, 3, 33, 20},
                                            {2, 3, 32, 32},
                                            {1, 3, 1, 1},
                                            {3, 3, 7, 50},
                                            {0, 3, 32, 32}}) {
    examples.push_back(ExampleOf(path, shape, examples.size()));
  }
  return examples;
}

TEST(ApiSizesTest, ASessionTakesInputsOfManySizesAndKeepsTheLastOnes) {
  const TemporaryDirectory directory;
  const std::string path = WriteOpenModel(directory);
  const std::vector<SizedExample> examples = Examples(path);
  const Model model =
      Model::Load(path, {.threads = 1, .input_shapes = {"x=1x3x32x32", "x=2x3x32x32"}, .sizes = 3});
  EXPECT_EQ(model.inputs()[0].shape, (std::vector<int64_t>{1, 3, 32, 32}));
  Session session = model.NewSession();
  const size_t first_only = session.activation_bytes();
  size_t most = 0;
  for (int round = 0; round < 3; ++round) {
    for (const SizedExample& example : examples) {
      ExpectRight(RunExample(session, example), example);
      most = std::max(most, session.activation_bytes());
    }
    for (const SizedExample& example : examples) {
      ExpectRight(RunExample(session, example), example);
      EXPECT_LE(session.activation_bytes(), most) << "sizes are kept without a bound";
    }
  }
  EXPECT_GT(most, first_only);
  std::vector<float> y(8 * 16 * 16), mean(8);  // the first size stays
  session.Run({examples[0].x.raw()}, {y.data(), mean.data()});
  EXPECT_NEAR(y[5], examples[0].expected[0].second.floats()[5], 1e-3);
  EXPECT_FALSE(
      session.Profile(std::vector<InputTensor>{{examples[1].x.raw(), examples[1].shape}}, 2).empty());
}

// Nobody has memory for a tensor without elements.
TEST(ApiSizesTest, AModelThatIsLoadedForNoRowsGivesNone) {
  const TemporaryDirectory directory;
  const std::string path = WriteOpenModel(directory);
  const Model model = Model::Load(path, {.threads = 1, .input_shapes = {"x=0x3x32x32"}, .sizes = 2});
  EXPECT_EQ(model.inputs()[0].bytes, 0u);
  for (const TensorInfo& output : model.outputs()) {
    EXPECT_EQ(output.shape[0], 0);
    EXPECT_EQ(output.bytes, 0u);
  }
  Session session = model.NewSession();
  session.Run({static_cast<const void*>(nullptr)}, {nullptr, nullptr});
  for (const OutputTensor& output : session.Run(std::vector<InputTensor>{{nullptr}})) {
    EXPECT_EQ(output.shape[0], 0);
    EXPECT_EQ(output.elements, 0u);
  }
  const SizedExample example = ExampleOf(path, {2, 3, 32, 32}, 1);
  ExpectRight(RunExample(session, example), example);
  tilesmith_load_options options = {};
  options.threads = 1;
  const char* const shapes[] = {"x=0x3x32x32"};
  options.input_shapes = shapes;
  options.input_shape_count = 1;
  tilesmith_model* c_model = nullptr;
  ASSERT_EQ(tilesmith_load(path.c_str(), &options, &c_model), 0) << tilesmith_last_error();
  tilesmith_session* c_session = nullptr;
  ASSERT_EQ(tilesmith_new_session(c_model, nullptr, 0, &c_session), 0) << tilesmith_last_error();
  const void* in = nullptr;
  void* out[] = {nullptr, nullptr};
  EXPECT_EQ(tilesmith_run(c_session, &in, out), 0) << tilesmith_last_error();
  tilesmith_free_session(c_session);
  tilesmith_free_model(c_model);
}

TEST(ApiSizesTest, SizesShareWeightsThatArePackedAlike) {
  const TemporaryDirectory directory;
  const std::string path = WriteOpenModel(directory);
  const auto bytes = [&](const std::vector<std::string>& sizes) {
    return Model::Load(path, {.threads = 1, .input_shapes = sizes}).packed_weight_bytes();
  };
  const std::string small = "x=1x3x32x32", two = "x=2x3x32x32";
  EXPECT_EQ(bytes({small}), bytes({two}));
  EXPECT_EQ(bytes({small, two}), bytes({small}));
}

TEST(ApiSizesTest, SessionsInManyThreadsTakeManySizes) {
  const TemporaryDirectory directory;
  const std::string path = WriteOpenModel(directory);
  const std::vector<SizedExample> examples = Examples(path);
  const Model model = Model::Load(path, {.threads = 1, .input_shapes = {"x=1x3x32x32"}, .sizes = 2});
  std::vector<std::thread> threads;
  for (size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      Session session = model.NewSession();
      for (size_t i = 0; i < 3 * examples.size(); ++i) {
        const SizedExample& example = examples[(i * (t + 1) + t) % examples.size()];
        ExpectRight(RunExample(session, example), example);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(ApiSizesTest, SizesThatMakeNoSenseAreRefusedAndChangeNothing) {
  const TemporaryDirectory directory;
  const std::string path = WriteOpenModel(directory);
  const SizedExample example = ExampleOf(path, {1, 3, 32, 32}, 1);
  const Model model =
      Model::Load(path, {.threads = 1, .input_shapes = {"x=1x3x32x32"}, .sizes = 2, .max_elements = 1 << 20});
  Session session = model.NewSession();
  const auto refusal = [&](const std::vector<int64_t>& shape) -> std::string {
    try {
      session.Run({{example.x.raw(), shape}});
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_THAT(refusal({1, 3, 0, 32}), HasSubstr("Conv"));
  EXPECT_THAT(refusal({1, 3, -5, 32}), HasSubstr("must not be negative"));
  EXPECT_THAT(refusal({1, 3, 32}), HasSubstr("3 dimensions"));
  EXPECT_THAT(refusal({1, 4, 32, 32}), HasSubstr("Conv"));
  EXPECT_THAT(refusal({1, 3, int64_t{1} << 40, 32}), HasSubstr("1099511627776"));
  EXPECT_THAT(refusal({int64_t{1} << 62, 3, int64_t{1} << 62, int64_t{1} << 62}), HasSubstr("elements"));
  EXPECT_THAT(refusal({1, 3, 4096, 4096}), HasSubstr("elements"));
  ExpectRight(RunExample(session, example), example);

  Session only_first = Model::Load(path, {.threads = 1, .input_shapes = {"x=1x3x32x32"}}).NewSession();
  const std::vector<int64_t> other = {1, 3, 16, 16};
  EXPECT_THAT(
      [&] {
        only_first.Run({{example.x.raw(), other}});
      },
      testing::ThrowsMessage<std::runtime_error>(HasSubstr("loaded for 1x3x32x32 only")));
  EXPECT_EQ(Model::Load(path, {.threads = 1, .input_shapes = {"x=1x3x24..32:8x32"}}).inputs()[0].shape,
            (std::vector<int64_t>{1, 3, 24, 32}));
  const Model narrow =
      Model::Load(path, {.threads = 1, .input_shapes = {"x=1x3x32x32"}, .sizes = 4, .max_memory = 3});
  Session in_narrow = narrow.NewSession();
  const SizedExample large = ExampleOf(path, {1, 3, 400, 400}, 1);
  EXPECT_THAT([&] { RunExample(in_narrow, large); },
              testing::ThrowsMessage<std::runtime_error>(HasSubstr("MiB")));
  ExpectRight(RunExample(in_narrow, example), example);
  EXPECT_THAT(
      [&] {
        Model::Load(path, {.input_shapes = {"x=1x3x8x8", "x=1x3x9x9", "H=3", "H=4", "H=5"}});
      },
      testing::ThrowsMessage<std::runtime_error>(HasSubstr("once for each size")));
}

// The texts of each size, and of each that is tuned.
TEST(ApiSizesTest, RangesStandForAllTheirSizesAndAreTunedAtTheirEnds) {
  using Texts = std::vector<std::vector<std::string>>;
  const auto texts = [](const std::vector<ModelOptions>& sizes) {
    Texts all;
    for (const ModelOptions& size : sizes) all.push_back(size.input_shapes);
    return all;
  };
  const auto all = [&](std::vector<std::string> given) {
    return texts(SizesOf({.model = "", .input_shapes = std::move(given)}));
  };
  const auto tuned = [&](std::vector<std::string> given) {
    return texts(SizesToTune({.model = "", .input_shapes = std::move(given)}));
  };
  EXPECT_EQ(all({"x=1x3x8..20:4"}), (Texts{{"x=1x3x8"}, {"x=1x3x12"}, {"x=1x3x16"}, {"x=1x3x20"}}));
  EXPECT_EQ(tuned({"x=1x3x8..22:4"}), (Texts{{"x=1x3x8"}, {"x=1x3x20"}}));
  EXPECT_EQ(all({"x=1..2x3x8..9"}), (Texts{{"x=1x3x8"}, {"x=1x3x9"}, {"x=2x3x8"}, {"x=2x3x9"}}));
  EXPECT_EQ(tuned({"x=1..2x3x8..9"}), (Texts{{"x=1x3x8"}, {"x=2x3x9"}}));
  EXPECT_EQ(all({"x=4x4", "x=7..8x4", "max=5"}),
            (Texts{{"max=5", "x=4x4"}, {"max=5", "x=7x4"}, {"max=5", "x=8x4"}}));
  EXPECT_EQ(all({"a..b=1x3x8"}), (Texts{{"a..b=1x3x8"}}));
  for (const std::string wrong :
       {"x=1x3x64..64", "x=9..1", "x=1x3x..5", "x=5..", "x=1..9:0", "x=1..9:", "x=1..9:y", "x=1..9:99",
        "x=0..4", "x=-1..4", "x=1...4", "x=1..99999", "x=1..99x1..99", "x=1..9223372036854775808"})
    EXPECT_THROW(all({wrong}), Error) << wrong;
}

// x [1, 3, H, W] through what is folded into weights: a batch norm behind and one in front of a convolution,
// a hard swish, a scaled dense layer; H is the channels' axis of that in the end.
std::string WriteFoldedModel(const TemporaryDirectory& directory) {
  OnnxModel model;
  model.Input("x", {1, 3, "H", "W"});
  model.Floats("w1", {64, 3, 3, 3}, RandomFloats(64 * 27, 1));
  model.Floats("w2", {96, 64, 1, 1}, RandomFloats(96 * 64, 2));
  model.Floats("w3", {96, 96, 3, 3}, RandomFloats(96 * 96 * 9, 3));
  model.Floats("dense", {96, 80}, RandomFloats(96 * 80, 4));
  model.Floats("row", {80}, RandomFloats(80, 5));
  for (const int64_t channels : {64, 96}) {
    const std::string of = std::to_string(channels);
    for (const char* name : {"scale", "shift", "mean"})
      model.Floats(name + of, {channels}, RandomFloats(static_cast<size_t>(channels), 6));
    std::vector<float> variance = RandomFloats(static_cast<size_t>(channels), 7);
    for (float& value : variance) value = 1 + value * value;
    model.Floats("variance" + of, {channels}, variance);
  }
  SetInts(model.Node("Conv", {"x", "w1"}, {"a"}), "pads", {1, 1, 1, 1});
  model.Node("BatchNormalization", {"a", "scale64", "shift64", "mean64", "variance64"}, {"b"});
  model.Node("HardSwish", {"b"}, {"c"});
  model.Node("BatchNormalization", {"c", "scale64", "shift64", "mean64", "variance64"}, {"d"});
  model.Node("Conv", {"d", "w2"}, {"e"});
  model.Node("BatchNormalization", {"e", "scale96", "shift96", "mean96", "variance96"}, {"f"});
  model.Node("Relu", {"f"}, {"g"});
  SetInts(model.Node("Conv", {"g", "w3"}, {"h"}), "pads", {1, 1, 1, 1});
  SetInts(model.Node("Transpose", {"h"}, {"i"}), "perm", {0, 2, 3, 1});
  model.Node("MatMul", {"i", "dense"}, {"j"});
  model.Node("Mul", {"j", "row"}, {"k"});
  model.Node("Add", {"k", "row"}, {"y"});
  model.Output("y");
  const std::string path = directory.File("folded.onnx");
  WriteFile(path, model.Bytes());
  return path;
}

TEST(ApiSizesTest, SizesMayBeListedWithAPlanThatQuantises) {
  const TemporaryDirectory directory;
  const std::string path = WriteFoldedModel(directory), plan = directory.File("plan.jsonl");
  const ProgramResult result = Tilesmith({"graph-tune", path, "-o", plan, "--threads", "1", "--precision",
                                          "int8", "--rounds", "1", "--time", "50ms", "--no-baselines",
                                          "--default-schedules", "--input-shape", "x=1x3x16..32:16x16"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  Session session =
      Model::Load(path, {.plan = plan, .threads = 1, .input_shapes = {"x=1x3x16x16", "x=1x3x32x16"}})
          .NewSession();
  const std::vector<float> x = RandomFloats(size_t{3} * 32 * 16, 9);
  for (const int64_t height : {16, 32}) {
    const std::vector<int64_t> shape = {1, 3, height, 16};
    Session alone =
        Model::Load(path, {.plan = plan, .threads = 1, .input_shapes = {fmt::format("x=1x3x{}x16", height)}})
            .NewSession();
    const OutputTensor& expected = alone.Run({{x.data(), shape}})[0];
    const OutputTensor& actual = session.Run({{x.data(), shape}})[0];
    ASSERT_EQ(actual.shape, expected.shape);
    EXPECT_EQ(std::memcmp(actual.data, expected.data, expected.bytes), 0);
  }
}

// What sizes share, they share bit for bit.
TEST(ApiSizesTest, OtherSizesGiveWhatModelsLoadedForThemDo) {
  const TemporaryDirectory directory;
  const std::string path = WriteFoldedModel(directory);
  for (const int threads : {1, 2}) {
    const Model model = Model::Load(path, {.threads = threads, .sizes = 3});
    Session session = model.NewSession();
    for (const std::vector<int64_t>& shape : std::vector<std::vector<int64_t>>{{1, 3, 16, 16},
                                                                               {1, 3, 16, 17},
                                                                               {1, 3, 8, 40},
                                                                               {1, 3, 16, 18},
                                                                               {1, 3, 5, 7},
                                                                               {1, 3, 16, 17},
                                                                               {1, 3, 1, 1},
                                                                               {1, 3, 32, 33}}) {
      const std::string text = fmt::format("x={}", fmt::join(shape, "x"));
      SCOPED_TRACE(text);
      const std::vector<float> x = RandomFloats(static_cast<size_t>(3 * shape[2] * shape[3]), 9);
      const Model alone = Model::Load(path, {.threads = threads, .input_shapes = {text}});
      Session other = alone.NewSession();
      const OutputTensor& expected = other.Run({{x.data()}})[0];
      const OutputTensor& actual = session.Run({{x.data(), shape}})[0];
      ASSERT_EQ(actual.shape, expected.shape);
      EXPECT_EQ(std::memcmp(actual.data, expected.data, expected.bytes), 0);
    }
  }
}

TEST(ApiSizesTest, SizesOfASessionShareTheMemoryOfActivations) {
  const TemporaryDirectory directory;
  const Model model =
      Model::Load(WriteFoldedModel(directory), {.threads = 1, .input_shapes = {"x=1x3x16x16"}, .sizes = 9});
  Session session = model.NewSession();
  const std::vector<float> x(3 * 64 * 64, 0.5f);
  const auto bytes_after = [&](const std::vector<int64_t>& shape) {
    session.Run({{x.data(), shape}});
    return session.activation_bytes();
  };
  const size_t first = bytes_after({1, 3, 16, 16});
  EXPECT_EQ(bytes_after({1, 3, 8, 8}), first);
  const size_t larger = bytes_after({1, 3, 32, 32});  // beside the first one's
  EXPECT_GE(larger, 3 * first);
  for (const int64_t width : {16, 24, 31}) EXPECT_EQ(bytes_after({1, 3, 32, width}), larger);
}

TEST(ApiSizesTest, OneLogAndOneFileOfPlansServeAllSizes) {
  const TemporaryDirectory directory;
  const std::string path = WriteOpenModel(directory), log = directory.File("log.jsonl"),
                    plan = directory.File("plan.jsonl");
  const std::vector<std::string> sizes = {"--input-shape", "x=1x3x32x32", "--input-shape", "x=2x3x33x20"};
  const auto with_sizes = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), sizes.begin(), sizes.end());
    return arguments;
  };
  ProgramResult result = Tilesmith(with_sizes(
      {"tune", path, "-o", log, "--trials", "2", "--threads", "1", "--no-baseline", "--no-fusion"}));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  result = Tilesmith(with_sizes({"graph-tune", path, "--log", log, "-o", plan, "--threads", "1", "--rounds",
                                 "1", "--time", "50ms", "--no-baselines", "--default-schedules"}));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("x=2x3x33x20"));
  const std::string text = ReadFile(plan);
  const size_t first = text.find("tilesmith_plan");
  EXPECT_NE(text.find("tilesmith_plan", first + 1), std::string::npos);
  for (const size_t i : {size_t{1}, size_t{3}}) {
    result = Tilesmith({"run", path, "--plan", plan, "--threads", "1", "--runs", "1", "--check", "--json",
                        "--input-shape", sizes[i]});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.out, HasSubstr("\"schedule\": \"dp\""));
    EXPECT_THAT(result.err, testing::Not(HasSubstr("default schedules")));
  }
  result = Tilesmith(
      {"run", path, "--plan", plan, "--threads", "1", "--runs", "1", "--input-shape", "x=1x3x16x16"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err,
              HasSubstr("no plan in it is for inputs of x=1x3x16x16: the schedules of the nearest size run"));

  const Model model = Model::Load(path, {.plan = plan, .threads = 1, .input_shapes = {sizes[1]}, .sizes = 3});
  EXPECT_GT(model.predicted_seconds(), 0);
  Session session = model.NewSession();
  for (const SizedExample& example : {ExampleOf(path, {1, 3, 32, 32}, 1), ExampleOf(path, {2, 3, 33, 20}, 2),
                                      ExampleOf(path, {1, 3, 40, 40}, 3)}) {
    ExpectRight(RunExample(session, example), example);
  }
  const std::vector<int64_t> tuned = {2, 3, 33, 20};
  const SizedExample example = ExampleOf(path, tuned, 2);
  double predicted = 0;
  for (const StepTime& step : session.Profile(std::vector<InputTensor>{{example.x.raw(), tuned}}, 1)) {
    predicted += step.predicted_seconds;
  }
  EXPECT_GT(predicted, 0) << "the plan for this size was not taken";
  ExpectRefusal({"run", path, "--input-shape", sizes[1], "--input-shape", sizes[3]}, 2, "2 sizes");
}

TEST(ApiSizesTest, RunTakesTheSizeOfTheInputItIsGiven) {
  const TemporaryDirectory directory;
  const std::string path = WriteOpenModel(directory), x = directory.File("x.npy"),
                    out = directory.File("out.npz");
  const SizedExample example = ExampleOf(path, {2, 3, 10, 21}, 5);
  WriteNpy(x, example.x);
  const std::string named = directory.File("named.npz"), alone = directory.File("alone.npz"),
                    two = directory.File("two.npz");
  WriteNpz(named, {{"x", example.x}, {"y", Tensor({1})}});
  WriteNpz(alone, {{"image", example.x}});
  WriteNpz(two, {{"a", example.x}, {"b", example.x}});
  ExpectRefusal({"run", path, "--input", "x=" + two}, 2, "the file has no entry \"x\" (it has: a, b)");
  for (const std::string& argument : {"x=" + x, x, "x=" + named, "x=" + alone}) {
    const ProgramResult result =
        Tilesmith({"run", path, "--input", argument, "--runs", "1", "--output", out, "--threads", "1"});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(ReadNpz(out)[0].second.shape(), example.expected[0].second.shape());
    EXPECT_LE(LargestDifference(ReadNpz(out), example.expected), 1e-4);
  }
}

}  // namespace
}  // namespace tilesmith
