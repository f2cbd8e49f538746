#include "ops/onnx/tensor_proto.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <climits>
#include <cstring>

#include "layouts/base/error.h"
#include "ops/base/onnx_type.h"

namespace tilesmith {
namespace {

constexpr int64_t kIrVersion = 7;  // of ONNX 1.8, whose opset is 13

using onnx::TensorProto;

[[noreturn]] void Fail(const std::string& what, const std::string& reason) {
  throw Error(ErrorCode::kBadModel, fmt::format("{}: {}", what, reason));
}

Shape CheckedShape(const TensorProto& proto, const std::string& what) {
  const Shape shape(proto.dims().begin(), proto.dims().end());
  // An element takes at least a byte. Checked before any memory is asked for.
  const bool empty = std::ranges::find(shape, 0) != shape.end();
  const SizeLimits limits{.tensor_elements =
                              empty ? kMaxTensorElements : static_cast<int64_t>(proto.ByteSizeLong())};
  try {
    CheckShape(shape, limits);
  } catch (const Error& error) {
    const bool large = std::ssize(shape) <= kMaxRank && std::ranges::min(shape) >= 0;
    Fail(what, large ? fmt::format("its shape {} needs more values than there are", ShapeToString(shape))
                     : error.what());
  }
  return shape;
}

// Elements are `Stored` in raw_data, and one per entry of the typed field otherwise.
struct Filler {
  const TensorProto& proto;
  const std::string& what;
  int64_t count;

  template <typename Stored, typename Out, typename Field, typename Convert>
  void Fill(const Field& field, Out* out, Convert convert) const {
    const std::string& raw = proto.raw_data();
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

// In `becomes` of the type that it has.
Tensor ReadTensor(const TensorProto& proto, const std::string& what, DataType (*becomes)(DataType)) {
  if (proto.data_location() == TensorProto::EXTERNAL) {
    std::string file;
    for (const auto& entry : proto.external_data()) {
      if (entry.key() == "location") file = entry.value();
    }
    Fail(what,
         fmt::format("its data lies in another file (\"{}\"); only models in one file are supported", file));
  }
  const Shape shape = CheckedShape(proto, what);
  const std::optional<DataType> type = TypeOfOnnx(proto.data_type());
  if (!type) {
    Fail(what, fmt::format("values of type {} are not supported", ElementTypeName(proto.data_type())));
  }
  Tensor tensor(shape, Layout::Nchw(becomes(*type)));
  const Filler filler{proto, what, tensor.size()};
  VisitType(tensor.type(), [&](auto tag) {
    using T = typename decltype(tag)::Type;
    filler.FillAs(tensor.data<T>());
  });
  return tensor;
}

}  // namespace

std::string ElementTypeName(int32_t type) {
  return onnx::TensorProto_DataType_IsValid(type)
             ? onnx::TensorProto_DataType_Name(static_cast<onnx::TensorProto_DataType>(type))
             : fmt::format("element type {}", type);
}

Tensor TensorFromProto(const TensorProto& proto, const std::string& what) {
  return ReadTensor(proto, what, ComputedType);
}

Tensor StoredTensorFromProto(const TensorProto& proto, const std::string& what) {
  return ReadTensor(proto, what, [](DataType type) { return type; });
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

std::string Serialize(const onnx::ModelProto& model) {
  const size_t bytes = model.ByteSizeLong();
  if (bytes > INT_MAX) {
    throw Error(ErrorCode::kUsage,
                fmt::format("{} would be {} bytes; ONNX files end at 2 GiB", model.graph().name(), bytes));
  }
  return model.SerializeAsString();
}

}  // namespace tilesmith
