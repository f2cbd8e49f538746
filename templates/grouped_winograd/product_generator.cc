#include "templates/grouped_winograd/product_generator.h"

#ifdef TILESMITH_X86

#include <algorithm>

namespace tilesmith::grouped_winograd {
namespace {

using x86::Offset;
using Xbyak::Address;
using Xbyak::Reg64;
using Xbyak::Xmm;

const Reg64 kProducts(Xbyak::Operand::RDI);
const Reg64 kWeights(Xbyak::Operand::RSI);
const Reg64 kElementsLeft(Xbyak::Operand::RDX);

constexpr int64_t kFloatBytes = sizeof(float);

}  // namespace

ProductGenerator::ProductGenerator(const ProductShape& shape, const CpuInfo& cpu, size_t buffer_bytes)
    : VectorCode(cpu, buffer_bytes),
      shape_(shape),
      weight_(registers() - 1),
      index_(registers() - 2),
      input_(registers() - kBesideAccumulators) {}

int64_t ProductGenerator::KernelBytes(int64_t tiles, int64_t channels) {
  constexpr int64_t kTermBytes = 18, kStoreBytes = 11, kFixedBytes = 128, kWeightBytes = 24;
  return kFixedBytes + tiles * (channels * kTermBytes + kStoreBytes) + (tiles + 1) * channels * kWeightBytes;
}

size_t ProductGenerator::Emit(int64_t tiles) {
  align(64);
  const size_t start = getSize();
  mov(kElementsLeft, shape_.elements);
  Xbyak::Label next;
  align(32);
  L(next);
  for (int64_t first = 0; first < tiles; first += shape_.width)
    EmitTiles(first, std::min(shape_.width, tiles - first));
  add(kProducts, Offset(shape_.element_bytes));
  add(kWeights, Offset(shape_.channels * vector_bytes()));
  dec(kElementsLeft);
  jnz(next, T_NEAR);
  vzeroupper();
  ret();
  return start;
}

void ProductGenerator::EmitTiles(int64_t first, int64_t count) {
  for (int64_t channel = 0; channel < shape_.channels; ++channel) {
    vmovups(Vector(weight_), ptr[kWeights + Offset(channel * vector_bytes())]);
    if (shape_.channels == 8 && wide()) {
      std::vector<uint32_t> index(vector_floats());
      for (int lane = 0; lane < vector_floats(); ++lane)
        index[lane] = static_cast<uint32_t>(lane / shape_.channels * shape_.channels + channel);
      vmovups(Vector(index_), Constant(index));
    }
    for (int64_t i = 0; i < count; ++i) EmitTerm(static_cast<int>(i), first + i, channel);
  }
  for (int64_t i = 0; i < count; ++i)
    vmovups(ptr[kProducts + Offset((first + i) * vector_bytes())], Vector(static_cast<int>(i)));
}

void ProductGenerator::EmitTerm(int accumulator, int64_t tile, int64_t channel) {
  const Xmm acc = Vector(accumulator), input = Vector(input_ + static_cast<int>(tile % 2));
  const Address from = ptr[kProducts + Offset(tile * vector_bytes())];
  if (shape_.channels == vector_floats()) {
    vbroadcastss(input, ptr[kProducts + Offset(tile * vector_bytes() + channel * kFloatBytes)]);
  } else if (shape_.channels == 8) {
    vpermps(Xbyak::Zmm(input.getIdx()), Xbyak::Zmm(index_), from);
  } else if (shape_.channels == 4) {
    vpermilps(input, from, static_cast<uint8_t>(channel * 0x55));
  } else {
    vpermilps(input, from, static_cast<uint8_t>(channel == 0 ? 0xA0 : 0xF5));
  }
  channel == 0 ? vmulps(acc, input, Vector(weight_)) : vfmadd231ps(acc, input, Vector(weight_));
}

}  // namespace tilesmith::grouped_winograd

#endif  // TILESMITH_X86
