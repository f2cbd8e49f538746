// Compiled texts of CUDA programs: by NVRTC, once for each text and kind of GPU. What was compiled before
// lies by hash in the folder tilesmith-cubins-UID of the system's for temporary files, if others cannot write
// there; else nothing is kept.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "templates/cuda_device/context.h"

namespace tilesmith::cuda {

// NVRTC: texts of CUDA programs to machine code.
//
// A cubin for GPUs of compute capability `compute` / 10, as 90. `name` is for people. Throws Error(kInternal)
// with what the compiler says, Error(kEnvironment) where there is no NVRTC. Thread-safe.
std::string Compile(const std::string& text, const std::string& name, int compute);

// Loaded code. Immutable.
class Module {
 public:
  // Throws Error(kEnvironment) naming `name`.
  Module(ContextPtr context, const std::string& cubin, const std::string& name);
  ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  // May use so much dynamic shared memory. Throws Error(kEnvironment) naming function and program.
  FunctionHandle Function(const std::string& function, int64_t shared_bytes) const;

 private:
  const ContextPtr context_;
  const std::string name_;
  ModuleHandle handle_ = nullptr;
};

// What the text compiles to; the process has one of each text at a time. `name` is for people. Throws
// Error(kInternal) with what the compiler says. Thread-safe, several at a time.
std::shared_ptr<const Module> CompiledModule(const ContextPtr& context, const std::string& text,
                                             const std::string& name);

// Compiles text_of(i) for i < count in as many threads as there are cores, for CompiledModule to find: once,
// and where a folder keeps it. `text_of` is called in those threads; "" is nothing to compile. What fails
// will fail there.
void CompileAhead(const ContextPtr& context, size_t count, const std::function<std::string(size_t)>& text_of);

}  // namespace tilesmith::cuda
