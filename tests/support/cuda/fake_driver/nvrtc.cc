// NVRTC without NVIDIA's compiler: g++ compiles the text behind emulation.inc to a library, whose bytes stand
// for a cubin, behind their length.
#include <stdlib.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace {

constexpr int kSuccess = 0, kCompilation = 6;

struct Program {
  std::string text, log, image;
};

std::string TextOf(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

int Compile(Program& program, int count, const char* const* options) {
  std::string given;
  for (int i = 0; i < count; ++i) given += std::string(options[i]) + " ";
  if (given != "-arch=sm_80 -std=c++17 ") {
    program.log = "options: " + given;
    return kCompilation;
  }
  std::string folder = std::filesystem::temp_directory_path() / "fake-nvrtc-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) return kCompilation;
  std::ofstream(folder + "/kernels.cc") << "#include \"tests/support/cuda/emulation.inc\"\n" << program.text;
  const std::string command = TILESMITH_CXX " -std=c++17 -O1 -w -shared -fPIC -I" TILESMITH_SOURCE_DIR " " +
                              folder + "/kernels.cc -o " + folder + "/kernels.so > " + folder + "/log 2>&1";
  const bool compiled = std::system(command.c_str()) == 0;
  program.log = TextOf(folder + "/log");
  const std::string library = TextOf(folder + "/kernels.so");
  std::filesystem::remove_all(folder);
  const uint64_t bytes = library.size();
  program.image.resize(sizeof(bytes));
  std::memcpy(program.image.data(), &bytes, sizeof(bytes));
  program.image += library;
  return compiled ? kSuccess : kCompilation;
}

Program& Of(void* program) { return *static_cast<Program*>(program); }

}  // namespace

#define FAKE_NVRTC extern "C" [[gnu::visibility("default")]] int

extern "C" [[gnu::visibility("default")]] const char* nvrtcGetErrorString(int) { return "NVRTC_ERROR"; }
FAKE_NVRTC nvrtcVersion(int* major, int* minor) {
  *major = 0, *minor = 0;
  return kSuccess;
}
FAKE_NVRTC nvrtcCreateProgram(void** program, const char* text, const char*, int, const char* const*,
                              const char* const*) {
  *program = new Program{text, "", ""};
  return kSuccess;
}
FAKE_NVRTC nvrtcDestroyProgram(void** program) {
  delete static_cast<Program*>(*program);
  return kSuccess;
}
FAKE_NVRTC nvrtcCompileProgram(void* program, int count, const char* const* options) {
  return Compile(Of(program), count, options);
}
FAKE_NVRTC nvrtcGetProgramLogSize(void* program, size_t* bytes) {
  *bytes = Of(program).log.size() + 1;
  return kSuccess;
}
FAKE_NVRTC nvrtcGetProgramLog(void* program, char* text) {
  std::memcpy(text, Of(program).log.c_str(), Of(program).log.size() + 1);
  return kSuccess;
}
FAKE_NVRTC nvrtcGetCUBINSize(void* program, size_t* bytes) {
  *bytes = Of(program).image.size();
  return kSuccess;
}
FAKE_NVRTC nvrtcGetCUBIN(void* program, char* image) {
  std::memcpy(image, Of(program).image.data(), Of(program).image.size());
  return kSuccess;
}
