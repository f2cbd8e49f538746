#include "ops/onnx/tensor_proto.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "layouts/base/error.h"
#include "layouts/base/visible.h"
#include "ops/base/onnx_type.h"

namespace tilesmith {
namespace {

constexpr int64_t kIrVersion = 7;  // of ONNX 1.8, whose opset is 13

using onnx::TensorProto;

[[noreturn]] void Fail(const std::string& what, const std::string& reason) {
  throw Error(ErrorCode::kBadModel, fmt::format("{}: {}", what, reason));
}

// Checked before any memory is asked for: an element takes at least a byte, or has a narrow type. `apart`:
// bytes of its data that are not in the proto.
Shape CheckedShape(const TensorProto& proto, int64_t apart, const SizeLimits& limits,
                   const std::string& what) {
  const Shape shape(proto.dims().begin(), proto.dims().end());
  const bool empty = std::ranges::find(shape, 0) != shape.end();
  const NarrowType* const narrow = NarrowTypeOf(proto.data_type());
  const int64_t per_byte = narrow == nullptr ? 1 : 8 / narrow->bits;
  const int64_t most = empty               ? kMaxTensorElements
                       : IsExternal(proto) ? limits.tensor_elements
                                           : (static_cast<int64_t>(proto.ByteSizeLong()) + apart) * per_byte;
  try {
    CheckShape(shape, {.tensor_elements = most});
  } catch (const Error& error) {
    const bool large = std::ssize(shape) <= kMaxRank && std::ranges::min(shape) >= 0;
    Fail(what, large && !IsExternal(proto)
                   ? fmt::format("its shape {} needs more values than there are", ShapeToString(shape))
                   : error.what());
  }
  return shape;
}

// Whether elements are the same bytes in a file and in memory. A bool in a file may be any byte.
bool IsStoredAs(int32_t number, DataType type) {
  return OnnxTypeNumber(type) == number && type != DataType::kBool;
}

// Elements are `Stored` in `raw`, and one per entry of the typed field otherwise.
struct Filler {
  const TensorProto& proto;
  const std::string& raw;
  const std::string& what;
  int64_t count;

  template <typename Stored, typename Out, typename Field, typename Convert>
  void Fill(const Field& field, Out* out, Convert convert) const {
    const bool is_raw = !raw.empty();
    const int64_t found = is_raw ? static_cast<int64_t>(raw.size() / sizeof(Stored)) : field.size();
    if (is_raw && raw.size() % sizeof(Stored) != 0) {
      Fail(what, fmt::format("its data has {} bytes, no multiple of the {} of an element", raw.size(),
                             sizeof(Stored)));
    }
    if (found != count) {
      const Shape shape(proto.dims().begin(), proto.dims().end());
      Fail(what, fmt::format("it has {} values, its shape {} needs {}", found, ShapeToString(shape), count));
    }
    for (int64_t i = 0; i < count; ++i) {
      Stored value;
      if (is_raw) {
        std::memcpy(&value, raw.data() + i * sizeof(Stored), sizeof(Stored));
      } else {
        value = static_cast<Stored>(field[static_cast<int>(i)]);
      }
      out[i] = convert(value);
    }
  }

