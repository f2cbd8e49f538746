#include "templates/grouped_winograd/product_generator.h"

#ifdef TILESMITH_X86

#include <algorithm>

#include "templates/grouped/lane_swaps.h"

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
      first_weight_(registers() - static_cast<int>(shape.sums)),
      index_(first_weight_ - 1),
      input_(index_ - kInputRegisters) {}

int64_t ProductGenerator::KernelBytes(int64_t tiles, const ProductShape& shape) {
  constexpr int64_t kTermBytes = 18, kStoreBytes = 11, kFixedBytes = 128, kWeightBytes = 24, kSumBytes = 14;
  const int64_t of_tile = shape.channels * kTermBytes + kStoreBytes + (shape.sums - 1) * kSumBytes;
  return kFixedBytes + tiles * of_tile + (tiles + 1) * shape.channels * kWeightBytes;
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
  for (int64_t spread = 0; spread < shape_.channels / shape_.sums; ++spread) {
    EmitWeights(spread);
    for (int64_t i = 0; i < count; ++i) {
      const Xmm input = Vector(input_ + static_cast<int>(i % kInputRegisters));
      EmitInput(input, first + i, spread);
      for (int64_t sum = 0; sum < shape_.sums; ++sum) {
        const Xmm acc = Accumulator(sum, i);
        spread == 0 ? vmulps(acc, input, Weight(sum)) : vfmadd231ps(acc, input, Weight(sum));
      }
    }
  }
  for (int64_t half = shape_.sums / 2; half > 0; half /= 2) {
    for (int64_t i = 0; i < half * count; ++i) {
      const Xmm acc = Accumulator(i / count, i % count), other = Accumulator(i / count + half, i % count);
      SwapLanes(other, static_cast<int>(half * (shape_.channels / shape_.sums)));
      vaddps(acc, acc, other);
    }
  }
  for (int64_t i = 0; i < count; ++i)
    vmovups(ptr[kProducts + Offset((first + i) * vector_bytes())], Accumulator(0, i));
}

void ProductGenerator::EmitWeights(int64_t spread) {
  for (int64_t sum = 0; sum < shape_.sums; ++sum)
    vmovups(Weight(sum), ptr[kWeights + Offset((spread * shape_.sums + sum) * vector_bytes())]);
  if (shape_.sums > 1 || shape_.channels != 8 || !wide()) return;
  std::vector<uint32_t> index(vector_floats());
  for (int lane = 0; lane < vector_floats(); ++lane)
    index[lane] = static_cast<uint32_t>(lane / shape_.channels * shape_.channels + spread);
  vmovups(Vector(index_), Constant(index));
}

void ProductGenerator::EmitInput(const Xmm& to, int64_t tile, int64_t spread) {
  const Address from = ptr[kProducts + Offset(tile * vector_bytes())];
  if (shape_.sums > 1) {
    spread == 0 ? vmovups(to, from) : vpermilps(to, from, grouped::kSwapPattern[spread]);
  } else if (shape_.channels == vector_floats()) {
    vbroadcastss(to, ptr[kProducts + Offset(tile * vector_bytes() + spread * kFloatBytes)]);
  } else if (shape_.channels == 8) {
    vpermps(Xbyak::Zmm(to.getIdx()), Xbyak::Zmm(index_), from);
  } else if (shape_.channels == 4) {
    vpermilps(to, from, static_cast<uint8_t>(spread * 0x55));
  } else {
    vpermilps(to, from, static_cast<uint8_t>(spread == 0 ? 0xA0 : 0xF5));
  }
}

}  // namespace tilesmith::grouped_winograd

#endif  // TILESMITH_X86
