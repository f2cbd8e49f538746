// Commands with --target cuda, end to end on the fake driver (tests/support/cuda/fake_driver).
#include <dlfcn.h>

#include "tests/support/cuda/fake_gpu.h"
#include "tests/support/ops/onnx_model.h"
#include "tests/support/random.h"
#include "tests/support/temporary_files.h"
#include "tests/tools/cli.h"

namespace tilesmith {
namespace cuda_test {
namespace {

using testing::HasSubstr;
using testing::Not;

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

// A convolution, a pool, one behind which a sum stands, a mean, a dense layer, and a softmax, which has no
// program.
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
  model.Node("GlobalAveragePool", {"e"}, {"f"});
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
  EXPECT_THAT(run.out, HasSubstr("Softmax (in process)"));
  EXPECT_THAT(run.out, Not(HasSubstr("MaxPool (in process)")));

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
                "for the target cuda");
}

TEST(CudaCommands, SpacesAreOfTheGpuAskedFor) {
  const ProgramResult space =
      Tilesmith({"space", kConv, "--target", "cuda:1"}, {.environment = FakeGpuEnvironment()});
  EXPECT_EQ(space.exit_code, 0) << space.err;
  EXPECT_THAT(space.out, HasSubstr("cuda_direct"));
  EXPECT_THAT(space.out, Not(HasSubstr("few_outputs")));
  ExpectRefusal({"space", kConv, "--target", "cuda:2"}, 7, "sees none",
                {.environment = FakeGpuEnvironment()});
  ExpectRefusal({"space", kConv, "--target", "cuda:x"}, 2, "\"cuda:x\"");
  ExpectRefusal({"space", kConv, "--target", "abacus"}, 2, "\"abacus\"");
  const ProgramResult threads = OnFakeGpu({"measure-space", kConv, "-o", "/dev/null", "--threads", "1"});
  EXPECT_EQ(threads.exit_code, 2);
  EXPECT_THAT(threads.err, HasSubstr("--threads is for the target cpu"));
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

TEST(CudaCommands, GpuCheckLeavesATable) {
  if (RunProgram({"python3", "--version"}).exit_code != 0) GTEST_SKIP() << "no python3";
  const TemporaryDirectory directory;
  const std::string net = WriteNetwork(directory), out = directory.File("out");
  std::vector<std::string> environment = FakeGpuEnvironment();
  environment.push_back("TILESMITH_BINARY=" TILESMITH_BINARY);
  const std::vector<std::string> command = {TILESMITH_SOURCE_DIR "/tools/gpu-check",
                                            "--out",
                                            out,
                                            "--seconds",
                                            "2",
                                            "--layer",
                                            kConv,
                                            "--network",
                                            net,
                                            "--suite",
                                            net,
                                            "--sanitize",
                                            "0"};
  const ProgramResult checked = RunProgram(command, {.environment = environment});
  ASSERT_EQ(checked.exit_code, 0) << checked.err << checked.out;
  EXPECT_THAT(checked.out, HasSubstr("Fake GPU, cuda 8.0"));
  EXPECT_THAT(checked.out,
              testing::ContainsRegex("\\| mb1ic8ih6oc8oh6kh3ph1\\+bias\\+relu \\| [0-9.e-]+ ms \\|"));
  EXPECT_THAT(checked.out, testing::ContainsRegex("net.onnx, whole \\| [0-9.e-]+ ms \\|"));
  EXPECT_THAT(checked.out, testing::ContainsRegex("difference from the reference \\| [0-9.e-]+ \\|"));
  EXPECT_EQ(ReadFile(out + "/table.md") + "\n", checked.out);
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
