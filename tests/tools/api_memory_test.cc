// Models that a program has in memory, and what is left of files and memory behind loading.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "ops/onnx/tensor_proto.h"
#include "tests/support/ops/onnx_model.h"
#include "tests/support/random.h"
#include "tests/support/temporary_files.h"
#include "tools/api/tilesmith.h"
#include "tools/api/tilesmith_c.h"

namespace tilesmith {
namespace {

using testing::HasSubstr;
using Bytes = std::span<const std::byte>;

Bytes BytesOf(const std::string& text) { return std::as_bytes(std::span(text)); }

// x [1, 3, H, W] through a convolution, whose weights are in another part.
struct TwoParts {
  std::string model, weights;

  TwoParts() {
    TestRandom random(1);
    std::vector<float> values(16 * 27);
    for (float& value : values) value = random.Uniform();
    OnnxModel written;
    written.Input("x", {1, 3, "H", "W"});
    written.Floats("w", {16, 3, 3, 3}, values);
    written.Node("Conv", {"x", "w"}, {"y"});
    written.Output("y");
    ModelBytes parts = SerializeWithData(written.proto, {.location = "weights", .always = true});
    weights.resize(parts.parts->Size("weights"));
    parts.parts->Read("weights", 0, std::as_writable_bytes(std::span(weights)));
    model = std::move(parts.bytes);
  }
  ModelMemory memory() const { return {.bytes = BytesOf(model), .parts = {{"weights", BytesOf(weights)}}}; }
};

std::vector<float> RunSized(Session& session, int64_t height, int64_t width) {
  std::vector<float> x(static_cast<size_t>(3 * height * width));
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 17) - 8;
  const std::vector<int64_t> shape = {1, 3, height, width};
  const OutputTensor& y = session.Run({{x.data(), shape}})[0];
  const auto* const values = static_cast<const float*>(y.data);
  return {values, values + y.elements};
}

// Files and memory may be gone when a session meets another size.
TEST(ApiMemoryTest, SizesArePreparedFromWhatWasRead) {
  const TemporaryDirectory directory;
  const std::string path = directory.File("net.onnx");
  TwoParts parts;
  WriteFile(path, parts.model);
  WriteFile(directory.File("weights"), parts.weights);
  const auto options = [](const char* shape, int sizes) {
    return LoadOptions{.threads = 1, .input_shapes = {shape}, .sizes = sizes};
  };
  Session larger = Model::Load(path, options("x=1x3x9x20", 1)).NewSession();
  const std::vector<float> expected = RunSized(larger, 9, 20);
  Session of_files = Model::Load(path, options("x=1x3x8x8", 3)).NewSession();
  Session of_memory = Model::Load(parts.memory(), options("x=1x3x8x8", 3)).NewSession();
  std::filesystem::remove(path);
  std::filesystem::remove(directory.File("weights"));
  std::ranges::fill(parts.model, '\xff');
  std::ranges::fill(parts.weights, '\xff');
  EXPECT_EQ(RunSized(of_files, 9, 20), expected);
  EXPECT_EQ(RunSized(of_memory, 9, 20), expected);
  EXPECT_EQ(RunSized(of_memory, 8, 8), RunSized(of_files, 8, 8));
}

TEST(ApiMemoryTest, MessagesNameTheModelAsItIsCalled) {
  const TwoParts parts;
  const auto refused = [](const ModelMemory& model, const char* reason) {
    EXPECT_THAT([&] { Model::Load(model, {.input_shapes = {"x=1x3x8x8"}}); },
                testing::ThrowsMessage<std::runtime_error>(HasSubstr(reason)));
  };
  refused({.bytes = BytesOf(parts.model)},
          "model in memory: not supported: initializer \"w\": data in \"weights\"");
  refused({.bytes = BytesOf(parts.model), .name = "detector"}, "detector: not supported");
  refused({}, "model in memory: the file is empty");
  const std::string cut = parts.weights.substr(4);
  refused({.bytes = BytesOf(parts.model), .parts = {{"weights", BytesOf(cut)}}}, "ends before it");
}

TEST(ApiMemoryTest, PlansAreMadeAndTakenInMemory) {
  const TemporaryDirectory directory;
  const TwoParts parts;
  const std::string plan = directory.File("plan.jsonl"), shape = "x=1x3x8x8";
  GraphTune(parts.memory(), "", plan, {.seconds = 1, .rounds = 0, .threads = 1, .input_shapes = {shape}});
  const Model planned = Model::Load(parts.memory(), {.plan = plan, .threads = 1, .input_shapes = {shape}});
  EXPECT_EQ(planned.inputs()[0].shape, (std::vector<int64_t>{1, 3, 8, 8}));

  const tilesmith_part part = {"weights", parts.weights.data(), parts.weights.size()};
  const tilesmith_memory memory = {parts.model.data(), parts.model.size(), &part, 1, "net"};
  const char* const text = shape.c_str();
  tilesmith_load_options options = {};
  options.plan = plan.c_str();
  options.threads = 1;
  options.input_shapes = &text;
  options.input_shape_count = 1;
  tilesmith_model* model = nullptr;
  EXPECT_EQ(tilesmith_load_memory(&memory, &options, &model), 0) << tilesmith_last_error();
  EXPECT_EQ(tilesmith_input_count(model), 1u);
  tilesmith_free_model(model);
  EXPECT_EQ(tilesmith_load_memory(nullptr, &options, &model), 2);
  const tilesmith_memory alone = {parts.model.data(), parts.model.size(), nullptr, 0, "net"};
  EXPECT_EQ(tilesmith_load_memory(&alone, &options, &model), 3);
  EXPECT_THAT(tilesmith_last_error(), HasSubstr("net: not supported"));
}

}  // namespace
}  // namespace tilesmith
