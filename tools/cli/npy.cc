#include "tools/cli/npy.h"

#include <fmt/format.h>

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

template <typename From, typename To>
void Convert(std::string_view bytes, To* to, int64_t count) {
  // NOLINTNEXTLINE(bugprone-signed-char-misuse): an int8 element is a number, not a character.
  for (int64_t i = 0; i < count; ++i) to[i] = To(Load<From>(bytes, size_t(i) * sizeof(From)));
}

struct ElementType {
  std::string_view descr;
  size_t bytes;
  DataType type;
  void (*to_f32)(std::string_view, float*, int64_t);
  void (*to_i64)(std::string_view, int64_t*, int64_t);
};

constexpr ElementType kElementTypes[] = {
    {"<f4", 4, DataType::kF32, Convert<float, float>, nullptr},
    {"<f8", 8, DataType::kF32, Convert<double, float>, nullptr},
    {"<i8", 8, DataType::kI64, nullptr, Convert<int64_t, int64_t>},
    {"<i4", 4, DataType::kI64, nullptr, Convert<int32_t, int64_t>},
    {"|u1", 1, DataType::kI64, nullptr, Convert<uint8_t, int64_t>},
    {"|i1", 1, DataType::kI64, nullptr, Convert<int8_t, int64_t>},
    {"|b1", 1, DataType::kI64, nullptr, Convert<uint8_t, int64_t>},
};

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
  for (const ElementType& element : kElementTypes) {
    if (descr != element.descr) continue;
    const int64_t count = ElementCount(shape);
    if (data.size() != size_t(count) * element.bytes) {
      Reject(source, fmt::format("{} needs {} bytes of data, the file has {}", ShapeToString(shape),
                                 size_t(count) * element.bytes, data.size()));
    }
    Tensor tensor(shape, Layout::Nchw(), element.type);
    if (element.to_f32) element.to_f32(data, tensor.floats(), count);
    if (element.to_i64) element.to_i64(data, tensor.ints(), count);
    return tensor;
  }
  Reject(source,
         fmt::format("element type {} is not supported (allowed: little-endian f4, f8, i1, i4, i8, u1, "
                     "b1)",
                     descr_field.substr(0, descr_field.find(','))));
}

std::string FormatNpy(const Tensor& tensor) {
  TILESMITH_CHECK(tensor.layout().is_nchw());
  const bool floats = tensor.type() == DataType::kF32;
  std::string shape;
  for (int64_t size : tensor.shape()) shape += fmt::format("{}, ", size);
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}",
                                   floats ? "<f4" : "<i8", shape);
  constexpr size_t kPreamble = 10, kAlignment = 64;
  header.append((kAlignment - (kPreamble + header.size() + 1) % kAlignment) % kAlignment, ' ');
  header += '\n';
  std::string bytes(kNpyMagic);
  bytes += std::string("\x01\x00", 2);
  Store(bytes, uint16_t(header.size()));
  bytes += header;
  const size_t count = size_t(tensor.size());
  if (floats) {
    bytes.append(reinterpret_cast<const char*>(tensor.floats()), count * sizeof(float));
  } else {
    bytes.append(reinterpret_cast<const char*>(tensor.ints()), count * sizeof(int64_t));
  }
  return bytes;
}

Tensor ReadNpy(const std::string& path) { return ParseNpy(ReadTextFile(path), path); }

void WriteNpy(const std::string& path, const Tensor& tensor) { WriteTextFile(path, FormatNpy(tensor)); }

}  // namespace tilesmith
