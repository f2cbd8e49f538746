#include "templates/amx_int8/x86/byte_strip_code.h"

#include <algorithm>

#include "ops/base/quantization.h"

namespace tilesmith::amx_int8 {
namespace {

using x86::Offset;
using Xbyak::Xmm;
using Xbyak::Ymm;
using Xbyak::Zmm;

constexpr int kMaxPixels = 4;

// Vectors by purpose: 0 to 3 are of pixels.
constexpr int kPacked = 4;
const Zmm kOtherTerm(5);
constexpr int kMultipliers = 20;  // two
const Zmm kHighSteps(22), kOrder(23), kZero(24), kLow(25);
const Zmm kOffset(26), kOwnLow(27), kOwnHigh(28), kResidualFactor(29), kSignBytes(30);

const Xbyak::Opmask kPixelMask(1);   // bytes of a pixel
const Xbyak::Opmask kVectorMask(2);  // lanes of its last vector
const Xbyak::Opmask kRealMask(3);    // packed bytes that are no padding

uint64_t Ones(int64_t count) { return count >= 64 ? ~uint64_t{0} : (uint64_t{1} << count) - 1; }

}  // namespace

ByteStripCode::ByteStripCode(const Schedule& schedule, const QuantizedPixels& numbers, const Target& cpu)
    : StripCode(schedule, cpu, kMaxPixels),
      unsigned_in_(schedule.in.type() == DataType::kU8),
      unsigned_out_(schedule.out.type() == DataType::kU8),
      reals_(schedule.out.type() == DataType::kF32),
      sum_(schedule.workload.post.sum),
      terms_(numbers.sum),
      zero_(numbers.zero - numbers.flip),
      low_(numbers.low - numbers.flip),
      high_(numbers.high - numbers.flip) {
  EmitAll();
}

void ByteStripCode::EmitProduct(const Xbyak::Tmm& sums, const Xbyak::Tmm& windows,
                                const Xbyak::Tmm& weights) {
  unsigned_in_ ? tdpbusd(sums, windows, weights) : tdpbssd(sums, windows, weights);
}

void ByteStripCode::EmitConstantsOf(const Vectors& vectors) {
  mov(kAddress, ptr[kArgs + offsetof(amx::StripArgs, stored_multipliers)]);
  for (int v = 0; v < std::ssize(vectors.real); ++v)
    vmovups(Zmm(kMultipliers + v), ptr[kAddress + Offset(v * vector_bytes())]);
  if (reals_) {
    const auto last = static_cast<int>(vectors.channels % vector_floats());
    if (last != 0) LoadMask(last, Vector(0));
    return;
  }
  EmitMasks(vectors);
  vmovups(kHighSteps, Splat(static_cast<float>(high_ - zero_)));
  vmovups(kOrder, Constant({0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15}));
  constexpr uint32_t kTwoWords = 0x10001, kFourBytes = 0x1010101;
  vmovups(kZero, Splat4(static_cast<uint16_t>(zero_) * kTwoWords));
  vmovups(kLow, Splat4(static_cast<uint8_t>(low_) * kFourBytes));
  if (sum_) EmitResidualConstants();
}

void ByteStripCode::EmitMasks(const Vectors& vectors) {
  const int64_t lanes = std::ssize(vectors.real) * vector_floats(), channels = vectors.channels;
  if (channels == lanes) return;
  const auto make = [&](const Xbyak::Opmask& mask, uint64_t bits) {
    mov(kAddress, bits);
    kmovq(mask, kAddress);
  };
  if (schedule().out.is_nhwc()) {
    make(kPixelMask, Ones(channels));
    return make(kVectorMask, Ones(channels % vector_floats()));
  }
  uint64_t real = Ones(channels);
  for (int64_t filled = lanes; filled < 64; filled *= 2) real |= real << filled;
  make(kRealMask, real);
}

void ByteStripCode::EmitResidualConstants() {
  vmovups(kOwnLow, Splat(terms_.low));
  vmovups(kOwnHigh, Splat(terms_.high));
  vmovups(kResidualFactor, Splat(terms_.factor));
  vmovups(kOffset, Splat(terms_.offset));
  vmovups(kSignBytes, Splat4(terms_.flip));
}

void ByteStripCode::EmitProductOf(int vector, const Xmm& value) {
  vcvtdq2ps(value, ptr[kStoredSums + kAddress + Offset(vector * vector_bytes())]);
  if (sum_) {
    vfmadd213ps(value, Zmm(kMultipliers + vector), kOffset);
  } else {
    vmulps(value, value, Zmm(kMultipliers + vector));
  }
}

void ByteStripCode::EmitResidual(const Vectors& vectors, int vector, const Xmm& value) {
  const bool partial = vectors.real[vector] < vector_floats() && schedule().out.is_nhwc();
  const Xbyak::Address from = ptr[kResidual + kOther + Offset(vectors.offsets[vector])];
  const Zmm to = partial ? kOtherTerm | kVectorMask | T_z : kOtherTerm;
  unsigned_out_ ? vpmovzxbd(to, from) : vpmovsxbd(to, from);
  vmaxps(value, value, kOwnLow);
  vminps(value, value, kOwnHigh);
  if (!unsigned_out_) vpaddd(kOtherTerm, kOtherTerm, kSignBytes);
  vcvtdq2ps(kOtherTerm, kOtherTerm);
  vfmadd231ps(value, kOtherTerm, kResidualFactor);
}

void ByteStripCode::EmitReals(const Vectors& vectors, int pixel) {
  const bool nhwc = schedule().out.is_nhwc();
  movsxd(kAddress, dword[kPlaces + PlaceOffset(pixel, offsetof(amx::PixelPlace, sums))]);
  movsxd(kOther, dword[kPlaces + PlaceOffset(pixel, offsetof(amx::PixelPlace, output))]);
  for (int v = 0; v < std::ssize(vectors.real); ++v) {
    const Xmm value = Vector(v);
    const bool partial = vectors.real[v] < vector_floats();
    EmitProductOf(v, value);
    if (partial && !nhwc) ClearLanesFrom(vectors.real[v], value);
    StoreAs(DataType::kF32, ptr[kOutput + kOther + Offset(vectors.offsets[v])], value, partial && nhwc, value,
            value);
  }
}

// What is too low becomes the lowest integer, and so would what is too high: it is bounded before. The
// packing of integers saturates.
void ByteStripCode::EmitPacking(int count) {
  for (int i = 0; i < count; ++i) {
    vminps(Zmm(i), Zmm(i), kHighSteps);
    vcvtps2dq(Zmm(i), Zmm(i));
  }
  for (int i = 0; i < count; i += 2) {
    vpackssdw(Zmm(i), Zmm(i), Zmm(std::min(i + 1, count - 1)));
    if (zero_ != 0) vpaddsw(Zmm(i), Zmm(i), kZero);
  }
  const Zmm packed(kPacked), upper(count > 2 ? 2 : 0);
  const StoredRange range = RangeOf(schedule().out.type());
  if (unsigned_out_) {
    vpackuswb(packed, Zmm(0), upper);
    if (low_ > range.low) vpmaxub(packed, packed, kLow);
  } else {
    vpacksswb(packed, Zmm(0), upper);
    if (low_ > range.low) vpmaxsb(packed, packed, kLow);
  }
  vpermd(packed, kOrder, packed);
}

void ByteStripCode::EmitStores(const Vectors& vectors, int first, int count) {
  const auto size = static_cast<int>(std::ssize(vectors.real));
  const bool whole = vectors.channels == int64_t{size} * vector_floats(), nhwc = schedule().out.is_nhwc();
  const Zmm packed(kPacked), moved(0);
  if (!whole && !nhwc) vmovdqu8(packed | kRealMask | T_z, packed);
  const bool masked = !whole && nhwc;
  for (int pixel = 0; pixel < count; ++pixel) {
    movsxd(kOther, dword[kPlaces + PlaceOffset(first + pixel, offsetof(amx::PixelPlace, output))]);
    for (int v = 0; v < (vectors.adjacent ? 1 : size); ++v) {
      const Xbyak::Address to = ptr[kOutput + kOther + Offset(vectors.offsets[v])];
      const auto part = static_cast<uint8_t>(vectors.adjacent ? pixel : pixel * size + v);
      const int from = part == 0 || !masked ? kPacked : moved.getIdx();
      if (vectors.adjacent) {
        if (part > 0) masked ? vextracti64x4(Ymm(from), packed, part) : vextracti64x4(to, packed, part);
        if (part == 0 || masked) vmovdqu8(masked ? to | kPixelMask : to, Ymm(from));
      } else {
        if (part > 0) masked ? vextracti32x4(Xmm(from), packed, part) : vextracti32x4(to, packed, part);
        if (part == 0 || masked) vmovdqu8(masked ? to | kPixelMask : to, Xmm(from));
      }
    }
  }
}

void ByteStripCode::EmitPixels(const Vectors& vectors, int count) {
  if (reals_) {
    for (int pixel = 0; pixel < count; ++pixel) EmitReals(vectors, pixel);
    return;
  }
  const auto size = static_cast<int>(std::ssize(vectors.real));
  const int together = 4 / size;  // pixels
  for (int first = 0; first < count; first += together) {
    const int pixels = std::min(together, count - first);
    for (int i = 0; i < pixels; ++i) {
      movsxd(kAddress, dword[kPlaces + PlaceOffset(first + i, offsetof(amx::PixelPlace, sums))]);
      if (sum_) movsxd(kOther, dword[kPlaces + PlaceOffset(first + i, offsetof(amx::PixelPlace, output))]);
      for (int v = 0; v < size; ++v) {
        const Zmm value(i * size + v);
        EmitProductOf(v, value);
        if (sum_) EmitResidual(vectors, v, value);
      }
    }
    EmitPacking(pixels * size);
    EmitStores(vectors, first, pixels);
  }
}

}  // namespace tilesmith::amx_int8
