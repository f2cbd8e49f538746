#include "ops/onnx/tensor_proto.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <climits>
#include <cmath>
#include <cstring>

#include "layouts/base/error.h"

namespace tilesmith {
namespace {

constexpr int64_t kIrVersion = 7;  // of ONNX 1.8, whose opset is 13

using onnx::TensorProto;

[[noreturn]] void Fail(const std::string& what, const std::string& reason) {
  throw Error(ErrorCode::kBadModel, fmt::format("{}: {}", what, reason));
}

float FromHalf(uint16_t bits) {
  const int exponent = bits >> 10 & 0x1f;
  const int mantissa = bits & 0x3ff;
  float magnitude;
  if (exponent == 0x1f) {
    magnitude = mantissa == 0 ? INFINITY : NAN;
  } else if (exponent == 0) {
    magnitude = std::ldexp(static_cast<float>(mantissa), -24);
  } else {
    magnitude = std::ldexp(static_cast<float>(mantissa + 0x400), exponent - 25);
  }
  return bits & 0x8000 ? -magnitude : magnitude;
}

float FromBfloat(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

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
  template <typename Stored, typename Field>
  void FillInts(const Field& field, Tensor& out) const {
    Fill<Stored>(field, out.ints(), [](Stored value) { return static_cast<int64_t>(value); });
  }
};

bool IsFloat(int32_t type) {
  return type == TensorProto::FLOAT || type == TensorProto::DOUBLE || type == TensorProto::FLOAT16 ||
         type == TensorProto::BFLOAT16;
}

}  // namespace

std::string ElementTypeName(int32_t type) {
  return onnx::TensorProto_DataType_IsValid(type)
             ? onnx::TensorProto_DataType_Name(static_cast<onnx::TensorProto_DataType>(type))
             : fmt::format("element type {}", type);
}

Tensor TensorFromProto(const TensorProto& proto, const std::string& what) {
  if (proto.data_location() == TensorProto::EXTERNAL) {
    std::string file;
    for (const auto& entry : proto.external_data()) {
      if (entry.key() == "location") file = entry.value();
    }
    Fail(what,
         fmt::format("its data lies in another file (\"{}\"); only models in one file are supported", file));
  }
  const Shape shape = CheckedShape(proto, what);
  Tensor tensor(shape, Layout::Nchw(), IsFloat(proto.data_type()) ? DataType::kF32 : DataType::kI64);
  const Filler filler{proto, what, tensor.size()};
  const auto to_float = [](auto value) { return static_cast<float>(value); };
  switch (proto.data_type()) {
    case TensorProto::FLOAT:
      filler.Fill<float>(proto.float_data(), tensor.floats(), to_float);
      break;
    case TensorProto::DOUBLE:
      filler.Fill<double>(proto.double_data(), tensor.floats(), to_float);
      break;
    case TensorProto::FLOAT16:
      filler.Fill<uint16_t>(proto.int32_data(), tensor.floats(), FromHalf);
      break;
    case TensorProto::BFLOAT16:
      filler.Fill<uint16_t>(proto.int32_data(), tensor.floats(), FromBfloat);
      break;
    case TensorProto::INT64:
      filler.FillInts<int64_t>(proto.int64_data(), tensor);
      break;
    case TensorProto::INT32:
      filler.FillInts<int32_t>(proto.int32_data(), tensor);
      break;
    case TensorProto::INT16:
      filler.FillInts<int16_t>(proto.int32_data(), tensor);
      break;
    case TensorProto::INT8:
      filler.FillInts<int8_t>(proto.int32_data(), tensor);
      break;
    case TensorProto::UINT16:
      filler.FillInts<uint16_t>(proto.int32_data(), tensor);
      break;
    case TensorProto::UINT8:
    case TensorProto::BOOL:
      filler.FillInts<uint8_t>(proto.int32_data(), tensor);
      break;
    case TensorProto::UINT32:
      filler.FillInts<uint32_t>(proto.uint64_data(), tensor);
      break;
    case TensorProto::UINT64:
      filler.FillInts<uint64_t>(proto.uint64_data(), tensor);
      break;
    default:
      Fail(what, fmt::format("values of type {} are not supported", ElementTypeName(proto.data_type())));
  }
  return tensor;
}

void SetTensor(const std::string& name, const Tensor& tensor, onnx::TensorProto& proto) {
  proto.set_name(name);
  for (const int64_t size : tensor.shape()) proto.add_dims(size);
  const bool is_float = tensor.type() == DataType::kF32;
  proto.set_data_type(is_float ? onnx::TensorProto::FLOAT : onnx::TensorProto::INT64);
  const void* data = is_float ? static_cast<const void*>(tensor.floats()) : tensor.ints();
  proto.set_raw_data(data, static_cast<size_t>(tensor.size()) * (is_float ? sizeof(float) : sizeof(int64_t)));
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
