// Models that keep data in other files, or in memory.
#include "ops/onnx/model_parts.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <numeric>

#include "layouts/base/error.h"
#include "ops/graph/reference_run.h"
#include "ops/onnx/importer.h"
#include "ops/onnx/onnx_import.h"
#include "ops/qdq/qdq_model.h"
#include "tests/support/opened_files.h"
#include "tests/support/ops/onnx_model.h"
#include "tests/support/refusal.h"
#include "tests/support/temporary_files.h"

namespace tilesmith {
namespace {

using onnx::TensorProto;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

struct Place {
  std::string location, offset = "", length = "";
};

void SetPlace(TensorProto& tensor, const Place& place) {
  tensor.set_data_location(TensorProto::EXTERNAL);
  tensor.clear_external_data();
  for (const auto& [key, value] : {std::pair<std::string, std::string>("location", place.location),
                                   {"offset", place.offset},
                                   {"length", place.length}}) {
    if (value.empty() && key != "location") continue;
    auto* const entry = tensor.add_external_data();
    entry->set_key(key), entry->set_value(value);
  }
}

// y = x + w, the four numbers of w elsewhere.
OnnxModel AddModel(const Place& place, int32_t type = TensorProto::FLOAT) {
  OnnxModel model;
  model.Input("x", {1, 4});
  model.Output("y");
  SetPlace(model.Weight("w", {4}, type), place);
  model.Node("Cast", {"w"}, {"wf"}).add_attribute()->CopyFrom([] {
    onnx::AttributeProto to;
    to.set_name("to"), to.set_type(onnx::AttributeProto::INT), to.set_i(TensorProto::FLOAT);
    return to;
  }());
  model.Node("Add", {"x", "wf"}, {"y"}, "add");
  return model;
}

std::string FloatBytes(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

std::vector<float> OnZeros(const Graph& graph) {
  const Tensor input(graph.node(graph.GraphInputs().at(0)).shape);
  const Tensor* inputs[] = {&input};
  const Tensor output = RunReference(graph, inputs).at(0);
  return {output.floats(), output.floats() + output.size()};
}

// A folder "models" with a file of 1 to 4 and others, and what must not be read beside it.
struct Folder {
  TemporaryDirectory around;
  std::string path = around.File("models");
  std::string model = path + "/net.onnx";

  Folder() {
    std::filesystem::create_directories(path + "/weights");
    const std::string numbers = FloatBytes({1, 2, 3, 4});
    WriteFile(path + "/numbers", numbers);
    WriteFile(path + "/weights/w 1.bin", std::string(64, '\0') + numbers);
    WriteFile(around.File("outside"), FloatBytes({9, 9, 9, 9}));
    std::filesystem::create_symlink(around.File("outside"), path + "/link");
    std::filesystem::create_symlink(path + "/numbers", path + "/inner_link");
    std::filesystem::create_symlink(around.path(), path + "/up");
    mkfifo((path + "/pipe").c_str(), 0600);
  }
  std::vector<float> Run(const Place& place, int32_t type = TensorProto::FLOAT) const {
    WriteFile(model, AddModel(place, type).Bytes());
    return OnZeros(ImportOnnx(model));
  }
  std::string RefusedFor(const Place& place) const {
    WriteFile(model, AddModel(place).Bytes());
    const std::string message = Refusal(ErrorCode::kBadModel, [&] { ImportOnnx(model); });
    EXPECT_THAT(message, AllOf(HasSubstr("initializer \"w\": data in"), Not(HasSubstr("\n"))));
    return message;
  }
};

TEST(ModelParts, FilesOfTheFolderAreReadWhereTheyAreSaidToBe) {
  const Folder folder;
  const auto numbers = ElementsAre(1, 2, 3, 4);
  EXPECT_THAT(folder.Run({"numbers"}), numbers);
  EXPECT_THAT(folder.Run({"numbers", "0", "16"}), numbers);
  EXPECT_THAT(folder.Run({"./weights/../numbers"}), numbers);
  EXPECT_THAT(folder.Run({"weights/w 1.bin", "64"}), numbers);
  EXPECT_THAT(folder.Run({"weights//./w 1.bin", "64", "16"}), numbers);
}

TEST(ModelParts, DataOfOtherTypesIsReadAsFilesHaveIt) {
  const Folder folder;
  const double doubles[] = {0.5, -1, 2, 1e300};
  WriteFile(folder.path + "/numbers", {reinterpret_cast<const char*>(doubles), sizeof doubles});
  EXPECT_THAT(folder.Run({"numbers"}, TensorProto::DOUBLE),
              ElementsAre(0.5f, -1, 2, std::numeric_limits<float>::infinity()));
  WriteFile(folder.path + "/numbers", std::string("\0\1\2\xff", 4));
  EXPECT_THAT(folder.Run({"numbers"}, TensorProto::BOOL), ElementsAre(0, 1, 1, 1));
  EXPECT_THAT(folder.Run({"numbers"}, TensorProto::INT8), ElementsAre(0, 1, 2, -1));
}

TEST(ModelParts, AFileOfFourGigabytesIsReadAtItsEnd) {
  const Folder folder;
  const int64_t offset = (int64_t{9} << 29) + 4;  // 4.5 GiB
  WriteFile(folder.path + "/large", FloatBytes({1, 2, 3, 4}));
  ASSERT_EQ(truncate((folder.path + "/large").c_str(), 0), 0);
  ASSERT_EQ(truncate((folder.path + "/large").c_str(), offset), 0);  // a hole
  std::FILE* const file = std::fopen((folder.path + "/large").c_str(), "ab");
  const std::string numbers = FloatBytes({1, 2, 3, 4});
  ASSERT_EQ(std::fwrite(numbers.data(), 1, numbers.size(), file), numbers.size());
  std::fclose(file);
  EXPECT_THAT(folder.Run({"large", fmt::format("{}", offset), "16"}), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(folder.RefusedFor({"large", fmt::format("{}", offset + 1)}), HasSubstr("ends before it"));
}

TEST(ModelParts, WhateverIsNoFileInTheFolderIsRefusedWithItsReason) {
  const Folder folder;
  EXPECT_THAT(folder.RefusedFor({"../outside"}), HasSubstr("outside of the model's folder"));
  EXPECT_THAT(folder.RefusedFor({"weights/../../outside"}), HasSubstr("outside of the model's folder"));
  EXPECT_THAT(folder.RefusedFor({"up/outside"}), HasSubstr("symbolic link"));
  EXPECT_THAT(folder.RefusedFor({"link"}), HasSubstr("symbolic link"));
  EXPECT_THAT(folder.RefusedFor({"inner_link"}), HasSubstr("symbolic link"));
  EXPECT_THAT(folder.RefusedFor({folder.path + "/numbers"}), HasSubstr("absolute"));
  EXPECT_THAT(folder.RefusedFor({"/dev/zero"}), HasSubstr("absolute"));
  EXPECT_THAT(folder.RefusedFor({"weights"}), HasSubstr("is a folder"));
  EXPECT_THAT(folder.RefusedFor({"weights/.."}), HasSubstr("the model's folder"));
  EXPECT_THAT(folder.RefusedFor({"pipe"}), HasSubstr("no regular file"));
  EXPECT_THAT(folder.RefusedFor({"missing"}), AllOf(HasSubstr("\"missing\""), HasSubstr("is not there")));
  EXPECT_THAT(folder.RefusedFor({"missing/numbers"}), HasSubstr("is not there"));
  EXPECT_THAT(folder.RefusedFor({"numbers/below"}), HasSubstr("is not there"));
  EXPECT_THAT(folder.RefusedFor({""}), HasSubstr("no name"));
  EXPECT_THAT(folder.RefusedFor({std::string("numbers\0x", 9)}), HasSubstr("zero byte"));
  EXPECT_THAT(folder.RefusedFor({std::string(5000, 'a')}), HasSubstr("cannot be read"));
}

TEST(ModelParts, OffsetsAndLengthsAreCheckedBeforeAnythingIsRead) {
  const Folder folder;
  EXPECT_THAT(folder.RefusedFor({"numbers", "1"}), HasSubstr("ends before it, at 16 bytes"));
  EXPECT_THAT(folder.RefusedFor({"numbers", "17"}), HasSubstr("ends before it"));
  EXPECT_THAT(folder.RefusedFor({"numbers", "9223372036854775807"}), HasSubstr("ends before it"));
  EXPECT_THAT(folder.RefusedFor({"numbers", "9223372036854775808"}), HasSubstr("no number of bytes"));
  EXPECT_THAT(folder.RefusedFor({"numbers", "-4"}), HasSubstr("no number of bytes"));
  EXPECT_THAT(folder.RefusedFor({"numbers", "0x4"}), HasSubstr("no number of bytes"));
  EXPECT_THAT(folder.RefusedFor({"numbers", "0", "15"}), HasSubstr("needs 16"));
  EXPECT_THAT(folder.RefusedFor({"numbers", "0", "17"}), HasSubstr("needs 16"));
  OnnxModel large = AddModel({"numbers"});
  large.graph().mutable_initializer(0)->set_dims(0, int64_t{1} << 39);
  EXPECT_THAT(Refusal(ErrorCode::kBadModel, [&] { large.Import(); }), HasSubstr("\"w\""));
}

TEST(ModelParts, TensorsThatShareBytesCountOnceEach) {
  OnnxModel model;
  model.Input("x", {1, 4});
  model.Node("Identity", {"x"}, {"y"});
  model.Output("y");
  for (int i = 0; i < 100; ++i)
    SetPlace(model.Weight(fmt::format("w{}", i), {4}, TensorProto::FLOAT), {"part"});
  const std::string numbers = FloatBytes({1, 2, 3, 4}), bytes = model.Bytes();
  const ModelPartsPtr parts = PartsInMemory({{"part", std::as_bytes(std::span(numbers))}});
  const ModelView view(bytes, parts.get());
  EXPECT_NO_THROW(ImportOnnxBytes(view, "net", {.limits = {.network_bytes = 1600}}));
  EXPECT_THAT(Refusal(ErrorCode::kBadModel,
                      [&] { ImportOnnxBytes(view, "net", {.limits = {.network_bytes = 1599}}); }),
              HasSubstr("more than 1599 bytes in all"));
}

TEST(ModelParts, OneLineTellsAllTensorsOfOneReason) {
  OnnxModel model = AddModel({"gone"});
  for (int i = 0; i < 20; ++i)
    SetPlace(model.Weight(fmt::format("u{}", i), {4}, TensorProto::FLOAT), {"gone"});
  const Folder folder;
  WriteFile(folder.model, model.Bytes());
  EXPECT_EQ(Refusal(ErrorCode::kBadModel, [&] { ImportOnnx(folder.model); }),
            folder.model +
                ": not supported: 21 initializers, the first \"w\": data in \"gone\", which is not there");
  // A damaged file has many reasons: the first few, and how many more.
  for (int i = 0; i < 20; ++i) SetPlace(*model.graph().mutable_initializer(i), {fmt::format("gone{}", i)});
  const std::string message = Refusal(ErrorCode::kBadModel, [&] { model.Import(); });
  EXPECT_THAT(message, AllOf(HasSubstr("gone7"), Not(HasSubstr("gone9")), HasSubstr("13 more initializers")));
}

TEST(ModelParts, AFileThatBecomesShorterIsAnError) {
  const Folder folder;
  const ModelPartsPtr parts = FilesBeside(folder.model);
  ASSERT_EQ(parts->Size("numbers"), 16);
  WriteFile(folder.path + "/numbers", "abc");
  std::byte bytes[16];
  EXPECT_THAT(Refusal(ErrorCode::kBadModel, [&] { parts->Read("numbers", 0, bytes); }),
              HasSubstr("became shorter"));
}

TEST(ModelParts, NothingOutsideOfTheFolderIsOpened) {
  const Folder folder;
  WriteFile(folder.model, AddModel({"numbers"}).Bytes());
  const auto opened = OpenedFiles([&] { ImportOnnx(folder.model); });
  if (!opened) GTEST_SKIP() << "tracing is not allowed here";
  EXPECT_EQ(std::ranges::count(*opened, "numbers"), 1);
  for (const std::string location :
       {"../outside", "weights/../../outside", "link", "inner_link", "up/outside", "pipe", "/dev/zero",
        "/etc/hostname", "weights", "missing", "."}) {
    WriteFile(folder.model, AddModel({location}).Bytes());
    const auto paths = OpenedFiles([&] { ImportOnnx(folder.model); });
    ASSERT_TRUE(paths);
    EXPECT_THAT(*paths, testing::IsSubsetOf({folder.model, folder.path})) << location;
  }
}

TEST(ModelParts, TensorsOfNodesAndBodiesMayLieElsewhere) {
  const Folder folder;
  OnnxModel model;
  model.Input("x", {1, 4});
  model.Output("y");
  onnx::AttributeProto* const value = model.Node("Constant", {}, {"c"}).add_attribute();
  value->set_name("value"), value->set_type(onnx::AttributeProto::TENSOR);
  value->mutable_t()->set_data_type(TensorProto::FLOAT), value->mutable_t()->add_dims(4);
  SetPlace(*value->mutable_t(), {"numbers"});
  model.Weight("yes", {}, TensorProto::BOOL).add_int32_data(1);
  onnx::NodeProto& branch = model.Node("If", {"yes"}, {"b"});
  for (const char* name : {"then_branch", "else_branch"}) {
    onnx::AttributeProto* const body = branch.add_attribute();
    body->set_name(name), body->set_type(onnx::AttributeProto::GRAPH);
    body->mutable_g()->add_output()->set_name("w");
    TensorProto* const tensor = body->mutable_g()->add_initializer();
    tensor->set_name("w"), tensor->set_data_type(TensorProto::FLOAT), tensor->add_dims(4);
    SetPlace(*tensor, {"weights/w 1.bin", "64"});
  }
  model.Node("Add", {"x", "c"}, {"xc"});
  model.Node("Add", {"xc", "b"}, {"y"});
  WriteFile(folder.model, model.Bytes());
  EXPECT_THAT(OnZeros(ImportOnnx(folder.model)), ElementsAre(2, 4, 6, 8));
  EXPECT_THAT(SummarizeOnnx(model.Bytes(), "net").parts, ElementsAre("numbers", "weights/w 1.bin"));
  const ModelPartsPtr parts = FilesBeside(folder.model);
  const std::string bytes = model.Bytes();
  const std::string one_file = InOneFile({bytes, parts.get()}, "net");
  EXPECT_THAT(SummarizeOnnx(one_file, "net").parts, testing::IsEmpty());
  EXPECT_THAT(OnZeros(ImportOnnxBytes(one_file, "net")), ElementsAre(2, 4, 6, 8));
}

TEST(ModelParts, InMemoryTheyAreFoundByTheirLocations) {
  const std::string numbers = FloatBytes({1, 2, 3, 4}), bytes = AddModel({"../any/where"}).Bytes();
  const ModelPartsPtr parts = PartsInMemory({{"../any/where", std::as_bytes(std::span(numbers))}});
  EXPECT_THAT(OnZeros(ImportOnnxBytes({bytes, parts.get()}, "net")), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(Refusal(ErrorCode::kBadModel, [&] { ImportOnnxBytes(bytes, "net"); }),
              HasSubstr("not read here"));
  const std::string other = AddModel({"elsewhere"}).Bytes();
  EXPECT_THAT(Refusal(ErrorCode::kBadModel,
                      [&] {
                        ImportOnnxBytes({other, parts.get()}, "net");
                      }),
              HasSubstr("\"elsewhere\", which is not among the parts"));
}

TEST(ModelParts, AModelOnceReadIsImportedForAnySizeWithoutItsFiles) {
  const Folder folder;
  OnnxModel model = AddModel({"numbers"});
  model.graph()
      .mutable_input(0)
      ->mutable_type()
      ->mutable_tensor_type()
      ->mutable_shape()
      ->mutable_dim(0)
      ->set_dim_param("n");
  WriteFile(folder.model, model.Bytes());
  const OnnxFile file = OnnxFile::Read(folder.model);
  std::filesystem::remove_all(folder.path);
  for (const int64_t rows : {3, 1, 3}) {
    const Graph graph = file.Import({.dims = {{"n", rows}}});
    EXPECT_EQ(graph.node(graph.outputs()[0]).shape, (Shape{rows, 4}));
    EXPECT_THAT(OnZeros(graph), testing::Contains(3).Times(rows));
  }
}

TEST(ModelParts, LargeWeightsAreWrittenIntoAnotherPart) {
  OnnxModel model;
  model.Input("x", {1, 512});
  model.Output("y");
  std::vector<float> first(512), second(512);
  std::iota(first.begin(), first.end(), 1.0f);
  std::iota(second.begin(), second.end(), 1000.0f);
  model.Weight("a", {512}, TensorProto::FLOAT).set_raw_data(FloatBytes(first));
  model.Weight("b", {512}, TensorProto::FLOAT).set_raw_data(FloatBytes(second));
  model.Weight("two", {1}, TensorProto::FLOAT).set_raw_data(FloatBytes({2}));
  model.Node("Mul", {"x", "two"}, {"x2"});
  model.Node("Add", {"x2", "a"}, {"xa"});
  model.Node("Add", {"xa", "b"}, {"y"});
  EXPECT_EQ(SerializeWithData(model.proto, {.location = "d"}).parts, nullptr);
  for (const DataPlacement& placement :
       {DataPlacement{.location = "d", .always = true}, DataPlacement{.location = "d", .largest = 1000}}) {
    const ModelBytes written = SerializeWithData(model.proto, placement);
    ASSERT_NE(written.parts, nullptr);
    EXPECT_LT(written.bytes.size(), 1000u);
    EXPECT_THAT(SummarizeOnnx(written.bytes, "net").parts, ElementsAre("d"));
    EXPECT_EQ(written.parts->Size("d"), 4096 + 2048);  // each begins a page
    EXPECT_EQ(OnZeros(ImportOnnxBytes(written, "net")), OnZeros(model.Import()));
  }
}

TEST(ModelParts, AModelToQuantiseIsTheSameInOneFileAndInTwo) {
  OnnxModel model;
  model.Input("x", {1, 4, 5, 5});
  model.Output("y");
  std::vector<float> weights(8 * 4 * 9);
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = 0.01f * static_cast<float>(i % 17);
  model.Weight("w", {8, 4, 3, 3}, TensorProto::FLOAT).set_raw_data(FloatBytes(weights));
  model.Node("Conv", {"x", "w"}, {"y"}, "conv");
  const QdqModel one(model.Bytes(), "net", {});
  const ModelBytes in_two = SerializeWithData(model.proto, {.location = "d", .always = true});
  const QdqModel two(in_two, "net", {});
  EXPECT_EQ(one.hash(), two.hash());
  EXPECT_EQ(one.bytes(), two.bytes());
  weights[5] += 1;
  model.graph().mutable_initializer(0)->set_raw_data(FloatBytes(weights));
  EXPECT_NE(QdqModel(SerializeWithData(model.proto, {.location = "d", .always = true}), "net", {}).hash(),
            two.hash());
}

}  // namespace
}  // namespace tilesmith
