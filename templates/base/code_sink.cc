#include "templates/base/code_sink.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cctype>
#include <filesystem>
#include <fstream>

#include "layouts/base/error.h"

namespace tilesmith {
namespace {

std::string FileName(size_t index, const std::string& name) {
  std::string file = fmt::format("{:03}-{}.bin", index, name);
  for (char& c : file) {
    const bool safe = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '.';
    if (!safe) c = '_';
  }
  return file;
}

}  // namespace

void WriteCodeDump(const std::string& directory, std::span<const CodeBlob> blobs) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  for (size_t i = 0; i < blobs.size(); ++i) {
    const std::filesystem::path path = std::filesystem::path(directory) / FileName(i, blobs[i].name);
    std::ofstream file(path, std::ios::binary);
    file.write(reinterpret_cast<const char*>(blobs[i].bytes.data()),
               static_cast<std::streamsize>(blobs[i].bytes.size()));
    if (!file) throw Error(ErrorCode::kEnvironment, fmt::format("cannot write {}", path.string()));
  }
}

void WritePerfMap(std::span<const CodeBlob> blobs) {
  const std::string path = fmt::format("/tmp/perf-{}.map", getpid());
  std::ofstream file(path, std::ios::app);
  for (const CodeBlob& blob : blobs) {
    file << fmt::format("{:x} {:x} {}\n", reinterpret_cast<uintptr_t>(blob.bytes.data()), blob.bytes.size(),
                        blob.name);
  }
  if (!file) throw Error(ErrorCode::kEnvironment, fmt::format("cannot write {}", path));
}

}  // namespace tilesmith
