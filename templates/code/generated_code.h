// The machine code of a kernel as one of its parts (layouts/kernel_parts.h): emitted where the kernel is the
// first of its kind, else what was emitted before, so that nothing in it may say where it or anything else
// lies in memory: constants are read relative to the instruction, data by arguments.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "layouts/base/check.h"
#include "layouts/kernel_parts.h"

namespace tilesmith {

class GeneratedCode {
 public:
  GeneratedCode() = default;
  explicit GeneratedCode(KernelPart part) : part_(std::move(part)) {}

  std::span<const uint8_t> bytes() const {
    return {reinterpret_cast<const uint8_t*>(part_.memory.data()), part_.memory.bytes().size()};
  }
  // Where function number `index` begins, in the order in which they were emitted.
  const uint8_t* at(size_t index) const {
    TILESMITH_CHECK(index < part_.functions.size(), "function {} of {}", index, part_.functions.size());
    return bytes().data() + part_.functions[index];
  }
  template <typename Function>
  Function Get(size_t index) const {
    return reinterpret_cast<Function>(const_cast<uint8_t*>(at(index)));
  }

 private:
  KernelPart part_;
};

// The next part of a kernel. emit(functions) gives a code generator that is done, in a unique_ptr, and where
// its functions begin. `key` has all that the code depends on; empty: what its kernel does.
template <typename Emit>
GeneratedCode NextCode(KernelParts* parts, const Emit& emit, const PartKeyOf& key = {}) {
  return GeneratedCode(CodePart(
      parts,
      [&] {
        KernelPart part{.is_code = true};
        std::vector<size_t> starts;
        auto code = emit(starts);
        part.functions.assign(starts.begin(), starts.end());
        const std::span bytes = code->Code();
        const std::shared_ptr<const void> owner(std::move(code));
        part.memory = SharedBuffer(AlignedBuffer(std::as_bytes(bytes), owner));
        return part;
      },
      key));
}

}  // namespace tilesmith