  // Into elements of type T.
  template <typename T>
  void FillAs(T* out) const {
    const auto as_it_is = [](T value) { return value; };
    if constexpr (std::is_same_v<T, float>) {
      switch (proto.data_type()) {
        case TensorProto::DOUBLE:
          return Fill<double>(proto.double_data(), out,
                              [](double value) { return static_cast<float>(value); });
        case TensorProto::FLOAT16:
          return Fill<uint16_t>(proto.int32_data(), out, FromF16Bits);
        case TensorProto::BFLOAT16:
          return Fill<uint16_t>(proto.int32_data(), out, FromBf16Bits);
        default:
          return Fill<float>(proto.float_data(), out, as_it_is);
      }
    } else if constexpr (std::is_same_v<T, F16> || std::is_same_v<T, Bf16>) {
      Fill<uint16_t>(proto.int32_data(), out, [](uint16_t bits) { return std::bit_cast<T>(bits); });
    } else if constexpr (std::is_same_v<T, bool>) {
      Fill<uint8_t>(proto.int32_data(), out, [](uint8_t value) { return value != 0; });
    } else if constexpr (std::is_same_v<T, int64_t>) {
      Fill<T>(proto.int64_data(), out, as_it_is);
    } else if constexpr (std::is_same_v<T, uint32_t> || std::is_same_v<T, uint64_t>) {
      Fill<T>(proto.uint64_data(), out, as_it_is);
    } else {
      Fill<T>(proto.int32_data(), out, as_it_is);
    }
  }
};

// Packed into bytes in `raw`, or a byte in each entry of the typed field.
Tensor UnpackedTensor(const TensorProto& proto, const std::string& raw, const NarrowType& type,
                      const Shape& shape, const std::string& what) {
  Tensor tensor(shape, Layout::Nchw(type.unpacked));
  const std::vector<uint8_t> typed(proto.int32_data().begin(), proto.int32_data().end());
  const std::span<const uint8_t> bytes =
      raw.empty() ? typed : std::span(reinterpret_cast<const uint8_t*>(raw.data()), raw.size());
  const int64_t needed = PackedBytes(type, tensor.size());
  if (std::ssize(bytes) != needed) {
    Fail(what, fmt::format("it has {} bytes of {}, its shape {} needs {}", bytes.size(),
                           OnnxTypeName(type.number), ShapeToString(shape), needed));
  }
  Unpack(type, bytes, tensor);
  return tensor;
}

// "" where it says none.
std::string DataEntry(const TensorProto& proto, std::string_view key) {
  for (const auto& entry : proto.external_data()) {
    if (entry.key() == key) return entry.value();
  }
  return "";
}

}  // namespace

bool IsExternal(const TensorProto& proto) { return proto.data_location() == TensorProto::EXTERNAL; }
std::string LocationOf(const TensorProto& proto) { return DataEntry(proto, "location"); }

PartPlace TensorReader::PlaceOf(const TensorProto& proto, int64_t bytes) const {
  PartPlace place{.location = LocationOf(proto), .offset = 0, .bytes = bytes};
  const std::string offset = DataEntry(proto, "offset"), length = DataEntry(proto, "length");
  const auto refuse = [&](const std::string& reason) {
    throw Error(ErrorCode::kBadModel,
                fmt::format("data in \"{}\", {}", Visible(Shortened(place.location, 256)), reason));
  };
  const auto number = [&](std::string_view name, const std::string& text, int64_t otherwise) {
    if (text.empty()) return otherwise;
    int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value < 0) {
      refuse(fmt::format("at a {} that is no number of bytes: \"{}\"", name, Visible(Shortened(text, 32))));
    }
    return value;
  };
  place.offset = number("offset", offset, 0);
  if (number("length", length, bytes) != bytes) {
    refuse(fmt::format("{} bytes, where its shape needs {}", length, bytes));
  }
  if (parts_ == nullptr) refuse("which is not read here");
  int64_t size = 0;
  try {
    size = parts_->Size(place.location);
  } catch (const Error& error) {
    refuse(error.what());
  }
  if (place.offset > size || bytes > size - place.offset)
    refuse(fmt::format("which ends before it, at {} bytes", size));
  return place;
}

PartPlace TensorReader::Find(const TensorProto& proto, const Shape& shape, const std::string& what) {
  const int64_t bits = OnnxElementBits(proto.data_type());
  if (bits == 0)
    Fail(what, fmt::format("values of type {} are not supported", OnnxTypeName(proto.data_type())));
  try {
    const PartPlace place = PlaceOf(proto, CeilDiv((Checked(ElementCount(shape)) * bits).value(), 8));
    bytes_ = (Checked(bytes_) + place.bytes).value();  // many tensors may name the same bytes
    if (bytes_ > limits_.network_bytes)
      throw Error(ErrorCode::kBadModel,
                  fmt::format("data in other files: more than {} bytes in all", limits_.network_bytes));
    return place;
  } catch (const Error& error) {
    Fail(what, error.what());
  }
}

namespace {

void Fetch(const ModelParts& from, const PartPlace& place, void* to, const std::string& what) {
  try {
    from.Read(place.location, place.offset, {static_cast<std::byte*>(to), static_cast<size_t>(place.bytes)});
  } catch (const Error& error) {
    Fail(what, fmt::format("data in \"{}\", {}", Visible(place.location), error.what()));
  }
}

}  // namespace

Tensor TensorReader::Read(const TensorProto& proto, const std::string& what) {
  return ReadApart(proto, nullptr, {}, what);
}

Tensor TensorReader::ReadApart(const TensorProto& proto, const ModelParts* file, const PartPlace& data,
                               const std::string& what) {
  return ReadAs(ComputedType, proto, file, data, what);
}

Tensor TensorReader::ReadStored(const TensorProto& proto, const std::string& what) {
  return ReadAs([](DataType type) { return type; }, proto, nullptr, {}, what);
}

