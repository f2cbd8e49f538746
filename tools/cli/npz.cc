#include "tools/cli/npz.h"

#include <fmt/format.h>
#include <zip.h>

#include <algorithm>
#include <memory>

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

}  // namespace tilesmith
