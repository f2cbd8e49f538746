// All row kernels of one schedule, in one code buffer: chunks and passes that differ in nothing the code
// shows share a kernel.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "templates/direct/x86/generator.h"

namespace tilesmith::direct {

class RowKernels {
 public:
  // The schedule must outlive it.
  RowKernels(const Schedule& schedule, const Target& cpu);

  RowKernel At(size_t chunk, size_t pass) const { return kernels_[chunk * passes_ + pass]; }
  std::span<const uint8_t> Code() const { return {code_->getCode(), code_->getSize()}; }

 private:
  size_t passes_ = 0;
  std::unique_ptr<RowGenerator> code_;
  std::vector<RowKernel> kernels_;  // at chunk * passes + pass
};

}  // namespace tilesmith::direct
