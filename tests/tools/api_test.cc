// The library's interfaces: C++, C, and as an installed package, Python's among them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <filesystem>
#include <limits>
#include <thread>

#include "graph_tuner/planner/network_run.h"
#include "layouts/base/thread_team.h"
#include "layouts/transform.h"
#include "ops/graph/reference_run.h"
#include "tests/support/allocations/counting_allocator.h"
#include "tests/support/subprocess.h"
#include "tests/support/temporary_files.h"
#include "tools/api/tilesmith.h"
#include "tools/api/tilesmith_c.h"
#include "tools/cli/model.h"

namespace tilesmith {
namespace {

constexpr const char* kNetwork = "squeezenet1_1";
const std::vector<std::string> kShapes = {"input=1x3x64x64"};

Model LoadSmall(int threads = 1) {
  return Model::Load(kNetwork, {.threads = threads, .input_shapes = kShapes});
}

struct Example {
  Tensor input, expected;
};

Example MakeExample() {
  const Graph graph = LoadModel({kNetwork, 0, kShapes});
  std::vector<Tensor> inputs = SeededInputs(graph, 7);
  std::vector<Tensor> outputs = RunReference(graph, std::vector<const Tensor*>{inputs.data()});
  return {std::move(inputs[0]), std::move(outputs[0])};
}

// `offset` floats behind an aligned address, and NaN wherever nothing was written.
class Memory {
 public:
  Memory(size_t floats, size_t offset)
      : buffer_((floats + 2 * kGuard + offset) * sizeof(float)), floats_(floats), offset_(offset) {
    std::fill_n(buffer_.floats(), floats + 2 * kGuard + offset, std::numeric_limits<float>::quiet_NaN());
  }
  float* data() const { return buffer_.floats() + kGuard + offset_; }
  bool GuardsAreIntact() const {
    for (size_t i = 0; i < kGuard; ++i)
      if (!std::isnan(data()[-1 - ptrdiff_t(i)]) || !std::isnan(data()[floats_ + i])) return false;
    return true;
  }

