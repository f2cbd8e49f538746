#include "templates/cuda_device/modules.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "layouts/base/error.h"
#include "layouts/base/stable_hash.h"
#include "layouts/base/text_file.h"
#include "layouts/base/thread_team.h"
#include "templates/cuda_device/driver.h"

namespace tilesmith::cuda {

std::string Compile(const std::string& text, const std::string& name, int compute) {
  const Nvrtc& nvrtc = LoadedNvrtc();
  const auto check = [&](int result) {
    if (result != kSuccess)
      throw Error(ErrorCode::kInternal, fmt::format("NVRTC on {}: {}", name, nvrtc.error_string(result)));
  };
  CompilationHandle program = nullptr;
  check(nvrtc.create(&program, text.c_str(), "kernels.cu", 0, nullptr, nullptr));
  const std::unique_ptr<CompilationHandle, int (*)(CompilationHandle*)> owner(&program, nvrtc.destroy);
  const std::string arch = fmt::format("-arch=sm_{}", compute);
  const std::array<const char*, 2> options = {arch.c_str(), "-std=c++17"};
  if (const int result = nvrtc.compile(program, static_cast<int>(options.size()), options.data());
      result != kSuccess) {
    size_t bytes = 0;
    nvrtc.log_bytes(program, &bytes);
    std::string log(bytes, '\0');
    if (bytes > 0) nvrtc.log(program, log.data());
    throw Error(ErrorCode::kInternal,
                fmt::format("NVRTC on {}: {}: {}", name, nvrtc.error_string(result), log.substr(0, 2000)));
  }
  size_t bytes = 0;
  check(nvrtc.cubin_bytes(program, &bytes));
  std::string cubin(bytes, '\0');
  check(nvrtc.cubin(program, cubin.data()));
  return cubin;
}

namespace {

namespace fs = std::filesystem;

// A key of all that the result depends on.
std::string KeyOf(const std::string& text, int compute) {
  int major = 0, minor = 0;
  LoadedNvrtc().version(&major, &minor);
  StableHash hash, backwards;
  for (StableHash* one : {&hash, &backwards})
    for (const int64_t value : {compute, major, minor}) one->Add(value);
  hash.Add(text);
  backwards.Add(std::string(text.rbegin(), text.rend()));
  return fmt::format("{:016x}{:016x}", hash.value(), backwards.value());
}

// None that others could write to.
std::optional<fs::path> KeptFolder() {
  std::error_code error;
  const fs::path folder = fs::temp_directory_path(error) / fmt::format("tilesmith-cubins-{}", geteuid());
  struct stat found = {};
  mkdir(folder.c_str(), S_IRWXU);
  const bool own = !error && lstat(folder.c_str(), &found) == 0 && S_ISDIR(found.st_mode) &&
                   found.st_uid == geteuid() && (found.st_mode & (S_IWGRP | S_IWOTH)) == 0;
  return own ? std::optional(folder) : std::nullopt;
}

// "" where none is kept, or it cannot be read.
std::string KeptAt(const fs::path& path) {
  std::error_code error;
  if (!fs::exists(path, error)) return "";
  try {
    return ReadTextFile(path.string());
  } catch (const Error&) {  // it is compiled anew
    return "";
  }
}

void Keep(const fs::path& path, const std::string& cubin) {
  try {
    WriteTextFile(path.string(), cubin);
  } catch (const Error&) {  // a folder that cannot be written keeps nothing
  }
}

// Compiled ahead and not asked for yet. Thread-safe.
class Ahead {
 public:
  void Put(const std::string& key, std::string cubin) {
    const std::lock_guard lock(mutex_);
    cubins_[key] = std::move(cubin);
  }
  // "" where there is none; it has none of the key any more.
  std::string Take(const std::string& key) {
    const std::lock_guard lock(mutex_);
    const auto found = cubins_.extract(key);
    return found ? std::move(found.mapped()) : "";
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::string> cubins_;
};
Ahead& CompiledAhead() {
  static Ahead ahead;
  return ahead;
}

std::string CubinOf(const std::string& text, const std::string& name, int compute, const std::string& key) {
  if (std::string cubin = CompiledAhead().Take(key); !cubin.empty()) return cubin;
  const std::optional<fs::path> folder = KeptFolder();
  if (folder) {
    if (std::string kept = KeptAt(*folder / key); !kept.empty()) return kept;
  }
  std::string cubin = Compile(text, name, compute);
  if (folder) Keep(*folder / key, cubin);
  return cubin;
}

}  // namespace

Module::Module(ContextPtr context, const std::string& cubin, const std::string& name)
    : context_(std::move(context)), name_(name) {
  context_->MakeCurrent();
  context_->driver().Check(context_->driver().module_load(&handle_, cubin.data()), "loading " + name_);
}

Module::~Module() {
  context_->TryMakeCurrent();
  context_->driver().module_unload(handle_);
}

FunctionHandle Module::Function(const std::string& function, int64_t shared_bytes) const {
  const std::string doing = fmt::format("function {} of {}", function, name_);
  const Driver& driver = context_->driver();
  context_->MakeCurrent();
  FunctionHandle handle = nullptr;
  driver.Check(driver.module_function(&handle, handle_, function.c_str()), doing);
  constexpr int64_t kWithoutAsking = 48 << 10;
  if (shared_bytes > kWithoutAsking) {
    driver.Check(driver.function_set(handle, kDynamicSharedBytes, static_cast<int>(shared_bytes)),
                 fmt::format("{} bytes of shared memory for {}", shared_bytes, doing));
  }
  return handle;
}

std::shared_ptr<const Module> CompiledModule(const ContextPtr& context, const std::string& text,
                                             const std::string& name) {
  static std::mutex mutex;
  static std::map<std::string, std::weak_ptr<const Module>> loaded;
  const std::string key = KeyOf(text, context->target().compute);
  {
    const std::lock_guard lock(mutex);
    if (auto known = loaded[key].lock()) return known;
  }
  auto compiled =
      std::make_shared<const Module>(context, CubinOf(text, name, context->target().compute, key), name);
  const std::lock_guard lock(mutex);
  std::erase_if(loaded, [](const auto& entry) { return entry.second.expired(); });
  loaded[key] = compiled;
  return compiled;
}

void CompileAhead(const ContextPtr& context, size_t count,
                  const std::function<std::string(size_t)>& text_of) {
  const int compute = context->target().compute;
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t i = next++; i < count; i = next++) {
      try {
        const std::string text = text_of(i);
        if (text.empty()) continue;
        const std::string key = KeyOf(text, compute);
        CompiledAhead().Put(key, CubinOf(text, "what comes", compute, key));
      } catch (const std::exception&) {  // told when it is built
      }
    }
  };
  std::vector<std::jthread> threads;
  const size_t cores = std::max(1U, std::thread::hardware_concurrency());
  // A measuring thread is pinned, and those that it starts would be so to the same core.
  const auto work_anywhere = [&] {
    UnpinThisThread();
    work();
  };
  while (threads.size() < std::min(cores, count)) threads.emplace_back(work_anywhere);
}

}  // namespace tilesmith::cuda
