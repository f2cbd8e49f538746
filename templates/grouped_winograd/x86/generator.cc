#include "templates/grouped_winograd/x86/generator.h"

#include <algorithm>

#include "templates/base/image_strides.h"
#include "templates/grouped/lane_swaps.h"

namespace tilesmith::grouped_winograd {
namespace {

using x86::Offset;
using Xbyak::Address;
using Xbyak::Reg64;
using Xbyak::Xmm;

// The next sum's ...
const Reg64 kProducts(Xbyak::Operand::RDI);
const Reg64 kWeights(Xbyak::Operand::RSI);
const Reg64 kTerms(Xbyak::Operand::RDX);
const Reg64 kTarget(Xbyak::Operand::RCX);
const Reg64 kSumsLeft(Xbyak::Operand::R8);
// ... and its next term's.
const Reg64 kProductsNow(Xbyak::Operand::R9);
const Reg64 kWeightsNow(Xbyak::Operand::R10);
const Reg64 kTermsLeft(Xbyak::Operand::R11);

}  // namespace

ProductGenerator::ProductGenerator(const ProductShape& shape, const Target& cpu, size_t buffer_bytes)
    : VectorCode(cpu, buffer_bytes),
      shape_(shape),
      first_weight_(registers() - static_cast<int>(shape.sums)),
      index_(first_weight_ - 1),
      input_(index_ - kInputRegisters) {}

int64_t ProductGenerator::KernelBytes(int64_t tiles, const ProductShape& shape) {
  constexpr int64_t kTermBytes = 18, kStoreBytes = 11, kFixedBytes = 256, kWeightBytes = 24, kSumBytes = 14;
  const int64_t of_tile = shape.channels * kTermBytes + kStoreBytes + (shape.sums - 1) * kSumBytes;
  const int64_t bytes = kFixedBytes + tiles * of_tile + (tiles + 1) * shape.channels * kWeightBytes;
  return shape.merged ? 2 * bytes : bytes;
}

size_t ProductGenerator::Emit(int64_t tiles) {
  align(64);
  const size_t start = getSize();
  mov(kTarget, kProducts);
  mov(kSumsLeft, shape_.products);
  Xbyak::Label next;
  align(32);
  L(next);
  for (int64_t first = 0; first < tiles; first += shape_.width)
    EmitTiles({first, std::min(shape_.width, tiles - first)});
  mov(kProducts, kProductsNow);
  mov(kWeights, kWeightsNow);
  add(kTerms, static_cast<int>(sizeof(int64_t)));
  add(kTarget, Offset(shape_.element_bytes));
  dec(kSumsLeft);
  jnz(next, T_NEAR);
  vzeroupper();
  ret();
  return start;
}

void ProductGenerator::EmitTiles(const Tiles& tiles) {
  mov(kProductsNow, kProducts);
  mov(kWeightsNow, kWeights);
  EmitTerm(tiles, true);
  if (shape_.merged) {
    Xbyak::Label again, done;
    mov(kTermsLeft, ptr[kTerms]);
    dec(kTermsLeft);
    jz(done, T_NEAR);
    align(16);
    L(again);
    EmitTerm(tiles, false);
    dec(kTermsLeft);
    jnz(again, T_NEAR);
    L(done);
  }
  EmitSumOfSums(tiles.count);
  for (int64_t i = 0; i < tiles.count; ++i)
    vmovups(ptr[kTarget + Offset((tiles.first + i) * vector_bytes())], Accumulator(0, i));
}

void ProductGenerator::EmitTerm(const Tiles& tiles, bool begin) {
  for (int64_t spread = 0; spread < shape_.channels / shape_.sums; ++spread) {
    EmitWeights(spread);
    for (int64_t i = 0; i < tiles.count; ++i) {
      const Xmm input = Vector(input_ + static_cast<int>(i % kInputRegisters));
      EmitInput(input, tiles.first + i, spread);
      for (int64_t sum = 0; sum < shape_.sums; ++sum) {
        const Xmm acc = Accumulator(sum, i);
        begin&& spread == 0 ? vmulps(acc, input, Weight(sum)) : vfmadd231ps(acc, input, Weight(sum));
      }
    }
  }
  add(kProductsNow, Offset(shape_.element_bytes));
  add(kWeightsNow, Offset(shape_.channels * vector_bytes()));
}

// Halves the sums until one is left: sum t takes in that of t ^ distance, whose lanes lie that far off.
void ProductGenerator::EmitSumOfSums(int64_t tiles) {
  for (int64_t half = shape_.sums / 2; half > 0; half /= 2) {
    for (int64_t i = 0; i < half * tiles; ++i) {
      const Xmm acc = Accumulator(i / tiles, i % tiles), other = Accumulator(i / tiles + half, i % tiles);
      SwapLanes(other, static_cast<int>(half * (shape_.channels / shape_.sums)));
      vaddps(acc, acc, other);
    }
  }
}

void ProductGenerator::EmitWeights(int64_t spread) {
  for (int64_t sum = 0; sum < shape_.sums; ++sum)
    vmovups(Weight(sum), ptr[kWeightsNow + Offset((spread * shape_.sums + sum) * vector_bytes())]);
  if (shape_.sums > 1 || shape_.channels != 8 || !wide()) return;
  std::vector<uint32_t> index(vector_floats());
  for (int lane = 0; lane < vector_floats(); ++lane)
    index[lane] = static_cast<uint32_t>(lane / shape_.channels * shape_.channels + spread);
  vmovups(Vector(index_), Constant(index));
}

void ProductGenerator::EmitInput(const Xmm& to, int64_t tile, int64_t spread) {
  const Address from = ptr[kProductsNow + Offset(tile * vector_bytes())];
  if (shape_.sums > 1) {
    spread == 0 ? vmovups(to, from) : vpermilps(to, from, grouped::kSwapPattern[spread]);
  } else if (shape_.channels == vector_floats()) {
    vbroadcastss(to, ptr[kProductsNow + Offset(tile * vector_bytes() + spread * kFloatBytes)]);
  } else if (shape_.channels == 8) {
    vpermps(Xbyak::Zmm(to.getIdx()), Xbyak::Zmm(index_), from);
  } else if (shape_.channels == 4) {
    vpermilps(to, from, static_cast<uint8_t>(spread * 0x55));
  } else {
    vpermilps(to, from, static_cast<uint8_t>(spread == 0 ? 0xA0 : 0xF5));
  }
}

}  // namespace tilesmith::grouped_winograd
