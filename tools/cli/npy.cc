#include "tools/cli/npy.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <string_view>

#include "layouts/base/check.h"
#include "layouts/base/text_file.h"

namespace tilesmith {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::string_view kNpyMagic = "\x93NUMPY";

[[noreturn]] void Reject(const std::string& source, const std::string& reason) {
  throw Error(ErrorCode::kUsage, fmt::format("{}: {}", source, reason));
}

template <typename T>
T Load(std::string_view bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof(value));
  return value;
}

template <typename T>
void Store(std::string& bytes, T value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

// The text after 'key': in the header, which is a Python dict literal.
std::string_view HeaderField(std::string_view header, std::string_view key, const std::string& source) {
  const size_t at = header.find(fmt::format("'{}':", key));
  if (at == std::string_view::npos) Reject(source, fmt::format("no '{}' in the .npy header", key));
  std::string_view rest = header.substr(at + key.size() + 3);
  rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  return rest;
}

Shape ParseShape(std::string_view text, const std::string& source) {
  Shape shape;
  const size_t close = text.find(')');
  if (!text.starts_with('(') || close == std::string_view::npos) Reject(source, "malformed .npy shape");
  for (const char *at = text.data() + 1, *end = text.data() + close; at < end;) {
    int64_t size = 0;
    const auto [after, error] = std::from_chars(at, end, size);
    if (error != std::errc() || size < 0) Reject(source, "malformed .npy shape");
    shape.push_back(size);
    at = after;
    while (at < end && (*at == ',' || *at == ' ')) ++at;
  }
  return shape;
}

struct ElementType {
  std::string_view descr;
  DataType type;
};

// NumPy has no bfloat16; ml_dtypes, which adds it, writes it as these.
constexpr ElementType kElementTypes[] = {
    {"<f4", DataType::kF32}, {"<f2", DataType::kF16}, {"<V2", DataType::kBf16}, {"|i1", DataType::kI8},
    {"<i2", DataType::kI16}, {"<i4", DataType::kI32}, {"<i8", DataType::kI64},  {"|u1", DataType::kU8},
    {"<u2", DataType::kU16}, {"<u4", DataType::kU32}, {"<u8", DataType::kU64},  {"|b1", DataType::kBool},
};
constexpr std::string_view kDoubles = "<f8";

std::string_view DescrOf(DataType type) {
  const auto* const found = std::ranges::find(kElementTypes, type, &ElementType::type);
  TILESMITH_CHECK(found != std::end(kElementTypes), "{}", DataTypeName(type));
  return found->descr;
}

void CheckDataBytes(std::string_view data, const Shape& shape, int64_t element_bytes,
                    const std::string& source) {
  const int64_t needed = (Checked(ElementCount(shape)) * element_bytes).value();
  if (static_cast<int64_t>(data.size()) == needed) return;
  Reject(source, fmt::format("{} needs {} bytes of data, the file has {}", ShapeToString(shape), needed,
                             data.size()));
}

Tensor FromDoubles(std::string_view data, const Shape& shape, const std::string& source) {
  CheckDataBytes(data, shape, sizeof(double), source);
  Tensor tensor(shape);
  for (int64_t i = 0; i < tensor.size(); ++i)
    tensor.floats()[i] = static_cast<float>(Load<double>(data, static_cast<size_t>(i) * sizeof(double)));
  return tensor;
}

Tensor FromBytes(std::string_view data, const Shape& shape, DataType type, const std::string& source) {
  CheckDataBytes(data, shape, ElementBytes(type), source);
  Tensor tensor(shape, Layout::Nchw(type));
  if (data.empty()) return tensor;
  if (type == DataType::kBool) {  // a byte that is neither 0 nor 1 is no bool
    std::ranges::transform(data, tensor.data<bool>(), [](char byte) { return byte != 0; });
  } else {
    std::memcpy(tensor.raw(), data.data(), data.size());
  }
  return tensor;
}

}  // namespace

Tensor ParseNpy(std::string_view bytes, const std::string& source) {
  if (!bytes.starts_with(kNpyMagic) || bytes.size() < 12) Reject(source, "not a .npy array");
  const bool wide = bytes[6] >= 2;  // from version 2 on the header's length has four bytes
  const size_t header_at = wide ? 12 : 10;
  const size_t header_bytes = wide ? Load<uint32_t>(bytes, 8) : Load<uint16_t>(bytes, 8);
  if (bytes.size() < header_at + header_bytes) Reject(source, "the .npy header is cut short");
  const std::string_view header = bytes.substr(header_at, header_bytes);
  const std::string_view data = bytes.substr(header_at + header_bytes);

  if (!HeaderField(header, "fortran_order", source).starts_with("False")) {
    Reject(source,
           "arrays in Fortran order are not supported (numpy.ascontiguousarray makes a copy that is)");
  }
  const Shape shape = ParseShape(HeaderField(header, "shape", source), source);
  const std::string_view descr_field = HeaderField(header, "descr", source);
  if (descr_field.size() < 5) Reject(source, "malformed .npy header");
  const std::string_view descr = descr_field.substr(1, 3);
  if (descr == kDoubles) return FromDoubles(data, shape, source);
  for (const ElementType& element : kElementTypes) {
    if (descr == element.descr) return FromBytes(data, shape, element.type, source);
  }
  Reject(source,
         fmt::format("element type {} is not supported (allowed: little-endian f2, f4, f8, V2 for bfloat16, "
                     "i1, i2, i4, i8, u1, u2, u4, u8, b1)",
                     descr_field.substr(0, descr_field.find(','))));
}

std::string FormatNpy(const Tensor& tensor) {
  TILESMITH_CHECK(tensor.layout().is_nchw());
  std::string shape;
  for (int64_t size : tensor.shape()) shape += fmt::format("{}, ", size);
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}",
                                   DescrOf(tensor.type()), shape);
  constexpr size_t kPreamble = 10, kAlignment = 64;
  header.append((kAlignment - (kPreamble + header.size() + 1) % kAlignment) % kAlignment, ' ');
  header += '\n';
  std::string bytes(kNpyMagic);
  bytes += std::string("\x01\x00", 2);
  Store(bytes, static_cast<uint16_t>(header.size()));
  bytes += header;
  bytes.append(reinterpret_cast<const char*>(tensor.raw()), static_cast<size_t>(tensor.bytes()));
  return bytes;
}

Tensor ReadNpy(const std::string& path) { return ParseNpy(ReadTextFile(path), path); }

void WriteNpy(const std::string& path, const Tensor& tensor) { WriteTextFile(path, FormatNpy(tensor)); }

}  // namespace tilesmith
