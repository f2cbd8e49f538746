// Models whose weights stay in their file until a tensor takes them.
#include "ops/onnx/parsed_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <numeric>
#include <thread>

#include "layouts/base/error.h"
#include "ops/graph/reference_run.h"
#include "ops/onnx/host_model.h"
#include "tests/support/ops/onnx_model.h"
#include "tests/support/refusal.h"
#include "tests/support/temporary_files.h"

namespace tilesmith {
namespace {

constexpr int64_t kCount = 3000;  // numbers: more than stay in the proto

std::vector<float> Numbers() {
  std::vector<float> numbers(kCount);
  std::iota(numbers.begin(), numbers.end(), 1.0F);
  return numbers;
}

template <typename T>
std::string BytesOf(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

// y = x + w + few.
OnnxModel Sum(const std::string& raw, int32_t type = onnx::TensorProto::FLOAT) {
  OnnxModel model;
  model.Input("x", {static_cast<int>(kCount)});
  model.Output("y");
  model.Weight("w", {kCount}, type).set_raw_data(raw);
  model.Weight("few", {1}, onnx::TensorProto::FLOAT).set_raw_data(BytesOf<float>({1000}));
  model.Node("Cast", {"w"}, {"wf"}).add_attribute()->CopyFrom([] {
    onnx::AttributeProto to;
    to.set_name("to"), to.set_type(onnx::AttributeProto::INT), to.set_i(onnx::TensorProto::FLOAT);
    return to;
  }());
  model.Node("Add", {"x", "wf"}, {"xw"});
  model.Node("Add", {"xw", "few"}, {"y"});
  return model;
}

std::vector<float> OnZeros(const Graph& graph) {
  const Tensor input({kCount});
  const Tensor* inputs[] = {&input};
  const Tensor output = RunReference(graph, inputs).at(0);
  return {output.floats(), output.floats() + output.size()};
}

std::vector<float> Expected() {
  std::vector<float> expected = Numbers();
  for (float& value : expected) value += 1000;
  return expected;
}

// From memory and from a file.
std::vector<std::vector<float>> Runs(const std::string& bytes) {
  const TemporaryDirectory directory;
  const std::string path = directory.File("net.onnx");
  WriteFile(path, bytes);
  return {OnZeros(ImportOnnxBytes(bytes, "net")), OnZeros(ImportOnnx(path))};
}

TEST(ParsedModel, LargeDataStaysWhereItIs) {
  const std::string bytes = Sum(BytesOf(Numbers())).Bytes();
  const ParsedModel model = ParseApart(bytes, "net");
  ASSERT_EQ(model.data.size(), 2u);
  EXPECT_FALSE(model.proto.graph().initializer(0).has_raw_data());
  EXPECT_EQ(model.proto.graph().initializer(0).name(), "w");
  EXPECT_EQ(bytes.substr(model.data[0].offset, model.data[0].bytes), BytesOf(Numbers()));
  EXPECT_EQ(model.data[1].bytes, 0);
  EXPECT_EQ(model.proto.graph().initializer(1).raw_data().size(), sizeof(float));
  EXPECT_EQ(model.proto.graph().node_size(), 3);
  EXPECT_THAT(Runs(bytes), testing::Each(Expected()));
}

TEST(ParsedModel, DataOfOtherTypesIsConverted) {
  std::vector<double> doubles(kCount);
  std::iota(doubles.begin(), doubles.end(), 1.0);
  EXPECT_THAT(Runs(Sum(BytesOf(doubles), onnx::TensorProto::DOUBLE).Bytes()), testing::Each(Expected()));
  std::vector<int16_t> integers(kCount);
  std::iota(integers.begin(), integers.end(), int16_t{1});
  EXPECT_THAT(Runs(Sum(BytesOf(integers), onnx::TensorProto::INT16).Bytes()), testing::Each(Expected()));
  std::vector<float> ones = Numbers();
  for (size_t i = 0; i < ones.size(); ++i) ones[i] = i % 3 == 0 ? 1000.0F : 1001.0F;
  std::vector<uint8_t> bools(kCount);
  for (size_t i = 0; i < bools.size(); ++i) bools[i] = static_cast<uint8_t>(i % 3);  // 2 is true as well
  EXPECT_THAT(Runs(Sum(BytesOf(bools), onnx::TensorProto::BOOL).Bytes()), testing::Each(ones));
}

TEST(ParsedModel, WhatIsWrittenOtherwiseIsReadAsProtobufDoes) {
  // The graph in two pieces, which are merged; and data of a tensor twice, of which the last counts.
  const std::string whole = Sum(BytesOf(Numbers())).Bytes();
  OnnxModel head = Sum(BytesOf(Numbers()));
  onnx::ModelProto rest;
  rest.mutable_graph()->mutable_node()->Swap(head.graph().mutable_node());
  EXPECT_THAT(Runs(head.Bytes() + rest.SerializeAsString()), testing::Each(Expected()));
  onnx::ModelProto model = Sum("").proto;
  onnx::TensorProto w = Sum(BytesOf(std::vector<float>(kCount, -1))).proto.graph().initializer(0), again;
  again.set_raw_data(BytesOf(Numbers()));
  const std::string twice = w.SerializeAsString() + again.SerializeAsString();
  onnx::TensorProto parsed;
  ASSERT_TRUE(parsed.ParseFromString(twice));
  model.mutable_graph()->mutable_initializer(0)->CopyFrom(parsed);
  EXPECT_THAT(Runs(model.SerializeAsString()), testing::Each(Expected()));
}

TEST(ParsedModel, DataThatDoesNotFillTheShapeIsRefused) {
  for (const int64_t missing : {1, 4, 4000}) {
    std::string raw = BytesOf(Numbers());
    raw.resize(raw.size() - missing);
    const std::string bytes = Sum(raw).Bytes();
    EXPECT_THAT(Refusal(ErrorCode::kBadModel, [&] { ImportOnnxBytes(bytes, "net"); }),
                testing::HasSubstr("initializer \"w\""))
        << missing;
  }
  // A shape that the file cannot fill asks for no memory.
  OnnxModel model = Sum(BytesOf(Numbers()));
  model.graph().mutable_initializer(0)->set_dims(0, int64_t{1} << 30);
  EXPECT_THAT(Refusal(ErrorCode::kBadModel, [&] { ImportOnnxBytes(model.Bytes(), "net"); }),
              testing::HasSubstr("needs more values than there are"));
}

TEST(ParsedModel, FilesThatEndEarlyAreRefusedAtEveryByte) {
  const TemporaryDirectory directory;
  const std::string path = directory.File("net.onnx"), bytes = Sum(BytesOf(Numbers())).Bytes();
  for (size_t end = 0; end < bytes.size(); end += end < 64 || end + 300 > bytes.size() ? 1 : 997) {
    WriteFile(path, bytes.substr(0, end));
    EXPECT_THAT(Refusal(ErrorCode::kBadModel, [&] { ImportOnnx(path); }), testing::HasSubstr(path)) << end;
  }
}

TEST(ParsedModel, APipeIsReadOnce) {
  const TemporaryDirectory directory;
  const std::string path = directory.File("pipe");
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  const std::string bytes = Sum(BytesOf(Numbers())).Bytes();
  std::thread writer([&] { std::ofstream(path, std::ios::binary) << bytes; });
  const Graph graph = ImportOnnx(path);
  writer.join();
  EXPECT_EQ(OnZeros(graph), Expected());
}

TEST(ParsedModel, ConstantsOfAHostAreReadWhereTheyAre) {
  const std::vector<float> numbers = Numbers();
  const HostModel model{.name = "host",
                        .opset = 13,
                        .inputs = {{"x", {kCount}}},
                        .constants = {{"w", 1, {kCount}, std::as_bytes(std::span(numbers))}},
                        .nodes = {{"add", "Add", "", {"x", "w"}, {"y"}, {}}},
                        .outputs = {"y"}};
  EXPECT_EQ(OnZeros(ImportHostModel(model)), numbers);
  EXPECT_EQ(OnZeros(ImportOnnxBytes(OnnxBytes(model), "host")), numbers);
}

}  // namespace
}  // namespace tilesmith
