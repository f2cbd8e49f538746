// A CUDA program: text, and the launches of its functions. Templates make it without any GPU or compiler of
// NVIDIA's.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "layouts/base/check.h"
#include "templates/base/conv_template.h"
#include "templates/base/image_strides.h"

namespace tilesmith {

// A tensor that a function reads or writes.
struct CudaOperand {
  enum class From { kInput, kOutput, kScratch };
  From from = From::kInput;
  int slot = 0;        // of the inputs
  int64_t byte = 0;    // into it
  int64_t stride = 0;  // floats from one image to the next, in scratch; elsewhere the caller says
  int64_t element_bytes = kFloatBytes;  // that the function counts images' distances in
};

// Every function takes one TsArgs (templates/cuda/kernels/prelude.cu).
constexpr int kCudaInputs = 4;
struct CudaLaunch {
  std::string function;
  std::array<int64_t, 3> grid = {1, 1, 1};
  int64_t threads = 1;       // of a block
  int64_t shared_bytes = 0;  // dynamic
  std::vector<CudaOperand> inputs;
  CudaOperand output = {CudaOperand::From::kOutput};
  int64_t scratch_byte = 0;  // where the function's scratch begins
  int64_t weights_byte = 0;  // and its weights
};

struct CudaProgram {
  std::string name;  // for people: the template and its config, or the op
  std::string text;
  std::vector<CudaLaunch> launches;  // one after the other
  std::vector<float> weights;        // as the functions read them
  int64_t scratch_bytes = 0;
  // How the first input and the output, and their batch strides, are aligned, in bytes.
  int64_t input_alignment = 4, output_alignment = 4;
};

// TsArgs as a launch of this process fills it; pointers are the device's.
struct CudaArguments {
  const void* in[kCudaInputs] = {};
  long long in_stride[kCudaInputs] = {};
  void* out = nullptr;
  long long out_stride = 0;
  void* scratch = nullptr;
  const void* weights = nullptr;
};
// `args` are the kernel's: its inputs, output and scratch.
CudaArguments ArgumentsOf(const CudaLaunch& launch, const KernelArgs& args, const void* weights);

// What a template's Build gives: a program that no process can run by itself. Its Code is the text.
class CudaConv final : public ConvKernel {
 public:
  explicit CudaConv(CudaProgram program) : program_(std::move(program)) {}
  const CudaProgram& program() const { return program_; }

  int64_t Tasks(int) const override { return 1; }
  void Run(const KernelArgs&, int, TaskRange) const override {
    TILESMITH_CHECK(false, "{} runs on a CUDA device only", program_.name);
  }
  int64_t ScratchBytes(int) const override { return program_.scratch_bytes; }
  std::span<const std::byte> PackedWeights() const override {
    return std::as_bytes(std::span(program_.weights));
  }
  std::vector<CodeBlob> Code() const override {
    return {{"cu", {reinterpret_cast<const uint8_t*>(program_.text.data()), program_.text.size()}}};
  }

 private:
  const CudaProgram program_;
};

}  // namespace tilesmith
