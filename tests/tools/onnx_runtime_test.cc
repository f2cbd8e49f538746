#include "tools/peers/onnx_runtime.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "layouts/base/error.h"
#include "tests/support/temporary_files.h"
#include "tools/cli/model.h"
#include "tools/network/outputs.h"

namespace tilesmith {
namespace {

TEST(OnnxRuntime, LibrariesOfOtherKindsAreRefusedByName) {
  try {
    OnnxRuntimeModel("libm.so.6", "model.onnx", 1, {}, {});
    FAIL() << "libm.so.6 was taken for ONNX Runtime";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kEnvironment);
    EXPECT_STREQ(error.what(), "libm.so.6 cannot be used as ONNX Runtime: it has no OrtGetApiBase");
  }
}

TEST(OnnxRuntime, TelemetryIsOffBeforeTheLibraryIsLoaded) {
  unsetenv("ORT_DISABLE_TELEMETRY");
  EXPECT_THROW(OnnxRuntimeModel("libm.so.6", "model.onnx", 1, {}, {}), Error);
  EXPECT_STREQ(getenv("ORT_DISABLE_TELEMETRY"), "1");
}

// The optimizations fuse and fold, so that sums are rounded elsewhere.
TEST(OnnxRuntime, ComputesTheSameWithoutItsOptimizationsButForRounding) {
  std::filesystem::current_path(TILESMITH_SOURCE_DIR);
  const std::string library = FindOnnxRuntime("");
  if (library.empty()) GTEST_SKIP() << "no ONNX Runtime (tools/fetch-peers)";
  const TemporaryDirectory models;
  const ModelOptions model{.model = "mobilenet_v2", .batch = 0, .input_shapes = {"input=1x3x32x32"}};
  const std::string onnx = OnnxFileOf(model, models.File("model.onnx"));
  const auto outputs = [&](GraphOptimizations optimizations) {
    const auto peer = OpenOnnxRuntime(library, onnx, 1, LoadModel(model), 1, optimizations);
    peer->Run();
    return peer->Outputs();
  };
  const double difference =
      LargestDifference(outputs(GraphOptimizations::kNone), outputs(GraphOptimizations::kAll));
  EXPECT_GT(difference, 0);
  EXPECT_LT(difference, 1e-5);
}

TEST(OnnxRuntime, LeavesNothingInTheUsersFolders) {
  std::filesystem::current_path(TILESMITH_SOURCE_DIR);
  const std::string library = FindOnnxRuntime("");
  if (library.empty()) GTEST_SKIP() << "no ONNX Runtime (tools/fetch-peers)";
  const TemporaryDirectory models, home;
  setenv("HOME", home.path().c_str(), 1);
  for (const char* name : {"XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "CI"}) unsetenv(name);
  const ModelOptions model{.model = "squeezenet1_1", .batch = 0, .input_shapes = {"input=1x3x32x32"}};
  const std::string onnx = OnnxFileOf(model, models.File("model.onnx"));
  OpenOnnxRuntime(library, onnx, 1, LoadModel(model), 1)->Run();
  EXPECT_TRUE(std::filesystem::is_empty(home.path()));
}

}  // namespace
}  // namespace tilesmith
