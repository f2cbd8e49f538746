// Programs of ops put together launch by launch.
#pragma once

#include <bit>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "layouts/base/sizes.h"
#include "layouts/data_type.h"
#include "templates/cuda/limits.h"
#include "templates/cuda/program.h"

namespace tilesmith::cuda {

inline CudaOperand Input(size_t slot) { return {.slot = static_cast<int>(slot)}; }

// Numbers that do not fit an int make the program none.
class ProgramBuilder {
 public:
  static constexpr int64_t kThreads = 256;  // THREADS of ops.cu, map.cu and walks.cu

  ProgramBuilder(std::string name, std::string text) {
    program_.name = std::move(name);
    program_.text = std::move(text);
  }

  // A function on so many elements, a thread for each, reading these numbers in front of its weights.
  CudaLaunch& Launch(std::string function, Checked elements, std::span<const int64_t> numbers,
                     std::vector<CudaOperand> inputs) {
    CudaLaunch& launch = program_.launches.emplace_back();
    launch.function = std::move(function);
    launch.threads = kThreads;
    launch.inputs = std::move(inputs);
    launch.weights_byte = static_cast<int64_t>(program_.weights.size()) * kFloatBytes;
    SetBlocks(launch, CeilDiv(elements.value(), kThreads));
    for (const int64_t n : numbers) {
      Need(std::in_range<int32_t>(n));
      program_.weights.push_back(std::bit_cast<float>(static_cast<int32_t>(n)));
    }
    return launch;
  }
  CudaLaunch& last() { return program_.launches.back(); }
  void SetBlocks(CudaLaunch& launch, int64_t x, int64_t y = 1, int64_t z = 1) {
    launch.grid = {x, y, z};
    Need(x <= kMaxPositions && y <= kMaxGrid && z <= kMaxGrid);
  }
  // Elements of an image, as kernels count them.
  void NeedImage(Checked elements) { Need(elements.value() <= kMaxPositions); }
  void Need(bool fits) { fits_ = fits_ && fits; }
  void PadNumbers(size_t count) { program_.weights.resize(count); }
  void Weights(const std::vector<float>& weights) {
    program_.weights.insert(program_.weights.end(), weights.begin(), weights.end());
  }
  void Scratch(Checked bytes) {
    Need(bytes.value() <= kMaxScratch);
    program_.scratch_bytes = bytes.value();
  }

  // How the op's tensors are stored, where not in floats. Numbers say it to the functions as well.
  void Stored(DataType in, DataType out) {
    const int64_t in_bytes = ElementBytes(in), out_bytes = ElementBytes(out);
    program_.input_alignment = in_bytes;
    program_.output_alignment = out_bytes;
    for (CudaLaunch& launch : program_.launches) {
      for (CudaOperand& input : launch.inputs) input.element_bytes = in_bytes;
      launch.output.element_bytes = out_bytes;
    }
  }

  std::optional<CudaProgram> Take() { return fits_ ? std::optional(std::move(program_)) : std::nullopt; }

 private:
  CudaProgram program_;
  bool fits_ = true;
};

}  // namespace tilesmith::cuda
