// Generated code for strips whose products are of bytes (templates/amx/x86/strip_code.h). Their sums become
// bytes, or floats, exactly as those of the op do (ops/quantize/quantized_conv.h): of a product of float(sum)
// and a multiplier
//
//   byte = clamp(round(steps) + zero, low, high)
//
// four vectors are rounded and packed together.
#pragma once

#include "templates/amx/x86/strip_code.h"
#include "templates/amx_int8/config.h"
#include "templates/int8/pixels.h"

namespace tilesmith::amx_int8 {

class ByteStripCode final : public amx::StripCode {
 public:
  // `numbers`: the range, zero point and terms of the residual of the op, whose other members are not looked
  // at.
  ByteStripCode(const Schedule& schedule, const QuantizedPixels& numbers, const Target& cpu);

 private:
  void EmitProduct(const Xbyak::Tmm& sums, const Xbyak::Tmm& windows, const Xbyak::Tmm& weights) override;
  void EmitConstantsOf(const Vectors& vectors) override;
  void EmitPixels(const Vectors& vectors, int count) override;

  void EmitMasks(const Vectors& vectors);
  void EmitResidualConstants();
  // value = float(sum) * multiplier of a vector of the pixel whose sums kAddress tells.
  void EmitProductOf(int vector, const Xbyak::Xmm& value);
  // What the residual makes of it, where kOther tells.
  void EmitResidual(const Vectors& vectors, int vector, const Xbyak::Xmm& value);
  void EmitReals(const Vectors& vectors, int pixel);
  // The first `count` of four vectors of steps, as bytes in their order in the first one.
  void EmitPacking(int count);
  // Stores what was packed: all vectors of `count` pixels from number `first` on.
  void EmitStores(const Vectors& vectors, int first, int count);
  Xbyak::Address Splat4(uint32_t word) { return Constant(std::vector<uint32_t>(vector_floats(), word)); }

  const bool unsigned_in_, unsigned_out_, reals_, sum_;
  const QuantizedSumTerms terms_;
  const int32_t zero_, low_, high_;  // as stored
};

}  // namespace tilesmith::amx_int8
