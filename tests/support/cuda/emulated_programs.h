// CUDA programs compiled by g++ and run in this process (block_runner.h). Many in one call of the compiler,
// which is most of what they cost.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "templates/cuda/program.h"
#include "tests/support/cuda/block_runner.h"

namespace tilesmith {

// Texts of programs in one source, for g++ or nvcc: each in a namespace of its own, and its functions' names
// behind `prefix` and its number, as in "k_3_gemm".
std::string OneSource(const std::vector<const CudaProgram*>& programs, const std::string& prefix);

class EmulatedPrograms {
 public:
  // Compiles and loads. Throws std::runtime_error with what the compiler says.
  explicit EmulatedPrograms(std::vector<const CudaProgram*> programs);
  ~EmulatedPrograms();
  EmulatedPrograms(const EmulatedPrograms&) = delete;
  EmulatedPrograms& operator=(const EmulatedPrograms&) = delete;

  // Launches of one of them, on tensors that must be aligned as it says. `weights` are its own, aligned to 16
  // bytes.
  void Run(size_t program, const KernelArgs& args, const float* weights) const;

 private:
  std::vector<const CudaProgram*> programs_;
  std::string folder_;
  void* library_ = nullptr;
};

}  // namespace tilesmith