Tensor TensorReader::ReadAs(DataType (*becomes)(DataType), const TensorProto& proto, const ModelParts* file,
                            const PartPlace& data, const std::string& what) {
  const Shape shape = CheckedShape(proto, data.bytes, limits_, what);
  const NarrowType* const narrow = NarrowTypeOf(proto.data_type());
  const std::optional<DataType> type = TypeOfOnnx(proto.data_type());
  if (!type && narrow == nullptr)
    Fail(what, fmt::format("values of type {} are not supported", OnnxTypeName(proto.data_type())));
  const bool external = IsExternal(proto);
  const PartPlace place = external ? Find(proto, shape, what) : data;
  const ModelParts* const from = external ? parts_ : file;
  const bool elsewhere = external || place.bytes > 0;
  const Layout layout = Layout::Nchw(type ? becomes(*type) : narrow->unpacked);
  if (elsewhere && type && IsStoredAs(proto.data_type(), layout.type()) &&
      place.bytes == PaddedBytes(shape, layout)) {
    Tensor tensor(shape, layout, NewMemory::kAnything);
    Fetch(*from, place, tensor.raw(), what);
    return tensor;
  }
  std::string fetched;
  if (elsewhere) {
    fetched.resize(static_cast<size_t>(place.bytes));
    Fetch(*from, place, fetched.data(), what);
  }
  const std::string& raw = elsewhere ? fetched : proto.raw_data();
  if (narrow != nullptr) return UnpackedTensor(proto, raw, *narrow, shape, what);
  Tensor tensor(shape, layout);
  const Filler filler{proto, raw, what, tensor.size()};
  VisitType(tensor.type(), [&](auto tag) {
    using T = typename decltype(tag)::Type;
    filler.FillAs(tensor.data<T>());
  });
  return tensor;
}

void TensorReader::Embed(TensorProto& proto, const std::string& what) {
  if (!IsExternal(proto)) return;
  const PartPlace place = Find(proto, CheckedShape(proto, 0, limits_, what), what);
  proto.mutable_raw_data()->resize(static_cast<size_t>(place.bytes));
  Fetch(*parts_, place, proto.mutable_raw_data()->data(), what);
  proto.clear_data_location();
  proto.clear_external_data();
}

void SetTensor(const std::string& name, const Tensor& tensor, onnx::TensorProto& proto) {
  proto.set_name(name);
  for (const int64_t size : tensor.shape()) proto.add_dims(size);
  proto.set_data_type(OnnxTypeNumber(tensor.type()));
  proto.set_raw_data(tensor.raw(), static_cast<size_t>(tensor.bytes()));
}

void SetFloatInfo(const std::string& name, const Shape& shape, onnx::ValueInfoProto& proto) {
  proto.set_name(name);
  onnx::TypeProto::Tensor& type = *proto.mutable_type()->mutable_tensor_type();
  type.set_elem_type(onnx::TensorProto::FLOAT);
  type.mutable_shape();  // present also when it has no sizes
  for (const int64_t size : shape) type.mutable_shape()->add_dim()->set_dim_value(size);
}

onnx::ModelProto NewModelProto(const std::string& graph_name, int64_t opset) {
  onnx::ModelProto model;
  model.set_ir_version(kIrVersion);
  model.set_producer_name("tilesmith");
  model.add_opset_import()->set_version(opset);
  model.mutable_graph()->set_name(graph_name);
  return model;
}

ModelBytes SerializeWithData(onnx::ModelProto model, const DataPlacement& placement) {
  // Bytes of a tensor that stays, shapes and the like, which readers need at once; a page, so that they can
  // map each tensor by itself.
  constexpr size_t kSmall = 1024, kPage = 4096;
  ModelBytes result;
  if (placement.always || static_cast<int64_t>(model.ByteSizeLong()) > placement.largest) {
    std::string data;
    for (TensorProto& tensor : *model.mutable_graph()->mutable_initializer()) {
      if (tensor.float_data_size() > 0) {
        tensor.set_raw_data(tensor.float_data().data(), tensor.float_data_size() * sizeof(float));
        google::protobuf::RepeatedField<float>().Swap(tensor.mutable_float_data());
      }
      if (tensor.raw_data().size() < kSmall) continue;
      data.resize(RoundUp(std::ssize(data), kPage));
      const std::pair<const char*, std::string> entries[] = {
          {"location", placement.location},
          {"offset", fmt::format("{}", data.size())},
          {"length", fmt::format("{}", tensor.raw_data().size())}};
      data += tensor.raw_data();
      std::string().swap(*tensor.mutable_raw_data());  // clearing would keep the memory
      tensor.clear_raw_data();
      tensor.set_data_location(TensorProto::EXTERNAL);
      for (const auto& [key, value] : entries) {
        auto* const entry = tensor.add_external_data();
        entry->set_key(key);
        entry->set_value(value);
      }
    }
    if (!data.empty()) result.parts = OwnPart(placement.location, std::move(data));
  }
  result.bytes = Serialize(model);
  return result;
}

std::string Serialize(const onnx::ModelProto& model) {
  const size_t bytes = model.ByteSizeLong();
  if (bytes > INT_MAX) {
    throw Error(ErrorCode::kUsage,
                fmt::format("{} would be {} bytes; ONNX files end at 2 GiB", model.graph().name(), bytes));
  }
  return model.SerializeAsString();
}

}  // namespace tilesmith
