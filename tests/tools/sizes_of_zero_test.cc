// What no kernel has anything to do for takes each command to a result, or to one line that says what is
// missing.
#include "tests/support/ops/onnx_model.h"
#include "tests/support/temporary_files.h"
#include "tests/tools/cli.h"
#include "tools/cli/npz.h"

namespace tilesmith {
namespace {

using testing::HasSubstr;

std::string WriteOpenBatch(const TemporaryDirectory& directory) {
  OnnxModel model;
  model.Input("x", {"N", 3, 8, 8});
  model.Floats("w", {16, 3, 3, 3}, std::vector<float>(16 * 27, 0.5F));
  model.Node("Conv", {"x", "w"}, {"a"});
  model.Node("Relu", {"a"}, {"b"});
  model.Node("GlobalAveragePool", {"b"}, {"mean"});
  model.Output("mean");
  const std::string path = directory.File("batch.onnx");
  WriteFile(path, model.Bytes());
  return path;
}

TEST(SizesOfZeroTest, CommandsTakeANetworkOfNothing) {
  const TemporaryDirectory directory;
  const std::string path = WriteOpenBatch(directory), log = directory.File("log.jsonl"),
                    plan = directory.File("plan.jsonl"), bench = directory.File("bench.json"),
                    out = directory.File("out.npz"), x = directory.File("x.npy");
  WriteFile(log, "");
  WriteNpy(x, Tensor({0, 3, 8, 8}));
  const auto expect_ok = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--input-shape", "x=0x3x8x8"});
    const ProgramResult result = Tilesmith(arguments);
    EXPECT_EQ(result.exit_code, 0) << arguments[0] << ": " << result.err;
    return result.out;
  };
  EXPECT_THAT(expect_ok({"tasks", path, "--json"}), HasSubstr("\"tasks\": []"));
  expect_ok({"graph-tune", path, "--log", log, "-o", plan, "--threads", "1", "--rounds", "1", "--time", "1ms",
             "--no-baselines", "--default-schedules"});
  expect_ok({"run", path, "--plan", plan, "--threads", "1", "--runs", "2", "--check", "--profile"});
  expect_ok({"bench", path, "--plan", plan, "--threads", "1", "--time", "1ms", "--save", bench});
  expect_ok({"report", log, plan, bench, "--model", path, "-o", directory.File("report.html")});
  expect_ok({"explain", path, "--log", log, "--threads", "1"});
  expect_ok({"quantize", path, "--samples", "1", "-o", directory.File("bytes.onnx"), "--threads", "1"});
  const ProgramResult of_file =
      Tilesmith({"run", path, "--input", "x=" + x, "--threads", "1", "--runs", "1", "--output", out});
  ASSERT_EQ(of_file.exit_code, 0) << of_file.err;
  EXPECT_EQ(ReadNpz(out)[0].second.shape(), (Shape{0, 16, 1, 1}));
  for (const char* command : {"tune", "optimize"}) {
    ExpectRefusal(
        {command, path, "-o", directory.File("none"), "--threads", "1", "--input-shape", "x=0x3x8x8"}, 3,
        "has no convolutions to tune");
  }
  ExpectRefusal({"run", "resnet18", "--input-shape", "input=0x3x32x32"}, 2, "is input=Nx3xHxW");
}

}  // namespace
}  // namespace tilesmith
