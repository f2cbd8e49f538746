#include "ops/onnx/onnx_import.h"

#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/stubs/common.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>

#include "layouts/base/error.h"
#include "ops/onnx/importer.h"
#include "ops/onnx/tensor_proto.h"

namespace tilesmith {
namespace {

using google::protobuf::io::CodedInputStream;

constexpr int64_t kLargestFile = INT_MAX;  // protobuf counts bytes in int

[[noreturn]] void Fail(ErrorCode code, const std::string& source, const std::string& reason) {
  throw Error(code, fmt::format("{}: {}", source, reason));
}

}  // namespace

std::string ReadModelFile(const std::string& path) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status))
    throw Error(ErrorCode::kEnvironment, fmt::format("cannot read {}: No such file or directory", path));
  if (std::filesystem::is_directory(status))
    Fail(ErrorCode::kUsage, path, "is a directory, not a model file");
  std::ifstream file(path, std::ios::binary);
  if (!file)
    throw Error(ErrorCode::kEnvironment, fmt::format("cannot read {}: {}", path, std::strerror(errno)));
  const int64_t bytes = static_cast<int64_t>(std::filesystem::file_size(path, error));
  if (!error && bytes > kLargestFile) {
    Fail(ErrorCode::kBadModel, path,
         fmt::format("{} bytes; models of 2 GiB and more are not supported", bytes));
  }
  std::string text(error ? 0 : static_cast<size_t>(bytes), '\0');
  file.read(text.data(), std::streamsize(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  // Of what has no size, a pipe say, everything, unless it never ends.
  std::string piece(size_t{1} << 20, '\0');
  while (file && static_cast<int64_t>(text.size()) <= kLargestFile) {
    file.read(piece.data(), std::streamsize(piece.size()));
    text.append(piece, 0, static_cast<size_t>(file.gcount()));
  }
  if (static_cast<int64_t>(text.size()) > kLargestFile)
    Fail(ErrorCode::kBadModel, path, "models of 2 GiB and more are not supported");
  return text;
}

namespace {

bool LooksLikeText(std::string_view bytes) {
  const std::string_view start = bytes.substr(0, 256);
  return std::ranges::all_of(start,
                             [](unsigned char c) { return c >= 0x20 ? c != 0x7f : c >= 9 && c <= 13; });
}

bool Parse(std::string_view bytes, google::protobuf::MessageLite& message) {
  CodedInputStream stream(reinterpret_cast<const uint8_t*>(bytes.data()), static_cast<int>(bytes.size()));
  stream.SetTotalBytesLimit(INT_MAX);
  return message.ParseFromCodedStream(&stream) && stream.ConsumedEntireMessage();
}

// Bytes by which the last top-level field of a message is longer than what is left of it; 0 when the fields
// fit, or are no protobuf fields at all.
int64_t MissingBytes(std::string_view bytes) {
  CodedInputStream stream(reinterpret_cast<const uint8_t*>(bytes.data()), static_cast<int>(bytes.size()));
  while (const uint32_t tag = stream.ReadTag()) {
    const uint32_t wire_type = tag & 7;
    uint64_t number = 0;
    uint32_t length = 0;
    if (wire_type == 0) {
      if (!stream.ReadVarint64(&number)) return 0;
    } else if (wire_type == 2) {
      if (!stream.ReadVarint32(&length)) return 0;
      const int64_t left = static_cast<int64_t>(bytes.size()) - stream.CurrentPosition();
      if (length > left) return length - left;
      stream.Skip(static_cast<int>(length));
    } else {
      return 0;
    }
  }
  return 0;
}

}  // namespace

onnx::ModelProto ParseModel(std::string_view bytes, const std::string& source) {
  if (bytes.empty()) Fail(ErrorCode::kBadModel, source, "the file is empty");
  if (bytes.size() > static_cast<size_t>(kLargestFile)) {
    Fail(ErrorCode::kBadModel, source, "models of 2 GiB and more are not supported");
  }
  onnx::ModelProto model;
  if (!Parse(bytes, model)) {
    if (LooksLikeText(bytes)) {
      const bool pointer = bytes.starts_with("version https://git-lfs");
      Fail(ErrorCode::kBadModel, source,
           pointer ? "a Git LFS pointer, not the model itself" : "a text file, not an ONNX model");
    }
    if (const int64_t missing = MissingBytes(bytes); missing > 0) {
      Fail(ErrorCode::kBadModel, source,
           fmt::format("the file is truncated: {} bytes, {} are missing", bytes.size(), missing));
    }
    Fail(ErrorCode::kBadModel, source, "not an ONNX model: protobuf cannot parse it");
  }
  if (!model.has_graph() || model.graph().output_size() == 0) {
    Fail(ErrorCode::kBadModel, source, "not an ONNX model: it holds no graph with outputs");
  }
  return model;
}

OnnxFile OnnxFile::Read(const std::string& path, const SizeLimits& limits) {
  onnx::ModelProto model = ParseModel(ReadModelFile(path), path);  // the file's bytes are gone by then
  const ModelPartsPtr parts = FilesBeside(path);
  return TakeModel(std::move(model), path, TensorReader(parts.get(), limits));
}

OnnxFile OnnxFile::Parse(const ModelView& model, const std::string& source, const SizeLimits& limits) {
  return TakeModel(ParseModel(model.bytes, source), source, TensorReader(model.parts, limits));
}

Graph ImportOnnx(const std::string& path, const ImportOptions& options) {
  return OnnxFile::Read(path, options.limits).Import(options);
}

Graph ImportOnnxBytes(const ModelView& model, const std::string& source, const ImportOptions& options) {
  return OnnxFile::Parse(model, source, options.limits).Import(options);
}

std::string InOneFile(const ModelView& model, const std::string& source) {
  onnx::ModelProto proto = ParseModel(model.bytes, source);
  if (PartsOf(proto).empty()) return std::string(model.bytes);
  EmbedParts(proto, source, TensorReader(model.parts));
  return Serialize(proto);
}

OnnxSummary SummarizeOnnx(std::string_view bytes, const std::string& source) {
  onnx::ModelProto model = ParseModel(bytes, source);
  OnnxSummary summary;
  summary.opset = DefaultOpset(model);
  std::set<std::string> weights;
  for (const onnx::TensorProto& initializer : model.graph().initializer()) weights.insert(initializer.name());
  for (const onnx::ValueInfoProto& input : model.graph().input()) {
    if (!weights.contains(input.name())) summary.inputs.push_back(input.name());
  }
  for (const onnx::ValueInfoProto& output : model.graph().output()) summary.outputs.push_back(output.name());
  for (const onnx::NodeProto& node : model.graph().node()) {
    const bool is_default = node.domain().empty() || node.domain() == "ai.onnx";
    summary.op_types.push_back(is_default ? node.op_type() : node.domain() + "::" + node.op_type());
  }
  summary.parts = PartsOf(model);
  return summary;
}

std::string ProtobufVersion() { return google::protobuf::internal::VersionString(GOOGLE_PROTOBUF_VERSION); }

Tensor ParseOnnxTensor(const ModelView& tensor, const std::string& source) {
  onnx::TensorProto proto;
  if (!Parse(tensor.bytes, proto)) Fail(ErrorCode::kBadModel, source, "not a serialized ONNX tensor");
  return TensorReader(tensor.parts).ReadStored(proto, source);
}

}  // namespace tilesmith
