// A tensor whose data is in other files of a folder: whatever it says, only regular files of the folder are
// read.
#include "ops/onnx/model_parts.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "ops/onnx/onnx_import.h"
#include "tests/fuzz/targets/onnx_proto.h"
#include "tests/fuzz/targets/targets.h"

namespace tilesmith::fuzz {
namespace {

constexpr char kInside = '\x01', kOutside = '\xee';

constexpr std::string_view kWords[] = {"data",   "folder/data", "link",   "up/outside",
                                       "pipe",   "../outside",  "folder", "location",
                                       "offset", "length",      "..",     ".",
                                       "/",      "/dev/zero",   "0",      "4",
                                       "256",    "4096",        "-1",     "9223372036854775807"};

// Made once a process, below a folder of its own that all processes share.
std::string ModelPath() {
  const std::filesystem::path around = std::filesystem::temp_directory_path() / "tilesmith-fuzz-parts";
  const std::filesystem::path models = around / "models";
  std::error_code there;
  std::filesystem::create_directories(models / "folder", there);
  const auto write = [](const std::filesystem::path& path, size_t bytes, char value) {
    if (!std::filesystem::exists(path)) std::ofstream(path, std::ios::binary) << std::string(bytes, value);
  };
  write(models / "data", 4096, kInside);
  write(models / "folder/data", 100, kInside);
  write(around / "outside", 4096, kOutside);
  std::filesystem::create_symlink(around / "outside", models / "link", there);
  std::filesystem::create_symlink(around, models / "up", there);
  mkfifo((models / "pipe").c_str(), 0600);
  return models / "net.onnx";
}

void Run(const std::string& input) {
  static const std::string model = ModelPath();
  const std::string bytes = TensorBytes(input);
  const ModelPartsPtr parts = FilesBeside(model);
  const Tensor tensor = ParseOnnxTensor({bytes, parts.get()}, "tensor.pb");
  if (tensor.type() == DataType::kU8 && bytes.find(kOutside) == std::string::npos) {
    const auto* const begin = reinterpret_cast<const char*>(tensor.raw());
    Require(std::find(begin, begin + tensor.bytes(), kOutside) == begin + tensor.bytes(),
            "nothing outside is read");
  }
}

}  // namespace

FuzzTarget ModelPartsTarget() {
  return {.name = "model_parts",
          .reads = "a tensor whose data is in other files",
          .run = Run,
          .mutate = MutateTensor,
          .words = kWords,
          .short_runs = 8000};
}

}  // namespace tilesmith::fuzz
