#include "tools/cli/npy.h"

#include <fmt/format.h>

#include <array>
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
constexpr uint32_t kLocalHeader = 0x04034b50, kCentralHeader = 0x02014b50, kEndOfCentral = 0x06054b50;
constexpr size_t kLocalHeaderBytes = 30, kCentralHeaderBytes = 46, kEndOfCentralBytes = 22;

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

// CRC-32 of zip (ISO 3309), reflected polynomial 0xEDB88320.
uint32_t Crc32(std::string_view bytes) {
  static const auto table = [] {
    std::array<uint32_t, 256> entries{};
    for (uint32_t i = 0; i < 256; ++i) {
      uint32_t c = i;
      for (int bit = 0; bit < 8; ++bit) c = (c >> 1) ^ (c & 1 ? 0xEDB88320u : 0);
      entries[i] = c;
    }
    return entries;
  }();
  uint32_t crc = ~0u;
  for (char byte : bytes) crc = table[(crc ^ uint8_t(byte)) & 0xff] ^ (crc >> 8);
  return ~crc;
}

// Fields that a local and a central header share, from "version needed" to the two name lengths.
void StoreEntryFields(std::string& bytes, const std::string& name, std::string_view contents, uint32_t crc) {
  constexpr uint16_t kVersion = 20, kStored = 0, kTime = 0, kFirstOfJanuary1980 = 0x21;
  Store(bytes, kVersion);
  Store(bytes, uint16_t(0));  // flags
  Store(bytes, kStored);
  Store(bytes, kTime);
  Store(bytes, kFirstOfJanuary1980);
  Store(bytes, crc);
  Store(bytes, uint32_t(contents.size()));
  Store(bytes, uint32_t(contents.size()));
  Store(bytes, uint16_t(name.size()));
  Store(bytes, uint16_t(0));  // extra field
}

NamedTensor ReadEntry(std::string_view bytes, size_t central, const std::string& path) {
  const auto method = Load<uint16_t>(bytes, central + 10);
  const size_t size = Load<uint32_t>(bytes, central + 20);
  const size_t name_bytes = Load<uint16_t>(bytes, central + 28);
  const size_t local = Load<uint32_t>(bytes, central + 42);
  if (central + kCentralHeaderBytes + name_bytes > bytes.size()) Reject(path, "the zip directory is damaged");
  std::string name(bytes.substr(central + kCentralHeaderBytes, name_bytes));
  if (method != 0) {
    Reject(path, fmt::format("entry {} is compressed; only what numpy.savez writes can be read, not "
                             "numpy.savez_compressed",
                             name));
  }
  if (local + kLocalHeaderBytes > bytes.size() || Load<uint32_t>(bytes, local) != kLocalHeader) {
    Reject(path, "the zip directory is damaged");
  }
  const size_t data =
      local + kLocalHeaderBytes + Load<uint16_t>(bytes, local + 26) + Load<uint16_t>(bytes, local + 28);
  if (data + size > bytes.size()) Reject(path, fmt::format("entry {} is cut short", name));
  Tensor tensor = ParseNpy(bytes.substr(data, size), fmt::format("{}: {}", path, name));
  if (name.ends_with(".npy")) name.resize(name.size() - 4);
  return {std::move(name), std::move(tensor)};
}

}  // namespace

Tensor ReadNpy(const std::string& path) { return ParseNpy(ReadTextFile(path), path); }

std::vector<NamedTensor> ReadNpz(const std::string& path) {
  const std::string bytes = ReadTextFile(path);
  std::string end_mark;
  Store(end_mark, kEndOfCentral);
  const size_t end = bytes.rfind(end_mark);
  if (end == std::string::npos || end + kEndOfCentralBytes > bytes.size()) Reject(path, "not a .npz archive");
  const size_t entries = Load<uint16_t>(bytes, end + 10);
  size_t at = Load<uint32_t>(bytes, end + 16);
  std::vector<NamedTensor> tensors;
  for (size_t i = 0; i < entries; ++i) {
    if (at + kCentralHeaderBytes > bytes.size() || Load<uint32_t>(bytes, at) != kCentralHeader) {
      Reject(path, "the zip directory is damaged");
    }
    tensors.push_back(ReadEntry(bytes, at, path));
    at += kCentralHeaderBytes + Load<uint16_t>(bytes, at + 28) + Load<uint16_t>(bytes, at + 30) +
          Load<uint16_t>(bytes, at + 32);
  }
  return tensors;
}

void WriteNpy(const std::string& path, const Tensor& tensor) { WriteTextFile(path, FormatNpy(tensor)); }

void WriteNpz(const std::string& path, const std::vector<NamedTensor>& tensors) {
  std::string bytes, directory;
  for (const auto& [name, tensor] : tensors) {
    const std::string file = name + ".npy";
    const std::string contents = FormatNpy(tensor);
    const uint32_t crc = Crc32(contents);
    const auto offset = uint32_t(bytes.size());
    Store(bytes, kLocalHeader);
    StoreEntryFields(bytes, file, contents, crc);
    bytes += file + contents;

    Store(directory, kCentralHeader);
    Store(directory, uint16_t(20));  // made by
    StoreEntryFields(directory, file, contents, crc);
    directory.append(10, '\0');  // comment, disk, attributes
    Store(directory, offset);
    directory += file;
  }
  if (bytes.size() + directory.size() > UINT32_MAX) Reject(path, "archives above 4 GiB are not supported");
  const auto count = uint16_t(tensors.size());
  const auto directory_at = uint32_t(bytes.size());
  bytes += directory;
  Store(bytes, kEndOfCentral);
  Store(bytes, uint32_t(0));  // disks
  Store(bytes, count);
  Store(bytes, count);
  Store(bytes, uint32_t(directory.size()));
  Store(bytes, directory_at);
  Store(bytes, uint16_t(0));  // comment
  WriteTextFile(path, bytes);
}

}  // namespace tilesmith
