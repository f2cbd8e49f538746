#include "templates/strassen/x86/generator.h"

#include "templates/base/image_strides.h"

namespace tilesmith::strassen {
namespace {

using x86::Offset;
using Xbyak::Reg64;

constexpr size_t kCodeBytes = 8192;

// Registers of EmitCombine beside those of the sums.
enum : int { kFirstBias = 6, kSecondBias, kScratch, kConstants };

}  // namespace

HalvesGenerator::HalvesGenerator(const Schedule& schedule, const Target& cpu)
    : VectorCode(cpu, kCodeBytes), schedule_(schedule) {
  sum_ = EmitSum();
  combine_ = EmitCombine(true);
  combine_first_ = EmitCombine(false);
  EmitConstants();
}

size_t HalvesGenerator::EmitSum() {
  const Reg64 &first = rdi, &second = rsi, &operands = rdx, &pairs = rcx;
  const int64_t half = schedule_.InVectorOffset(schedule_.in_vectors) * kFloatBytes;
  const auto a11 = Vector(0), a12 = Vector(1), a21 = Vector(2), a22 = Vector(3);
  const auto s1 = Vector(4), s2 = Vector(5), s3 = Vector(6), s4 = Vector(7);
  const auto store = [&](int operand, const Xbyak::Xmm& value) {
    vmovups(ptr[operands + Offset(operand * schedule_.operand * kFloatBytes)], value);
  };
  align(64);
  const size_t start = getSize();
  Xbyak::Label next;
  align(32);
  L(next);
  vmovups(a11, ptr[first]);
  vmovups(a12, ptr[first + Offset(half)]);
  vmovups(a21, ptr[second]);
  vmovups(a22, ptr[second + Offset(half)]);
  vaddps(s1, a21, a22);
  vsubps(s2, s1, a11);
  vsubps(s3, a11, a21);
  vsubps(s4, a12, s2);
  store(0, s1);
  store(1, s2);
  store(2, s3);
  store(3, s4);
  if (!schedule_.in_place) {
    store(kOperandOf[0], a11);
    store(kOperandOf[1], a12);
    store(kOperandOf[3], a22);
  }
  const int64_t step = schedule_.workload.sw * schedule_.in_pixel() * kFloatBytes;
  add(first, Offset(step));
  add(second, Offset(step));
  add(operands, Offset(vector_bytes()));
  dec(pairs);
  jnz(next, T_NEAR);
  vzeroupper();
  ret();
  return start;
}

size_t HalvesGenerator::EmitCombine(bool both) {
  const Reg64 &args = rdi, &products = rax, &first = rsi, &second = rdx, &residual = rcx, &bias = r8,
              &pairs = r9, &half = r10, &second_residual = r11;
  const PostOps& post = schedule_.workload.post;
  const auto product = [&](int number) {
    return ptr[products + Offset((number - 1) * schedule_.product * kFloatBytes)];
  };
  align(64);
  const size_t start = getSize();
  if (post.bias) {
    mov(bias, ptr[args + offsetof(CombineArgs, bias)]);
    vmovups(Vector(kFirstBias), ptr[bias]);
    add(bias, ptr[args + offsetof(CombineArgs, bias_half)]);
    vmovups(Vector(kSecondBias), ptr[bias]);
  }
  HoldConstants(post.activation, kConstants, registers() - kConstants);
  mov(products, ptr[args + offsetof(CombineArgs, products)]);
  mov(first, ptr[args + offsetof(CombineArgs, first)]);
  mov(second, ptr[args + offsetof(CombineArgs, second)]);
  mov(half, ptr[args + offsetof(CombineArgs, half)]);
  mov(pairs, ptr[args + offsetof(CombineArgs, pairs)]);
  if (post.sum) {
    mov(residual, ptr[args + offsetof(CombineArgs, residual)]);
    mov(second_residual, second);
    sub(second_residual, first);
    add(second_residual, residual);
  }
  Xbyak::Label next;
  align(32);
  L(next);
  const auto p1 = Vector(0), p5 = Vector(1), p16 = Vector(2), p167 = Vector(3), sum = Vector(4);
  vmovups(p1, product(1));
  vmovups(p5, product(5));
  vaddps(p16, p1, product(6));
  vaddps(p1, p1, product(2));
  EmitOutput(0, kFirstBias, residual, first);
  vaddps(sum, p16, p5);
  vaddps(sum, sum, product(3));
  EmitOutput(4, kSecondBias, residual + half, first + half);
  if (both) {
    vaddps(p167, p16, product(7));
    vsubps(sum, p167, product(4));
    EmitOutput(4, kFirstBias, second_residual, second);
    vaddps(p167, p167, p5);
    EmitOutput(3, kSecondBias, second_residual + half, second + half);
  }
  const int64_t step = schedule_.out_pixel() * kFloatBytes;
  add(products, Offset(vector_bytes()));
  for (const Reg64& pixel : {first, second}) add(pixel, Offset(step));
  if (post.sum) {
    for (const Reg64& pixel : {residual, second_residual}) add(pixel, Offset(step));
  }
  dec(pairs);
  jnz(next, T_NEAR);
  vzeroupper();
  ret();
  return start;
}

void HalvesGenerator::EmitOutput(int index, int bias, const Xbyak::RegExp& residual,
                                 const Xbyak::RegExp& output) {
  const PostOps& post = schedule_.workload.post;
  const auto value = Vector(index);
  if (post.bias) vaddps(value, value, Vector(bias));
  if (post.sum) vaddps(value, value, ptr[residual]);
  Apply(post.activation, value, Vector(kScratch));
  vmovups(ptr[output], value);
}

}  // namespace tilesmith::strassen
