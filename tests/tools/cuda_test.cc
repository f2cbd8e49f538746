// Commands with --target cuda, end to end on the fake driver (tests/support/cuda/fake_driver).
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/cuda/fake_gpu.h"
#include "tests/support/ops/onnx_model.h"
#include "tests/support/random.h"
#include "tests/support/temporary_files.h"
#include "tests/tools/cli.h"
#include "tools/api/tilesmith.h"

namespace tilesmith {
namespace cuda_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr const char* kConv = "ic8ih6oc8kh3ph1+bias+relu";

ProgramResult OnFakeGpu(std::vector<std::string> arguments, std::vector<std::string> environment = {}) {
  for (const std::string& variable : FakeGpuEnvironment()) environment.push_back(variable);
  arguments.insert(arguments.end(), {"--target", "cuda"});
  return Tilesmith(arguments, {.environment = environment});
}

std::vector<float> Random(size_t count, uint64_t seed) {
  std::vector<float> values(count);
  FillUniform(values, seed);
  return values;
}

// A convolution, a pool, one behind which a sum stands, a normalization, running sums, which have no program,
// a mean, a dense layer, and a softmax.
std::string WriteNetwork(const TemporaryDirectory& directory) {
  OnnxModel model;
  model.Input("x", {1, 3, 8, 8});
  model.Floats("w1", {8, 3, 3, 3}, Random(8 * 27, 1));
  model.Floats("w2", {8, 8, 3, 3}, Random(8 * 72, 2));
  model.Floats("w3", {8, 4}, Random(32, 3));
  SetInts(model.Node("Conv", {"x", "w1"}, {"a"}), "pads", {1, 1, 1, 1});
  model.Node("Relu", {"a"}, {"b"});
  onnx::NodeProto& pool = model.Node("MaxPool", {"b"}, {"c"});
  SetInts(pool, "kernel_shape", {2, 2});
  SetInts(pool, "strides", {2, 2});
  SetInts(model.Node("Conv", {"c", "w2"}, {"d"}), "pads", {1, 1, 1, 1});
  model.Node("Add", {"d", "c"}, {"e"});
  onnx::AttributeProto& size = *model.Node("LRN", {"e"}, {"n"}).add_attribute();
  size.set_name("size");
  size.set_type(onnx::AttributeProto::INT);
  size.set_i(3);
  model.Weight("axis", {}, onnx::TensorProto::INT64).add_int64_data(1);
  model.Node("CumSum", {"n", "axis"}, {"m"});
  model.Node("GlobalAveragePool", {"m"}, {"f"});
  model.Node("Flatten", {"f"}, {"g"});
  model.Node("Gemm", {"g", "w3"}, {"h"});
  model.Node("Softmax", {"h"}, {"y"});
  model.Output("y");
  const std::string path = directory.File("net.onnx");
  WriteFile(path, model.Bytes());
  return path;
}

TEST(CudaCommands, TunePlanAndRunANetwork) {
  const TemporaryDirectory directory;
  const std::string net = WriteNetwork(directory), log = directory.File("log.jsonl"),
                    plan = directory.File("plan.jsonl");
  const ProgramResult tuned = OnFakeGpu({"tune", net, "-o", log, "--trials", "2", "--no-db"});
  ASSERT_EQ(tuned.exit_code, 0) << tuned.err;
  EXPECT_THAT(ReadFile(log), HasSubstr("\"device\":\"cuda\""));
  EXPECT_THAT(ReadFile(log), HasSubstr("\"sm\":80"));
  EXPECT_THAT(ReadFile(log), HasSubstr("\"template\":\"cuda_"));
  EXPECT_THAT(ReadFile(log), Not(HasSubstr("wrong_answer")));

  const ProgramResult planned =
      OnFakeGpu({"graph-tune", net, "--log", log, "-o", plan, "--time", "1ms", "--rounds", "1"});
  ASSERT_EQ(planned.exit_code, 0) << planned.err;
  EXPECT_THAT(ReadFile(plan), HasSubstr("\"template\":\"cuda_"));

  const ProgramResult run = OnFakeGpu({"run", net, "--plan", plan, "--runs", "2", "--check", "--profile"});
  EXPECT_EQ(run.exit_code, 0) << run.err << run.out;
  EXPECT_THAT(run.out, HasSubstr("CumSum (reference) (in process)"));
  for (const char* op : {"MaxPool", "Softmax", "LRN"})
    EXPECT_THAT(run.out, Not(HasSubstr(std::string(op) + " (in process)")));

  const ProgramResult default_run = OnFakeGpu({"run", net, "--runs", "1", "--check"});
  EXPECT_EQ(default_run.exit_code, 0) << default_run.err << default_run.out;
  ExpectRefusal({"run", net, "--plan", plan}, 2, "Fake GPU");
}

TEST(CudaCommands, ProductsAreRoundedOnlyWhenAskedFor) {
  const TemporaryDirectory directory;
  const std::string net = WriteNetwork(directory), log = directory.File("log.jsonl"),
                    plan = directory.File("plan.jsonl");
  const ProgramResult tuned =
      OnFakeGpu({"tune", kConv, "-o", log, "--trials", "8", "--no-db", "--precision", "tf32"});
  ASSERT_EQ(tuned.exit_code, 0) << tuned.err;
  EXPECT_THAT(ReadFile(log), HasSubstr("\"tf32\":true"));
  EXPECT_THAT(ReadFile(log), HasSubstr("\"products\":1"));
  EXPECT_THAT(ReadFile(log), Not(HasSubstr("wrong_answer")));
  const ProgramResult planned = OnFakeGpu({"graph-tune", net, "--default-schedules", "-o", plan, "--time",
                                           "1ms", "--rounds", "0", "--precision", "tf32"});
  ASSERT_EQ(planned.exit_code, 0) << planned.err;
  EXPECT_THAT(ReadFile(plan), HasSubstr("\"tf32\":true"));
  const ProgramResult run = OnFakeGpu({"run", net, "--plan", plan, "--runs", "1", "--check"});
  EXPECT_EQ(run.exit_code, 0) << run.err << run.out;
  ExpectRefusal({"tune", kConv, "-o", "/dev/null", "--overwrite", "--precision", "tf32"}, 2,
                "--precision tf32 is for --target cuda, not cpu");
}

// Tuned, planned and run in bf16, by budget of errors too; convolutions that no template has in bf16 stay.
TEST(CudaCommands, TunePlanAndRunInBf16) {
  const TemporaryDirectory directory;
  const std::string net = WriteNetwork(directory), log = directory.File("log.jsonl"),
                    plan = directory.File("plan.jsonl");
  const ProgramResult tuned =
      OnFakeGpu({"tune", net, "-o", log, "--trials", "2", "--no-db", "--precision", "mixed"});
  ASSERT_EQ(tuned.exit_code, 0) << tuned.err;
  EXPECT_THAT(ReadFile(log), HasSubstr("\"template\":\"cuda_tensor_bf16\""));
  EXPECT_THAT(ReadFile(log), Not(HasSubstr("wrong_answer")));
  const std::vector<std::string> plan_it = {"graph-tune", net,      "--log", log,        "-o",
                                            plan,         "--time", "1ms",   "--rounds", "0"};
  std::vector<std::string> narrow = plan_it, mixed = plan_it;
  narrow.insert(narrow.end(), {"--precision", "bf16"});
  mixed.insert(mixed.end(), {"--precision", "mixed", "--max-output-error", "0.5"});
  for (const auto& arguments : {mixed, narrow}) {
    const ProgramResult planned = OnFakeGpu(arguments);
    ASSERT_EQ(planned.exit_code, 0) << planned.err;
  }
  EXPECT_THAT(ReadFile(plan), HasSubstr("\"template\":\"cuda_tensor_bf16\""));
  const ProgramResult run = OnFakeGpu({"run", net, "--plan", plan, "--runs", "1", "--check", "--profile"});
  EXPECT_EQ(run.exit_code, 0) << run.err << run.out;
  EXPECT_THAT(run.out, HasSubstr("cuda_tensor_bf16"));
  EXPECT_THAT(run.out, Not(HasSubstr("transform (in process)")));
  const ProgramResult space = OnFakeGpu({"space", kConv});
  EXPECT_THAT(space.out, HasSubstr("cuda_tensor_bf16"));
}

// Bytes are what a workload is of, not a precision.
TEST(CudaCommands, TuneConvolutionsOfBytes) {
  const TemporaryDirectory directory;
  const std::string log = directory.File("log.jsonl"), conv = std::string("ic8ih6oc8kh3ph1+bias:u8:i8:u8");
  const ProgramResult tuned = OnFakeGpu({"tune", conv, "-o", log, "--trials", "3", "--no-db"});
  ASSERT_EQ(tuned.exit_code, 0) << tuned.err;
  EXPECT_THAT(ReadFile(log), HasSubstr("\"template\":\"cuda_tensor_int8\""));
  EXPECT_THAT(ReadFile(log), Not(HasSubstr("wrong_answer")));
  const ProgramResult benched = OnFakeGpu({"bench", conv, "--log", log, "--time", "10ms"});
  EXPECT_EQ(benched.exit_code, 0) << benched.err;
  EXPECT_THAT(benched.out, HasSubstr("computes floats, not bytes"));
}

TEST(CudaCommands, SpacesAreOfTheGpuAskedFor) {
  const TemporaryDirectory directory;
  const ProgramResult space =
      Tilesmith({"space", kConv, "--target", "cuda:1"}, {.environment = FakeGpuEnvironment()});
  EXPECT_EQ(space.exit_code, 0) << space.err;
  EXPECT_THAT(space.out, HasSubstr("cuda_direct"));
  EXPECT_THAT(space.out, Not(HasSubstr("few_outputs")));
  const ProgramOptions fake = {.environment = FakeGpuEnvironment()};
  ExpectRefusal({"space", kConv, "--target", "cuda:2"}, 7,
                "--target cuda:2: a CUDA device was asked for, and NVIDIA's driver sees none", fake);
  ProgramOptions one_visible = fake;
  one_visible.environment.push_back("CUDA_VISIBLE_DEVICES=1");
  ExpectRefusal({"space", kConv, "--target", "cuda:9"}, 2,
                "--target cuda:9: CUDA_VISIBLE_DEVICES has no GPU 9, counted from 0: it is \"1\"",
                one_visible);
  const ProgramResult measured =  // asks for its GPU twice
      Tilesmith({"measure-space", kConv, "--template", "cuda_direct", "--keep",
                 "ic_block=0 oc_block=0 tile_f=16 tile_x=32 tile_rc=8 stages=2", "--target", "cuda:1", "-o",
                 directory.File("conv.space")},
                fake);
  EXPECT_EQ(measured.exit_code, 0) << measured.err;
  for (const std::string target : {"cuda:x", "cuda:", "abacus", "abacus:1", "cpu:0"})
    ExpectRefusal({"space", kConv, "--target", target}, 2,
                  "--target must be cpu, cuda or cuda:N, got " + target);
  const ProgramResult threads = OnFakeGpu({"measure-space", kConv, "-o", "/dev/null", "--threads", "1"});
  EXPECT_EQ(threads.exit_code, 2);
  EXPECT_THAT(threads.err, HasSubstr("--threads is for --target cpu, not cuda"));
}

TEST(CudaCommands, ListAndShowWhatGpusCompute) {
  const TemporaryDirectory directory;
  const ProgramResult tasks = OnFakeGpu({"tasks", WriteNetwork(directory)});
  EXPECT_EQ(tasks.exit_code, 0) << tasks.err;
  EXPECT_THAT(tasks.out, HasSubstr("cuda_direct, cuda_tensor"));
  const ProgramResult shown = OnFakeGpu({"log", "show", kConv, "--template", "cuda_winograd"});
  EXPECT_EQ(shown.exit_code, 0) << shown.err;
  EXPECT_THAT(shown.out, HasSubstr("cuda_winograd"));
}

// The C++ interface, and those that are made of it.
TEST(CudaCommands, ALibraryComputesOnAGpu) {
  OpenFakeGpu();
  const TemporaryDirectory directory;
  const std::string net = WriteNetwork(directory);
  const std::vector<float> image = Random(3 * 64, 4);
  std::vector<float> here(4), there(4);
  Model::Load(net).NewSession().Run({image.data()}, {here.data()});
  const Model on_gpu = Model::Load(net, {.target = "cuda"});
  Session session = on_gpu.NewSession();
  session.Run({image.data()}, {there.data()});
  for (size_t i = 0; i < here.size(); ++i) EXPECT_NEAR(here[i], there[i], 1e-4);
  EXPECT_ANY_THROW(Model::Load(net, {.target = "abacus"}));
  EXPECT_ANY_THROW(Model::Load(net, {.precision = "tf32"}));  // a CPU rounds nothing

  const pid_t child = fork();
  if (child == 0) {
    const auto is_refused = [](const auto& use) {
      try {
        use();
      } catch (const std::runtime_error& error) {
        return std::string(error.what()).find("cannot be used behind a fork") != std::string::npos;
      }
      return false;
    };
    _exit(is_refused([&] { session.Run({image.data()}, {there.data()}); }) &&
                  is_refused([&] { on_gpu.NewSession(); })
              ? 0
              : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

// A fault takes the worker's GPU with it, and only the trial.
TEST(CudaCommands, AKernelThatFaultsCostsOneTrial) {
  const TemporaryDirectory directory;
  const std::string log = directory.File("log.jsonl"), fault = directory.File("fault");
  WriteFile(fault, "");
  const ProgramResult tuned =
      OnFakeGpu({"tune", kConv, "-o", log, "--trials", "4", "--no-db"}, {"FAKE_CUDA_FAULT=" + fault});
  ASSERT_EQ(tuned.exit_code, 0) << tuned.err;
  const std::string records = ReadFile(log);
  const auto count = [&](const std::string& what) {
    int found = 0;
    for (size_t at = records.find(what); at != std::string::npos; at = records.find(what, at + 1)) ++found;
    return found;
  };
  EXPECT_THAT(tuned.err, HasSubstr("ILLEGAL_ADDRESS"));
  EXPECT_THAT(tuned.err, HasSubstr("_block="));  // of the config
  EXPECT_EQ(count("\"status\":\"run_crash\""), 1) << records;
  EXPECT_GE(count("\"status\":\"ok\""), 3) << records;
}

TEST(CudaCommands, BenchSetsCudnnBesideEverything) {
  const TemporaryDirectory directory;
  const std::string net = WriteNetwork(directory), math = directory.File("math");
  const ProgramResult conv =
      OnFakeGpu({"bench", kConv, "--time", "10ms", "--json"}, {"FAKE_CUDNN_MATH=" + math});
  ASSERT_EQ(conv.exit_code, 0) << conv.err;
  EXPECT_THAT(conv.out, HasSubstr("\"cudnn\": \"9.1.2\""));
  EXPECT_THAT(conv.out, HasSubstr("\"products\": \"f32\""));
  EXPECT_THAT(conv.out, testing::ContainsRegex("\"cudnn_algorithm\": \"[A-Z_]+"));
  EXPECT_THAT(ReadFile(math), Not(HasSubstr("1\n")));  // nothing that may round floats to TF32
  const ProgramResult rounded = OnFakeGpu({"bench", kConv, "--time", "10ms", "--precision", "tf32"});
  EXPECT_EQ(rounded.exit_code, 0) << rounded.err;
  EXPECT_THAT(rounded.out, testing::ContainsRegex("products +TF32"));
  const ProgramResult narrow = OnFakeGpu({"bench", kConv, "--time", "10ms", "--precision", "bf16"});
  EXPECT_EQ(narrow.exit_code, 0) << narrow.err;
  EXPECT_THAT(narrow.out, testing::ContainsRegex("products +bf16"));
  EXPECT_THAT(narrow.out, HasSubstr("cuda_tensor_bf16"));
  ExpectRefusal({"bench", "squeezenet1_1", "--precision", "bf16"}, 2, "not for a MODEL");
  const ProgramResult network =
      OnFakeGpu({"bench", net, "--time", "10ms", "--network-time", "10ms", "--json"});
  ASSERT_EQ(network.exit_code, 0) << network.err;
  EXPECT_THAT(network.out, testing::ContainsRegex("\"network_cudnn_seconds\": [0-9]"));
  EXPECT_THAT(network.out, testing::ContainsRegex("\"network_cudnn_layout\": \"N[CH]"));
  EXPECT_THAT(network.out, testing::ContainsRegex("\"network_cudnn_guests\": 0"));
  const ProgramResult sweep = OnFakeGpu({"bench", net, "--sweep", "threads"});
  EXPECT_EQ(sweep.exit_code, 2);
  EXPECT_THAT(sweep.err, HasSubstr("--sweep is for --target cpu, not cuda"));
}

TEST(CudaCommands, GpuCheckLeavesATable) {
  if (RunProgram({"python3", "--version"}).exit_code != 0) GTEST_SKIP() << "no python3";
  const TemporaryDirectory directory;
  const std::string net = WriteNetwork(directory), out = directory.File("out");
  std::vector<std::string> environment = FakeGpuEnvironment();
  environment.push_back("TILESMITH_BINARY=" TILESMITH_BINARY);
  const std::string math = directory.File("math");
  environment.push_back("FAKE_CUDNN_MATH=" + math);
  const std::vector<std::string> command = {TILESMITH_SOURCE_DIR "/tools/gpu-check",
                                            "--out",
                                            out,
                                            "--seconds",
                                            "120",
                                            "--tuning",
                                            "0.04",
                                            "--layer",
                                            kConv,
                                            "--network",
                                            net,
                                            "--suite",
                                            net,
                                            "--sanitize",
                                            "0"};
  const ProgramResult checked = RunProgram(command, {.environment = environment});
  ASSERT_EQ(checked.exit_code, 1) << checked.err << checked.out;  // what it could not measure it names
  EXPECT_THAT(checked.out, HasSubstr("Fake GPU, cuda 8.0"));
  EXPECT_THAT(checked.out, HasSubstr("cuDNN 9.1.2"));
  // Every figure but those that need PyTorch and compute-sanitizer.
  for (const char* measured :
       {"the layer, f32: cuDNN's best / ours \\| >= 1.0 ", "the layer, tf32: cuDNN's best / ours \\| >= 1.0 ",
        "the layer, bf16: cuDNN's best / ours \\| >= 1.0 ",
        "suite, f32, batch 1, [0-9]+ dense layers: [a-zA-Z /]* \\| >= 1.0 ",
        "suite, tf32, batch 1, [0-9]+ dense layers: [a-zA-Z /]* \\| >= 0.8 ",
        "suite, bf16, batch 1, [0-9]+ dense layers: [a-zA-Z /]* \\| >= 0.8 ",
        "the network: cuDNN's chain / ours \\| > 1 ", "largest difference from the reference \\| <= 1e-4 ",
        "either way \\| <= 0.05 "})
    EXPECT_THAT(checked.out,
                testing::ContainsRegex(std::string(measured) + "\\| [0-9.e+-]+ \\| (yes|no) \\|"));
  EXPECT_THAT(checked.out, testing::ContainsRegex("racecheck \\| clean \\| - \\| not measured \\|"));
  EXPECT_THAT(checked.out, testing::ContainsRegex("net.onnx, whole \\| [0-9.e-]+ \\| [0-9.e-]+ \\|"));
  EXPECT_EQ(ReadFile(out + "/table.md") + "\n", checked.out);
  EXPECT_THAT(ReadFile(out + "/gpu_claims.csv"),
              AllOf(StartsWith("# title: "), HasSubstr("# machine: Fake GPU; "),
                    HasSubstr("\nwhat,wanted,figure,met\n")));
  EXPECT_THAT(ReadFile(out + "/gpu.csv"),
              HasSubstr("\nwhat,ours_seconds,cudnn_seconds,algorithm,template\n"));
  // Products are multiplied alike on both sides: FMA only, then TF32.
  EXPECT_THAT(ReadFile(math), HasSubstr("3\n"));
  EXPECT_THAT(ReadFile(math), HasSubstr("1\n"));
  EXPECT_THAT(ReadFile(math), Not(HasSubstr("0\n")));
  environment.push_back("CUDA_VISIBLE_DEVICES=7");
  EXPECT_EQ(RunProgram(command, {.environment = environment}).exit_code, 7);
}

TEST(CudaCommands, WithoutADriverOneLineSaysSo) {
  if (dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL) != nullptr) GTEST_SKIP() << "there is a driver";
  ExpectRefusal({"tune", kConv, "-o", "/dev/null", "--overwrite", "--target", "cuda"}, 7, "libcuda.so.1");
}

}  // namespace
}  // namespace cuda_test
}  // namespace tilesmith
