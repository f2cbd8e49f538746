// Numbers too small for their exponent, which CPUs compute with by microcode: a multiplication of one takes
// some 150 cycles instead of one half on Intel's. Trained weights hold them by the thousand, where decay has
// shrunk what nothing needed.
#pragma once

#if defined(__x86_64__)
#include <xmmintrin.h>
#elif defined(__aarch64__)
#include <cstdint>
#endif

namespace tilesmith {

// While it lives, the calling thread takes denormal operands as zero and gives zero for denormal results
// (aarch64, x86; elsewhere nothing changes); then it computes as it did before.
class FlushDenormals {
 public:
  FlushDenormals() { Write(before_ | kFlush); }
  ~FlushDenormals() { Write(before_); }
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;

 private:
#if defined(__x86_64__)
  using Control = unsigned;
  static constexpr Control kFlush = 0x8000 | 0x0040;  // FTZ and DAZ of MXCSR
  static Control Read() { return _mm_getcsr(); }
  static void Write(Control control) { _mm_setcsr(control); }
#elif defined(__aarch64__)
  using Control = uint64_t;
  static constexpr Control kFlush = uint64_t{1} << 24;  // FZ of FPCR
  static Control Read() {
    Control control;
    asm volatile("mrs %0, fpcr" : "=r"(control));
    return control;
  }
  static void Write(Control control) { asm volatile("msr fpcr, %0" : : "r"(control)); }
#else
  using Control = unsigned;
  static constexpr Control kFlush = 0;
  static Control Read() { return 0; }
  static void Write(Control) {}
#endif

  const Control before_ = Read();
};

}  // namespace tilesmith
