#include "ops/onnx/model_parts.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <utility>
#include <vector>

#include "layouts/base/error.h"

namespace tilesmith {
namespace {

[[noreturn]] void Refuse(const std::string& reason) { throw Error(ErrorCode::kBadModel, reason); }

// A file descriptor.
class Descriptor {
 public:
  explicit Descriptor(int value = -1) : value_(value) {}
  Descriptor(Descriptor&& other) noexcept : value_(std::exchange(other.value_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }
  ~Descriptor() {
    if (value_ >= 0) close(value_);
  }
  int value() const { return value_; }

 private:
  int value_;
};

// The steps from the model's folder to the file. Without symbolic links on the way, which are refused, a path
// means what its text says.
std::vector<std::string> StepsOf(const std::string& location) {
  if (location.empty()) Refuse("which says no name");
  if (location.find('\0') != std::string::npos) Refuse("which is no path: it holds a zero byte");
  const std::filesystem::path path(location);
  if (path.is_absolute()) Refuse("an absolute path: only files in the model's folder are read");
  std::vector<std::string> steps;
  for (const std::filesystem::path& step : path) {
    if (step.empty() || step == ".") continue;
    if (step != "..") {
      steps.push_back(step.string());
    } else if (steps.empty()) {
      Refuse("which lies outside of the model's folder");
    } else {
      steps.pop_back();
    }
  }
  if (steps.empty()) Refuse("which is the model's folder");
  return steps;
}

// A file that is open, and the bytes that it had then.
struct File {
  Descriptor descriptor;
  int64_t bytes = 0;

  void Read(int64_t offset, std::span<std::byte> to) const {
    while (!to.empty()) {
      const ssize_t count = pread(descriptor.value(), to.data(), to.size(), offset);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) Refuse(fmt::format("which cannot be read: {}", std::strerror(errno)));
      if (count == 0) Refuse("which became shorter while it was read");
      to = to.subspan(static_cast<size_t>(count));
      offset += count;
    }
  }
};

class OneFile : public ModelParts {
 public:
  explicit OneFile(File file) : file_(std::move(file)) {}
  int64_t Size(const std::string&) const override { return file_.bytes; }
  void Read(const std::string&, int64_t offset, std::span<std::byte> to) const override {
    file_.Read(offset, to);
  }

 private:
  const File file_;
};

class FolderParts : public ModelParts {
 public:
  explicit FolderParts(std::string folder) : folder_(std::move(folder)) {}

  int64_t Size(const std::string& location) const override { return Find(location).bytes; }

  void Read(const std::string& location, int64_t offset, std::span<std::byte> to) const override {
    Find(location).Read(offset, to);
  }

 private:
  // The file stays where it is as long as the object lives.
  const File& Find(const std::string& location) const {
    const std::lock_guard lock(mutex_);
    const auto known = files_.find(location);
    return known != files_.end() ? known->second : files_.emplace(location, Open(location)).first->second;
  }

  File Open(const std::string& location) const {
    const std::vector<std::string> steps = StepsOf(location);
    Descriptor at(open(folder_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    for (size_t i = 0; i < steps.size(); ++i) {
      struct stat status {};
      const char* const step = steps[i].c_str();
      if (at.value() < 0 || fstatat(at.value(), step, &status, AT_SYMLINK_NOFOLLOW) != 0) {
        Refuse(errno == ENOENT || errno == ENOTDIR
                   ? "which is not there"
                   : fmt::format("which cannot be read: {}", std::strerror(errno)));
      }
      if (S_ISLNK(status.st_mode)) Refuse("which is a symbolic link, or behind one");
      const bool last = i + 1 == steps.size();
      if (last && S_ISDIR(status.st_mode)) Refuse("which is a folder");
      if (last && !S_ISREG(status.st_mode)) Refuse("which is no regular file");
      // Should another have taken its place since, a link is not followed, and a pipe does not wait.
      at = Descriptor(
          openat(at.value(), step,
                 O_NOFOLLOW | O_CLOEXEC | (last ? O_RDONLY | O_NONBLOCK | O_NOCTTY : O_PATH | O_DIRECTORY)));
    }
    struct stat status {};
    if (at.value() < 0 || fstat(at.value(), &status) != 0)
      Refuse(errno == ENOTDIR ? "which is not there"
                              : fmt::format("which cannot be read: {}", std::strerror(errno)));
    if (!S_ISREG(status.st_mode)) Refuse("which is no regular file");
    return {std::move(at), status.st_size};
  }

  const std::string folder_;
  mutable std::mutex mutex_;
  mutable std::map<std::string, File> files_;
};

class MemoryParts : public ModelParts {
 public:
  explicit MemoryParts(std::map<std::string, std::span<const std::byte>> parts,
                       std::shared_ptr<const std::string> held = nullptr)
      : parts_(std::move(parts)), held_(std::move(held)) {}

  int64_t Size(const std::string& location) const override { return std::ssize(Find(location)); }
  void Read(const std::string& location, int64_t offset, std::span<std::byte> to) const override {
    if (!to.empty()) std::memcpy(to.data(), Find(location).data() + offset, to.size());
  }

 private:
  std::span<const std::byte> Find(const std::string& location) const {
    const auto found = parts_.find(location);
    if (found == parts_.end()) Refuse("which is not among the parts that were given");
    return found->second;
  }

  const std::map<std::string, std::span<const std::byte>> parts_;
  const std::shared_ptr<const std::string> held_;  // what they lie in, where nobody else holds it
};

}  // namespace

ModelPartsPtr FilesBeside(const std::string& model_path) {
  const std::filesystem::path folder = std::filesystem::path(model_path).parent_path();
  return std::make_shared<FolderParts>(folder.empty() ? "." : folder.string());
}

ModelPartsPtr WholeFile(const std::string& path) {
  struct stat status {};
  // A pipe is not touched: opening and closing one takes its writer's reader away.
  if (stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return nullptr;
  Descriptor file(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (file.value() < 0 || fstat(file.value(), &status) != 0 || !S_ISREG(status.st_mode)) return nullptr;
  return std::make_shared<OneFile>(File{std::move(file), status.st_size});
}

ModelPartsPtr PartsInMemory(std::map<std::string, std::span<const std::byte>> parts) {
  return std::make_shared<MemoryParts>(std::move(parts));
}

ModelPartsPtr OwnPart(const std::string& location, std::string bytes) {
  auto held = std::make_shared<const std::string>(std::move(bytes));
  const std::map parts = {std::pair(location, std::as_bytes(std::span(*held)))};
  return std::make_shared<MemoryParts>(parts, std::move(held));
}

}  // namespace tilesmith
