#include "ops/onnx/parsed_model.h"

#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>

#include <algorithm>
#include <climits>
#include <optional>

#include "layouts/base/error.h"
#include "ops/onnx/onnx_import.h"

namespace tilesmith {
namespace {

using google::protobuf::io::CodedInputStream;

// ONNX's numbers of fields.
constexpr uint32_t kGraph = 7, kInitializer = 5, kRawData = 9;

// protobuf's of encodings.
enum WireType : uint32_t { kVarint = 0, kEightBytes = 1, kLengthDelimited = 2, kFourBytes = 5 };

constexpr int64_t kLargeData = 4096;  // bytes: less goes through protobuf

[[noreturn]] void Refuse(const std::string& source, const std::string& reason) {
  throw Error(ErrorCode::kBadModel, fmt::format("{}: {}", source, reason));
}

bool LooksLikeText(std::string_view bytes) {
  const std::string_view start = bytes.substr(0, 256);
  return std::ranges::all_of(start,
                             [](unsigned char c) { return c >= 0x20 ? c != 0x7f : c >= 9 && c <= 13; });
}

// Bytes by which the last top-level field of a message is longer than what is left of it; 0 when the fields
// fit, or are no protobuf fields at all.
int64_t MissingBytes(std::string_view bytes) {
  CodedInputStream stream(reinterpret_cast<const uint8_t*>(bytes.data()), static_cast<int>(bytes.size()));
  while (const uint32_t tag = stream.ReadTag()) {
    const uint32_t wire_type = tag & 7;
    uint64_t number = 0;
    uint32_t length = 0;
    if (wire_type == kVarint) {
      if (!stream.ReadVarint64(&number)) return 0;
    } else if (wire_type == kLengthDelimited) {
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

bool HasOutputs(const onnx::ModelProto& model) {
  return model.has_graph() && model.graph().output_size() > 0;
}

// A field of a message: [begin, end) is all of it, [data, end) what it holds.
struct Field {
  uint32_t number = 0, wire_type = 0;
  int64_t begin = 0, data = 0, end = 0;
};

// The bytes of a file, of which it holds few at a time.
class FileWindow {
 public:
  FileWindow(const ModelParts& file, std::string location)
      : file_(file), location_(std::move(location)), size_(file.Size(location_)) {}

  int64_t size() const { return size_; }

  // Precondition of both: what is asked for lies within the file.
  uint8_t At(int64_t at) {
    if (at < first_ || at - first_ >= std::ssize(held_)) Hold(at);
    return static_cast<uint8_t>(held_[at - first_]);
  }
  void Append(int64_t begin, int64_t end, std::string& text) {
    const size_t size = text.size();
    text.resize(size + (end - begin));
    const bool held = first_ <= begin && end <= first_ + std::ssize(held_);
    if (held) {
      std::copy_n(held_.data() + (begin - first_), end - begin, text.data() + size);
    } else {
      file_.Read(location_, begin, std::as_writable_bytes(std::span(text).subspan(size)));
    }
  }

  // The field at `at` of a message that ends at `end`; nothing where there is none, or one of an encoding
  // that ONNX does not use.
  std::optional<Field> FieldAt(int64_t at, int64_t end) {
    Field field{.begin = at};
    const std::optional<uint64_t> tag = Varint(at, end);
    if (!tag || *tag > UINT32_MAX || *tag >> 3 == 0) return std::nullopt;
    field.number = static_cast<uint32_t>(*tag >> 3);
    field.wire_type = static_cast<uint32_t>(*tag & 7);
    field.data = at;
    if (field.wire_type == kVarint) {
      if (!Varint(at, end)) return std::nullopt;
    } else if (field.wire_type == kLengthDelimited) {
      const std::optional<uint64_t> length = Varint(at, end);
      if (!length || *length > static_cast<uint64_t>(end - at)) return std::nullopt;
      field.data = at;
      at += static_cast<int64_t>(*length);
    } else if (field.wire_type == kEightBytes || field.wire_type == kFourBytes) {
      const int64_t bytes = field.wire_type == kEightBytes ? 8 : 4;
      if (bytes > end - at) return std::nullopt;
      at += bytes;
    } else {
      return std::nullopt;
    }
    field.end = at;
    return field;
  }

 private:
  static constexpr int64_t kHeld = 1 << 16;

  void Hold(int64_t at) {
    first_ = at;
    held_.resize(static_cast<size_t>(std::min(kHeld, size_ - at)));
    file_.Read(location_, first_, std::as_writable_bytes(std::span(held_)));
  }

  std::optional<uint64_t> Varint(int64_t& at, int64_t end) {
    uint64_t value = 0;
    for (int shift = 0; shift < 64 && at < end; shift += 7) {
      const uint64_t byte = At(at++);
      value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    return std::nullopt;
  }

  const ModelParts& file_;
  const std::string location_;
  const int64_t size_;
  int64_t first_ = 0;
  std::string held_;
};

// Cuts a model into what protobuf is given and data that stays where it is.
class Separation {
 public:
  Separation(ModelPartsPtr file, std::string location)
      : location_(std::move(location)), window_(*file, location_) {
    result_.file = std::move(file);
  }

  // Nothing where the file is not, at first sight, what an exporter writes.
  std::optional<ParsedModel> Take() {
    std::string rest;
    std::optional<Field> graph;
    for (int64_t at = 0; at < window_.size();) {
      const std::optional<Field> field = window_.FieldAt(at, window_.size());
      if (!field) return std::nullopt;
      at = field->end;
      if (field->number != kGraph) {
        window_.Append(field->begin, field->end, rest);
      } else if (graph || field->wire_type != kLengthDelimited) {
        return std::nullopt;
      } else {
        graph = field;
      }
    }
    if (!graph || !ParseMessage(rest, result_.proto) || !TakeGraph(*graph)) return std::nullopt;
    if (!HasOutputs(result_.proto)) return std::nullopt;
    return std::move(result_);
  }

 private:
  bool TakeGraph(const Field& of) {
    std::string rest;
    std::vector<Field> initializers;
    for (int64_t at = of.data; at < of.end;) {
      const std::optional<Field> field = window_.FieldAt(at, of.end);
      if (!field) return false;
      at = field->end;
      if (field->number != kInitializer) {
        window_.Append(field->begin, field->end, rest);
      } else if (field->wire_type == kLengthDelimited) {
        initializers.push_back(*field);
      } else {
        return false;
      }
    }
    onnx::GraphProto& graph = *result_.proto.mutable_graph();
    return ParseMessage(rest, graph) && std::ranges::all_of(initializers, [&](const Field& initializer) {
             return TakeInitializer(initializer, *graph.add_initializer());
           });
  }

  bool TakeInitializer(const Field& of, onnx::TensorProto& tensor) {
    PartPlace& data = result_.data.emplace_back();
    std::string rest;
    for (int64_t at = of.data; at < of.end;) {
      const std::optional<Field> field = window_.FieldAt(at, of.end);
      if (!field) return false;
      at = field->end;
      const bool large = field->number == kRawData && field->wire_type == kLengthDelimited &&
                         field->end - field->data >= kLargeData;
      if (!large) {
        window_.Append(field->begin, field->end, rest);
      } else if (data.bytes > 0) {
        return false;
      } else {
        data = {location_, field->data, field->end - field->data};
      }
    }
    return ParseMessage(rest, tensor) && (data.bytes == 0 || !tensor.has_raw_data());
  }

  const std::string location_;
  FileWindow window_;
  ParsedModel result_;
};

std::optional<ParsedModel> Separated(ModelPartsPtr file, const std::string& location) {
  return Separation(std::move(file), location).Take();
}

}  // namespace

bool ParseMessage(std::string_view bytes, google::protobuf::MessageLite& message) {
  CodedInputStream stream(reinterpret_cast<const uint8_t*>(bytes.data()), static_cast<int>(bytes.size()));
  stream.SetTotalBytesLimit(INT_MAX);
  return message.ParseFromCodedStream(&stream) && stream.ConsumedEntireMessage();
}

onnx::ModelProto ParseModel(std::string_view bytes, const std::string& source) {
  if (bytes.empty()) Refuse(source, "the file is empty");
  if (bytes.size() > size_t{INT_MAX}) Refuse(source, "models of 2 GiB and more are not supported");
  onnx::ModelProto model;
  if (!ParseMessage(bytes, model)) {
    if (LooksLikeText(bytes)) {
      const bool pointer = bytes.starts_with("version https://git-lfs");
      Refuse(source, pointer ? "a Git LFS pointer, not the model itself" : "a text file, not an ONNX model");
    }
    if (const int64_t missing = MissingBytes(bytes); missing > 0) {
      Refuse(source, fmt::format("the file is truncated: {} bytes, {} are missing", bytes.size(), missing));
    }
    Refuse(source, "not an ONNX model: protobuf cannot parse it");
  }
  if (!HasOutputs(model)) Refuse(source, "not an ONNX model: it holds no graph with outputs");
  return model;
}

// What cannot be separated protobuf has the last word on.
ParsedModel ParseApart(std::string_view bytes, const std::string& source) {
  if (bytes.size() <= size_t{INT_MAX}) {
    const auto data = std::as_bytes(std::span(bytes.data(), bytes.size()));
    if (std::optional<ParsedModel> model = Separated(PartsInMemory({{source, data}}), source))
      return *std::move(model);
  }
  return {ParseModel(bytes, source)};
}

ParsedModel ParseFileApart(const std::string& path) {
  if (const ModelPartsPtr file = WholeFile(path); file && file->Size(path) <= INT_MAX) {
    if (std::optional<ParsedModel> model = Separated(file, path)) return *std::move(model);
  }
  return {ParseModel(ReadModelFile(path), path)};
}

}  // namespace tilesmith
