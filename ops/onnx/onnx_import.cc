#include "ops/onnx/onnx_import.h"

#include <fmt/format.h>
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
  // What has no size, a pipe say, is read to its end, unless it never ends.
  std::string piece(size_t{1} << 20, '\0');
  while (file && static_cast<int64_t>(text.size()) <= kLargestFile) {
    file.read(piece.data(), std::streamsize(piece.size()));
    text.append(piece, 0, static_cast<size_t>(file.gcount()));
  }
  if (static_cast<int64_t>(text.size()) > kLargestFile)
    Fail(ErrorCode::kBadModel, path, "models of 2 GiB and more are not supported");
  return text;
}

OnnxFile OnnxFile::Read(const std::string& path, const SizeLimits& limits) {
  ParsedModel model = ParseFileApart(path);
  const ModelPartsPtr parts = FilesBeside(path);
  return TakeModel(std::move(model), path, TensorReader(parts.get(), limits));
}

OnnxFile OnnxFile::Parse(const ModelView& model, const std::string& source, const SizeLimits& limits) {
  return TakeModel(ParseApart(model.bytes, source), source, TensorReader(model.parts, limits));
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

namespace {

OnnxSummary SummaryOf(onnx::ModelProto model) {
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

}  // namespace

OnnxSummary SummarizeOnnx(std::string_view bytes, const std::string& source) {
  return SummaryOf(ParseApart(bytes, source).proto);
}

OnnxSummary SummarizeOnnxFile(const std::string& path) { return SummaryOf(ParseFileApart(path).proto); }

std::string ProtobufVersion() { return google::protobuf::internal::VersionString(GOOGLE_PROTOBUF_VERSION); }

Tensor ParseOnnxTensor(const ModelView& tensor, const std::string& source) {
  onnx::TensorProto proto;
  if (!ParseMessage(tensor.bytes, proto)) Fail(ErrorCode::kBadModel, source, "not a serialized ONNX tensor");
  return TensorReader(tensor.parts).ReadStored(proto, source);
}

}  // namespace tilesmith