 private:
  static constexpr size_t kGuard = 16;
  AlignedBuffer buffer_;
  size_t floats_, offset_;
};

void ExpectAnswer(const float* scores, const Tensor& expected) {
  double largest = 0;
  for (int64_t i = 0; i < expected.size(); ++i)
    largest = std::max(largest, static_cast<double>(std::abs(expected.floats()[i])));
  for (int64_t i = 0; i < expected.size(); ++i)
    ASSERT_NEAR(scores[i], expected.floats()[i], 1e-4 * largest) << "output " << i;
}

template <typename Call>
std::string ErrorOf(const Call& call) {
  try {
    call();
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  ADD_FAILURE() << "no error";
  return "";
}

TEST(ApiTest, DescribesItsTensors) {
  const Model model = LoadSmall(1);
  ASSERT_EQ(model.inputs().size(), 1u);
  EXPECT_EQ(model.inputs()[0].name, "input");
  EXPECT_EQ(model.inputs()[0].shape, (std::vector<int64_t>{1, 3, 64, 64}));
  EXPECT_EQ(model.inputs()[0].layout, "NCHW");
  EXPECT_EQ(model.inputs()[0].type, "f32");
  EXPECT_EQ(model.inputs()[0].elements, 3u * 64 * 64);
  EXPECT_EQ(model.inputs()[0].bytes, 3u * 64 * 64 * 4);
  ASSERT_EQ(model.outputs().size(), 1u);
  EXPECT_EQ(model.outputs()[0].elements, 1000u);
  EXPECT_EQ(model.threads(), 1);
  EXPECT_GT(model.packed_weight_bytes(), 1'000'000u);
  EXPECT_GT(model.NewSession().activation_bytes(), 3u * 64 * 64);
}

TEST(ApiTest, AnyAlignmentGivesTheReferencesAnswer) {
  const Example example = MakeExample();
  Session session = LoadSmall(2).NewSession();
  for (const size_t offset : {0, 1, 7, 16}) {
    SCOPED_TRACE(testing::Message() << offset << " floats off");
    Memory input(static_cast<size_t>(example.input.size()), offset),
        output(static_cast<size_t>(example.expected.size()), offset);
    std::copy_n(example.input.floats(), example.input.size(), input.data());
    session.Run({input.data()}, {output.data()});
    ExpectAnswer(output.data(), example.expected);
    EXPECT_TRUE(output.GuardsAreIntact());
  }
}

TEST(ApiTest, RunningAllocatesNothing) {
  const Model model = LoadSmall(2);
  Session session = model.NewSession();
  const Example example = MakeExample();
  for (const size_t offset : {0, 1}) {  // used as it is, and copied
    const Memory input(model.inputs()[0].elements, offset), output(model.outputs()[0].elements, offset);
    std::copy_n(example.input.floats(), example.input.size(), input.data());
    session.Run({input.data()}, {output.data()});  // this thread's first one starts its team
    const int64_t before = AllocationsSoFar();
    session.Run({input.data()}, {output.data()});
    EXPECT_EQ(AllocationsSoFar() - before, 0);
    ExpectAnswer(output.data(), example.expected);
  }
  EXPECT_GT(AllocationsSoFar(), 0) << "allocations are not counted";
}

TEST(ApiTest, SessionsOfOneModelRunAtTheSameTime) {
  const Example example = MakeExample();
  const Model model = LoadSmall(1);
  std::vector<std::thread> threads;
  std::vector<std::vector<float>> outputs(4, std::vector<float>(1000));
  for (std::vector<float>& output : outputs) {
    threads.emplace_back([&output, &example, session = model.NewSession()]() mutable {
      for (int run = 0; run < 5; ++run) session.Run({example.input.floats()}, {output.data()});
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::vector<float>& output : outputs) ExpectAnswer(output.data(), example.expected);
}

TEST(ApiTest, ASessionOutlivesItsModelAndCanBeMoved) {
  const Example example = MakeExample();
  Session first = LoadSmall().NewSession();
  Session session = std::move(first);
  std::vector<float> output(1000);
  session.Run({example.input.floats()}, {output.data()});
  ExpectAnswer(output.data(), example.expected);
}

TEST(ApiTest, ThreadsStayOnTheirCores) {
  const Example example = MakeExample();
  const int core = ProcessCores().back();
  std::vector<float> output(1000);
  std::thread([&] {
    Session session = LoadSmall().NewSession({.cores = {core}});
    cpu_set_t set;
    sched_getaffinity(0, sizeof(set), &set);
    EXPECT_EQ(static_cast<size_t>(CPU_COUNT(&set)), ProcessCores().size()) << "making a session pins nobody";
    session.Run({example.input.floats()}, {output.data()});
    sched_getaffinity(0, sizeof(set), &set);
    EXPECT_EQ(CPU_COUNT(&set), 1);
    EXPECT_TRUE(CPU_ISSET(core, &set));
  }).join();
  ExpectAnswer(output.data(), example.expected);
}

TEST(ApiTest, ProfilesEveryStep) {
  const Example example = MakeExample();
  Session session = LoadSmall().NewSession();
  std::vector<float> output(1000);
  const void* const input = example.input.floats();
  void* const scores = output.data();
  const std::vector<StepTime> steps = session.Profile({&input, 1}, {&scores, 1}, 3);
  EXPECT_GE(steps.size(), 26u);
  for (const StepTime& step : steps) {
    EXPECT_NE(step.name, "");
    EXPECT_NE(step.kind, "");
    EXPECT_GT(step.seconds, 0) << step.name;
  }
  ExpectAnswer(output.data(), example.expected);
  EXPECT_THAT(ErrorOf([&] { session.Profile({&input, 1}, {&scores, 1}, 0); }), testing::HasSubstr("got 0"));
}

TEST(ApiTest, BadArgumentsAreNamed) {
  using testing::HasSubstr;
  EXPECT_THAT(ErrorOf([] { Model::Load("resnet51"); }), HasSubstr("resnet51"));
  EXPECT_THAT(ErrorOf([] { Model::Load(kNetwork, {.plan = "no/such.plan"}); }), HasSubstr("no/such.plan"));
  EXPECT_THAT(ErrorOf([] { LoadSmall(1000000); }), HasSubstr("1000000"));
  const Model model = LoadSmall();
  const auto refusal = [](int threads, const std::vector<int>& cores) {
    return ErrorOf([&] { LoadSmall(threads).NewSession({.cores = cores}); });
  };
  EXPECT_THAT(refusal(1, {0, 1}), HasSubstr("2 cores given for 1 threads"));
  EXPECT_THAT(refusal(1, {100000}), HasSubstr("core 100000"));
  EXPECT_THAT(refusal(2, {0, 0}), HasSubstr("core 0 is given more than once"));
  Session session = model.NewSession();
  std::vector<float> memory(4096 * 3);
  float* const tensor = memory.data();
  EXPECT_THAT(ErrorOf([&] { session.Run({}, {tensor}); }), HasSubstr("0 inputs and 1 outputs"));
  EXPECT_THAT(ErrorOf([&] { session.Run({nullptr}, {tensor}); }), HasSubstr("\"input\" is a null pointer"));
  EXPECT_THAT(ErrorOf([&] { session.Run({tensor}, {tensor}); }), HasSubstr("same memory"));
}

TEST(ApiTest, NegativeNumbersAreNoDefaults) {
  EXPECT_THAT(ErrorOf([] { Model::Load(kNetwork, {.threads = -1}); }), testing::HasSubstr("threads must be"));
  EXPECT_THAT(ErrorOf([] { Model::Load(kNetwork, {.batch = -7}); }), testing::HasSubstr("got -7"));
  EXPECT_THAT(ErrorOf([] { Model::Load(kNetwork, {.max_elements = -1}); }),
              testing::HasSubstr("max_elements"));
  EXPECT_THAT(ErrorOf([] { Model::Load(kNetwork, {.max_memory = -1}); }), testing::HasSubstr("max_memory"));
}

TEST(ApiTest, LimitsRefuseWhatIsLarger) {
  EXPECT_THAT(ErrorOf([] { Model::Load(kNetwork, {.input_shapes = kShapes, .max_elements = 1000}); }),
              testing::HasSubstr("more than 1000 elements"));
  EXPECT_THAT(ErrorOf([] { Model::Load(kNetwork, {.input_shapes = kShapes, .max_memory = 4}); }),
              testing::AllOf(testing::HasSubstr("MiB of memory"), testing::HasSubstr("the limit is 4")));
}

TEST(CApiTest, RunsAndDescribes) {
  const Example example = MakeExample();
  const char* const shapes[] = {kShapes[0].c_str()};
  tilesmith_load_options options = {};
  options.threads = 1;
  options.input_shapes = shapes;
  options.input_shape_count = 1;
  tilesmith_model* model = nullptr;
  ASSERT_EQ(tilesmith_load(kNetwork, &options, &model), 0) << tilesmith_last_error();
  EXPECT_EQ(tilesmith_threads(model), 1);
  ASSERT_EQ(tilesmith_input_count(model), 1u);
  ASSERT_EQ(tilesmith_output_count(model), 1u);
  const tilesmith_tensor_info input = tilesmith_input(model, 0), output = tilesmith_output(model, 0);
  EXPECT_STREQ(input.name, "input");
  ASSERT_EQ(input.rank, 4u);
  EXPECT_EQ(input.shape[3], 64);
  EXPECT_STREQ(input.layout, "NCHW");
  tilesmith_session* session = nullptr;
  ASSERT_EQ(tilesmith_new_session(model, nullptr, 0, &session), 0) << tilesmith_last_error();
  tilesmith_free_model(model);
  std::vector<float> scores(output.elements);
  const void* from = example.input.floats();
  void* to = scores.data();
  EXPECT_EQ(tilesmith_run(session, &from, &to), 0) << tilesmith_last_error();
  ExpectAnswer(scores.data(), example.expected);
  tilesmith_free_session(session);
  tilesmith_free_session(nullptr);
}

TEST(CApiTest, NothingIsTheAnswerToNothing) {
  EXPECT_EQ(tilesmith_threads(nullptr), 0);
  EXPECT_EQ(tilesmith_input_count(nullptr), 0u);
  EXPECT_EQ(tilesmith_output_count(nullptr), 0u);
  EXPECT_EQ(tilesmith_input(nullptr, 0).name, nullptr);
  EXPECT_EQ(tilesmith_output(nullptr, 0).elements, 0u);
  tilesmith_free_model(nullptr);
  tilesmith_free_session(nullptr);
  tilesmith_model* model = nullptr;
  const tilesmith_load_options no_shapes = {.plan = nullptr,
                                            .threads = 1,
                                            .batch = 0,
                                            .input_shapes = nullptr,
                                            .input_shape_count = 1,
                                            .max_elements = 0,
                                            .max_memory = 0,
                                            .sizes = 0,
                                            .wait = nullptr,
                                            .target = nullptr,
                                            .precision = nullptr,
                                            .strict = 0,
                                            .reproducible = 0};
  EXPECT_EQ(tilesmith_load(kNetwork, &no_shapes, &model), 2);
  EXPECT_THAT(tilesmith_last_error(), testing::HasSubstr("input_shapes is a null pointer"));
  const char* shape = kShapes[0].c_str();
  const tilesmith_load_options negative = {.plan = nullptr,
                                           .threads = -2,
                                           .batch = 0,
                                           .input_shapes = &shape,
                                           .input_shape_count = 1,
                                           .max_elements = 0,
                                           .max_memory = 0,
                                           .sizes = 0,
                                           .wait = nullptr,
                                           .target = nullptr,
                                           .precision = nullptr,
                                           .strict = 0,
                                           .reproducible = 0};
  EXPECT_EQ(tilesmith_load(kNetwork, &negative, &model), 2);
  EXPECT_THAT(tilesmith_last_error(), testing::HasSubstr("threads must be at least 0, got -2"));
  const tilesmith_load_options one = {.plan = nullptr,
                                      .threads = 1,
                                      .batch = 0,
                                      .input_shapes = &shape,
                                      .input_shape_count = 1,
                                      .max_elements = 0,
                                      .max_memory = 0,
                                      .sizes = 0,
                                      .wait = nullptr,
                                      .target = nullptr,
                                      .precision = nullptr,
                                      .strict = 0,
                                      .reproducible = 0};
  ASSERT_EQ(tilesmith_load(kNetwork, &one, &model), 0) << tilesmith_last_error();
  EXPECT_EQ(tilesmith_input(model, 1).name, nullptr);
  EXPECT_EQ(tilesmith_output(model, SIZE_MAX).name, nullptr);
  tilesmith_free_model(model);
}

TEST(CApiTest, FailuresAreStatusesAndMessages) {
  tilesmith_model* model = nullptr;
  EXPECT_EQ(tilesmith_load("resnet51", nullptr, &model), 2);
  EXPECT_EQ(model, nullptr);
  EXPECT_THAT(tilesmith_last_error(), testing::HasSubstr("resnet51"));
  EXPECT_EQ(tilesmith_load(nullptr, nullptr, &model), 2);
  EXPECT_THAT(tilesmith_last_error(), testing::HasSubstr("model_name is a null pointer"));
  EXPECT_EQ(tilesmith_run(nullptr, nullptr, nullptr), 2);
}

constexpr bool kSanitized =
#ifdef __SANITIZE_ADDRESS__
    true;
#else
    false;
#endif

// The package as others see it: installed, found, compiled against, run.
class InstalledTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (kSanitized) return;
    const ProgramResult result =
        RunProgram({"cmake", "--install", TILESMITH_BUILD_DIR, "--prefix", Prefix()});
    ASSERT_EQ(result.exit_code, 0) << result.err;
  }
  void SetUp() override {
    if (kSanitized)
      GTEST_SKIP() << "programs that use the library would have to be built with sanitizers, too";
  }

  static const TemporaryDirectory& Directory() {
    static const TemporaryDirectory directory;
    return directory;
  }
  static std::string Prefix() { return Directory().File("prefix"); }
  static std::string Build() { return Directory().File("build"); }
  // Where the package went: Debian's Python and others look in different places.
  static std::string PythonPath() {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(Prefix() + "/lib"))
      if (entry.path().filename() == "__init__.py") return entry.path().parent_path().parent_path();
    return "";
  }
  static ProgramResult Run(const std::vector<std::string>& arguments) {
    return RunProgram(arguments, {.environment = {"LD_LIBRARY_PATH=" + Prefix() + "/lib",
                                                  "PKG_CONFIG_PATH=" + Prefix() + "/lib/pkgconfig",
                                                  "PYTHONPATH=" + PythonPath(),
                                                  "TILESMITH=" + Prefix() + "/bin/tilesmith"}});
  }
};

constexpr const char* kExample = TILESMITH_SOURCE_DIR "/tools/api/example";

TEST_F(InstalledTest, CMakeFindsItAndTheExamplesRun) {
  const ProgramResult configured =
      Run({"cmake", "-S", kExample, "-B", Build(), "-DCMAKE_PREFIX_PATH=" + Prefix()});
  ASSERT_EQ(configured.exit_code, 0) << configured.err;
  const ProgramResult built = Run({"cmake", "--build", Build()});
  ASSERT_EQ(built.exit_code, 0) << built.out << built.err;
  const ProgramResult cc = Run({Build() + "/classify", kNetwork}),
                      c = Run({Build() + "/classify_c", kNetwork});
  ASSERT_EQ(cc.exit_code, 0) << cc.err;
  ASSERT_EQ(c.exit_code, 0) << c.err;
  EXPECT_THAT(cc.out, testing::HasSubstr("the largest of 1000 is number"));
  EXPECT_THAT(cc.out, testing::StartsWith(c.out));
  EXPECT_THAT(cc.out, testing::HasSubstr(" us  direct"));
  const ProgramResult sizes = Run({Build() + "/sizes", kNetwork, "64", "96", "64"});
  EXPECT_EQ(sizes.exit_code, 0) << sizes.err;
  EXPECT_EQ(sizes.out, "1x1000 of f32\n1x1000 of f32\n1x1000 of f32\n");
  const std::string compiled = Directory().File("network.tsc");
  ASSERT_EQ(Run({Prefix() + "/bin/tilesmith", "compile", kNetwork, "-o", compiled}).exit_code, 0);
  const ProgramResult alone = Run({Build() + "/classify_compiled", compiled});
  ASSERT_EQ(alone.exit_code, 0) << alone.err;
  EXPECT_EQ(alone.out, c.out);
  EXPECT_EQ(Run({Build() + "/classify_c", compiled}).out, c.out);
  const ProgramResult model = Run({Build() + "/classify_compiled", kNetwork});
  EXPECT_EQ(model.exit_code, 2);
  EXPECT_THAT(model.err, testing::HasSubstr("is no compiled network"));
  EXPECT_EQ(Run({Build() + "/classify", "resnet51"}).exit_code, 1);
  EXPECT_EQ(Run({Build() + "/classify_c", "resnet51"}).exit_code, 2);
}

TEST_F(InstalledTest, PkgConfigFindsIt) {
  const std::string program = Directory().File("classify");
  const ProgramResult built = Run({"sh", "-c",
                                   "c++ -std=c++20 " + std::string(kExample) +
                                       "/classify.cc $(pkg-config --cflags --libs tilesmith) -o " + program});
  ASSERT_EQ(built.exit_code, 0) << built.err;
  EXPECT_EQ(Run({program, kNetwork}).exit_code, 0);
}

TEST_F(InstalledTest, TheLibraryShowsNothingButItsInterface) {
  const ProgramResult names = Run({"nm", "-DC", "--defined-only", Prefix() + "/lib/libtilesmith.so"});
  ASSERT_EQ(names.exit_code, 0) << names.err;
  EXPECT_THAT(names.out, testing::HasSubstr("tilesmith::Model::Load"));
  EXPECT_THAT(names.out, testing::HasSubstr(" tilesmith_run"));
  for (const char* hidden : {"tilesmith::Executor", "tilesmith::Graph::", "tilesmith::Layout::Parse"})
    EXPECT_THAT(names.out, testing::Not(testing::HasSubstr(hidden)));
}

// Runs one that has NumPy: Debian's need not be the first in the path.
class PythonTest : public InstalledTest, public testing::WithParamInterface<const char*> {};

TEST_P(PythonTest, Passes) {
  std::string python;
  const char* has_both =
      "import importlib.util, numpy, sys; sys.exit(importlib.util.find_spec('tilesmith') is None)";
  for (const char* candidate : {"python3", "/usr/bin/python3"}) {
    if (python.empty() && Run({candidate, "-c", has_both}).exit_code == 0) python = candidate;
  }
  if (python.empty())
    GTEST_SKIP() << "no Python package: pybind11-dev, python3-dev or python3-numpy is missing";
  const ProgramResult result =
      Run({python, std::string(TILESMITH_SOURCE_DIR "/tests/tools/") + GetParam() + ".py"});
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
}

INSTANTIATE_TEST_SUITE_P(InstalledTest, PythonTest, testing::Values("api_test", "fork_test"),
                         [](const auto& info) { return std::string(info.param); });

TEST(ApiTest, TunesAModelForAPlanThatItLoads) {
  const TemporaryDirectory directory;
  const std::string plan = directory.File("plan.jsonl");
  std::vector<std::string> stages;
  TuneSettings settings = {.seconds = 1,
                           .rounds = 0,
                           .database = false,
                           .threads = 1,
                           .input_shapes = kShapes,
                           .program = TILESMITH_BINARY,
                           .on_progress = [&](const std::string& stage) { stages.push_back(stage); }};
  Tune(kNetwork, plan, settings);
  EXPECT_THAT(stages, testing::Contains(testing::HasSubstr("trials, about")));
  const Model model = Model::Load(kNetwork, {.plan = plan, .threads = 1, .input_shapes = kShapes});
  EXPECT_GT(model.predicted_seconds(), 0);
  const Example example = MakeExample();
  Memory input(static_cast<size_t>(example.input.size()), 0),
      output(static_cast<size_t>(example.expected.size()), 0);
  std::copy_n(example.input.floats(), example.input.size(), input.data());
  model.NewSession().Run({input.data()}, {output.data()});
  ExpectAnswer(output.data(), example.expected);

  const std::string log = ReadFile(plan + ".log.jsonl");
  const std::atomic<bool> stop = true;
  settings.stop = &stop;
  EXPECT_THAT(ErrorOf([&] { Tune(kNetwork, plan, settings); }), testing::HasSubstr("interrupted"));
  EXPECT_EQ(ReadFile(plan + ".log.jsonl"), log);
  settings.program = "no_such_program";
  EXPECT_THAT(ErrorOf([&] { Tune(kNetwork, plan, settings); }), testing::HasSubstr("is not on the PATH"));
  settings.seconds = -1;
  EXPECT_THAT(ErrorOf([&] { Tune(kNetwork, plan, settings); }), testing::HasSubstr("at least 0, got -1"));
}

}  // namespace
}  // namespace tilesmith
