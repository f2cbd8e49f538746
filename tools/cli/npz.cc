#include "tools/cli/npz.h"

#include <fmt/format.h>
#include <zip.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <memory>
#include <string_view>

#include "layouts/base/check.h"
#include "layouts/base/error.h"
#include "layouts/base/text_file.h"

namespace tilesmith {
namespace {

constexpr uint64_t kMaxEntryBytes = uint64_t{1} << 32, kMaxBytes = uint64_t{1} << 33;

[[noreturn]] void RejectArchive(const std::string& source, const std::string& reason) {
  throw Error(ErrorCode::kUsage, fmt::format("{}: {}", source, reason));
}

struct ZipError : zip_error_t {
  ZipError() { zip_error_init(this); }
  ~ZipError() { zip_error_fini(this); }
  ZipError(const ZipError&) = delete;
  ZipError& operator=(const ZipError&) = delete;
};

// An archive in memory. Nothing is written back before Close.
class Archive {
 public:
  Archive(const std::string& path, std::string_view bytes, int flags) : path_(path) {
    ZipError error;
    source_ = zip_source_buffer_create(bytes.data(), bytes.size(), 0, &error);
    if (source_ != nullptr) zip_ = zip_open_from_source(source_, flags, &error);
    if (zip_ == nullptr) {
      zip_source_free(source_);
      RejectArchive(path_, fmt::format("not a .npz archive ({})", zip_error_strerror(&error)));
    }
    zip_source_keep(source_);
  }
  ~Archive() {
    if (zip_ != nullptr) zip_discard(zip_);
    zip_source_free(source_);
  }
  Archive(const Archive&) = delete;
  Archive& operator=(const Archive&) = delete;

  std::vector<NamedTensor> Read() const {
    std::vector<NamedTensor> tensors;
    const auto entries = static_cast<zip_uint64_t>(zip_get_num_entries(zip_, 0));
    tensors.reserve(entries);
    zip_uint64_t bytes = 0;  // of all, as the directory says
    for (zip_uint64_t i = 0; i < entries; ++i) {
      zip_stat_t stat;
      if (zip_stat_index(zip_, i, 0, &stat) == 0) bytes += std::min<zip_uint64_t>(stat.size, kMaxBytes);
      if (bytes > kMaxBytes) RejectArchive(path_, fmt::format("has more than {} bytes in all", kMaxBytes));
    }
    for (zip_uint64_t i = 0; i < entries; ++i) tensors.push_back(ReadEntry(i));
    return tensors;
  }

  // `contents` must outlive Close.
  void Add(const std::string& name, std::string_view contents) {
    constexpr zip_uint16_t kFirstOfJanuary1980 = 0x21;
    zip_source_t* const source = zip_source_buffer(zip_, contents.data(), contents.size(), 0);
    const zip_int64_t index = zip_file_add(zip_, name.c_str(), source, ZIP_FL_ENC_UTF_8);
    if (index < 0) zip_source_free(source);
    const auto added = static_cast<zip_uint64_t>(index);
    if (index < 0 || zip_set_file_compression(zip_, added, ZIP_CM_STORE, 0) != 0 ||
        zip_file_set_dostime(zip_, added, 0, kFirstOfJanuary1980, 0) != 0) {
      RejectArchive(path_, fmt::format("entry {} cannot be added: {}", name, zip_strerror(zip_)));
    }
  }

  // The archive's bytes.
  std::string Close() {
    if (zip_close(zip_) != 0) RejectArchive(path_, fmt::format("cannot be written: {}", zip_strerror(zip_)));
    zip_ = nullptr;
    zip_stat_t stat;
    std::string bytes;
    if (zip_source_stat(source_, &stat) == 0 && zip_source_open(source_) == 0) {
      bytes.resize(stat.size);
      const zip_int64_t got = zip_source_read(source_, bytes.data(), bytes.size());
      zip_source_close(source_);
      if (got == static_cast<zip_int64_t>(bytes.size())) return bytes;
    }
    RejectArchive(path_, fmt::format("cannot be written: {}", zip_error_strerror(zip_source_error(source_))));
  }

 private:
  NamedTensor ReadEntry(zip_uint64_t index) const {
    zip_stat_t stat;
    if (zip_stat_index(zip_, index, 0, &stat) != 0 || stat.name == nullptr) {
      RejectArchive(path_, fmt::format("the zip directory is damaged: {}", zip_strerror(zip_)));
    }
    std::string name = stat.name;
    const std::string source = fmt::format("{}: {}", path_, name);
    if (stat.encryption_method != ZIP_EM_NONE) RejectArchive(source, "is encrypted");
    if (stat.comp_method != ZIP_CM_STORE && stat.comp_method != ZIP_CM_DEFLATE) {
      RejectArchive(source,
                    fmt::format("is packed by method {}; only stored and deflated entries can be read",
                                stat.comp_method));
    }
    if (stat.size > kMaxEntryBytes) {
      RejectArchive(source, fmt::format("has {} bytes, an entry has at most {}", stat.size, kMaxEntryBytes));
    }
    Tensor tensor = ParseNpy(Contents(index, stat.size, source), source);
    if (name.ends_with(".npy")) name.resize(name.size() - 4);
    return {std::move(name), std::move(tensor)};
  }

  // Grows with what is there, since `size` is only what the directory says.
  std::string Contents(zip_uint64_t index, zip_uint64_t size, const std::string& source) const {
    constexpr size_t kStep = size_t{1} << 20;
    const std::unique_ptr<zip_file_t, int (*)(zip_file_t*)> file(zip_fopen_index(zip_, index, 0), zip_fclose);
    if (file == nullptr) RejectArchive(source, zip_strerror(zip_));
    std::string contents;
    while (contents.size() < size) {
      const size_t known = contents.size();
      contents.resize(known + std::min<size_t>(kStep, size - known));
      const zip_int64_t got = zip_fread(file.get(), contents.data() + known, contents.size() - known);
      if (got <= 0) RejectArchive(source, got == 0 ? "is cut short" : zip_file_strerror(file.get()));
      contents.resize(known + static_cast<size_t>(got));
    }
    char beyond = 0;  // reading the end compares the checksum
    if (zip_fread(file.get(), &beyond, 1) != 0) RejectArchive(source, zip_file_strerror(file.get()));
    return contents;
  }

  const std::string& path_;
  zip_source_t* source_ = nullptr;
  zip_t* zip_ = nullptr;
};

}  // namespace

std::vector<NamedTensor> ReadNpz(const std::string& path) {
  const std::string bytes = ReadTextFile(path);
  if (bytes.empty()) RejectArchive(path, "not a .npz archive (the file is empty)");
  return Archive(path, bytes, ZIP_RDONLY).Read();
}

void WriteNpz(const std::string& path, const std::vector<NamedTensor>& tensors) {
  std::vector<std::string> contents;
  contents.reserve(tensors.size());
  for (const auto& [name, tensor] : tensors) contents.push_back(FormatNpy(tensor));
  Archive archive(path, "", ZIP_CREATE | ZIP_TRUNCATE);
  for (size_t i = 0; i < tensors.size(); ++i) archive.Add(tensors[i].first + ".npy", contents[i]);
  WriteTextFile(path, archive.Close());
}

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
