// All row kernels of one geometry, in one code buffer: chunks and passes that differ in nothing the code
// shows share a kernel.
#pragma once

#ifdef TILESMITH_X86

#include <memory>
#include <span>
#include <vector>

#include "templates/direct/generator.h"

namespace tilesmith::direct {

class RowKernels {
 public:
  // The geometry must outlive it.
  RowKernels(const Geometry& geometry, const CpuInfo& cpu);

  RowKernel At(size_t chunk, size_t pass) const { return kernels_[chunk * passes_ + pass]; }
  std::span<const uint8_t> Code() const { return {code_->getCode(), code_->getSize()}; }

 private:
  size_t passes_ = 0;
  std::unique_ptr<RowGenerator> code_;
  std::vector<RowKernel> kernels_;  // at chunk * passes + pass
};

}  // namespace tilesmith::direct

#endif  // TILESMITH_X86
