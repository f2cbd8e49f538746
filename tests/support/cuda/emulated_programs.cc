#include "tests/support/cuda/emulated_programs.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <stdexcept>

namespace tilesmith {
namespace {

constexpr const char* kPrefix = "emulated";

std::string NameIn(const std::string& prefix, size_t program, const std::string& function) {
  return fmt::format("{}_{}_{}", prefix, program, function);
}

std::string TextOf(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

}  // namespace

std::string OneSource(const std::vector<const CudaProgram*>& programs, const std::string& prefix) {
  std::string source;
  for (size_t i = 0; i < programs.size(); ++i) {
    std::set<std::string> functions;
    for (const CudaLaunch& launch : programs[i]->launches) functions.insert(launch.function);
    for (const std::string& function : functions)
      source += fmt::format("#define {} {}\n", function, NameIn(prefix, i, function));
    source += fmt::format("namespace {}_{} {{\n{}}}\n", prefix, i, programs[i]->text);
    for (const std::string& function : functions) source += fmt::format("#undef {}\n", function);
  }
  return source;
}

EmulatedPrograms::EmulatedPrograms(std::vector<const CudaProgram*> programs)
    : programs_(std::move(programs)) {
  std::string name = std::filesystem::temp_directory_path() / "tilesmith-emulated-XXXXXX";
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
  folder_ = name;
  std::ofstream(folder_ + "/kernels.cc") << "#include \"tests/support/cuda/emulation.inc\"\n"
                                         << OneSource(programs_, kPrefix);
  // An index outside of an array, registers that is, ends the process at once. AddressSanitizer does not know
  // the stacks of fibers; global and shared memory end at guarded pages.
  const std::string command = fmt::format(
      "{0} -std=c++17 -O1 -w -fsanitize=bounds-strict,shift,integer-divide-by-zero "
      "-fsanitize-undefined-trap-on-error -shared -fPIC -I{1} {2}/kernels.cc -o {2}/kernels.so > {2}/log "
      "2>&1",
      TILESMITH_CXX, TILESMITH_SOURCE_DIR, folder_);
  if (std::system(command.c_str()) != 0) throw std::runtime_error(command + "\n" + TextOf(folder_ + "/log"));
  library_ = dlopen((folder_ + "/kernels.so").c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library_ == nullptr) throw std::runtime_error(dlerror());
  *static_cast<EmulatedHooks**>(dlsym(library_, "ts_hooks")) = HooksOfBlockRunner();
}

EmulatedPrograms::~EmulatedPrograms() {
  if (library_ != nullptr) dlclose(library_);
  std::filesystem::remove_all(folder_);
}

void EmulatedPrograms::Run(size_t program, const KernelArgs& args, const float* weights) const {
  const auto check = [](const void* data, int64_t stride, int64_t alignment) {
    if (reinterpret_cast<intptr_t>(data) % alignment != 0 || stride % alignment != 0)
      throw std::runtime_error(fmt::format("a tensor is not aligned to {} bytes", alignment));
  };
  check(args.inputs[0].data, args.inputs[0].batch_stride, programs_[program]->input_alignment);
  check(args.output.data, args.output.batch_stride, programs_[program]->output_alignment);
  for (const CudaLaunch& launch : programs_[program]->launches) {
    void* const found = dlsym(library_, NameIn(kPrefix, program, launch.function).c_str());
    if (found == nullptr) throw std::runtime_error("no function " + launch.function);
    RunBlocks(reinterpret_cast<EmulatedFunction>(found), launch.grid, launch.threads, launch.shared_bytes,
              ArgumentsOf(launch, args, weights));
  }
}

}  // namespace tilesmith
