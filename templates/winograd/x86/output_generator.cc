#include "templates/winograd/x86/output_generator.h"

#include <algorithm>

#include "templates/base/image_strides.h"

namespace tilesmith::winograd {
namespace {

using x86::Offset;
using Xbyak::Reg64;

const Reg64 kProducts(Xbyak::Operand::RDI);
const Reg64 kOutput(Xbyak::Operand::RSI);
const Reg64 kResidual(Xbyak::Operand::RDX);
const Reg64 kBias(Xbyak::Operand::RCX);
const Reg64 kTilesLeft(Xbyak::Operand::R8);

constexpr int kOutputTemporaries = 3;  // result, scratch, bias

int RowsAtOnce(const Transforms& t, int registers) {
  const auto pairs = static_cast<int>(t.pairs.size());
  return std::clamp((registers - pairs - kOutputTemporaries) / t.window, 1, std::max(pairs, 1));
}

}  // namespace

OutputGenerator::OutputGenerator(const Schedule& schedule, const Target& cpu, size_t buffer_bytes)
    : LinearCode(cpu, buffer_bytes),
      schedule_(schedule),
      transforms_(schedule.output_transforms()),
      window_(transforms_.window),
      pairs_(static_cast<int>(transforms_.pairs.size())),
      rows_at_once_(RowsAtOnce(transforms_, registers())),
      sum_(rows_at_once_ * window_),
      result_(sum_ + pairs_),
      scratch_(result_ + 1),
      bias_(result_ + 2) {}

int64_t OutputGenerator::KernelBytes(int window) {
  constexpr int64_t kInstruction = 11, kFixed = 512, kPostOps = 10;
  return kFixed + kInstruction * (3L * window * window * window + kPostOps * window * window);
}

LinearCode::Term OutputGenerator::ProductTerm(int row, int column) const {
  const int64_t element = row * window_ + column;
  return {1, -1, kProducts + Offset(element * schedule_.out_element * kFloatBytes)};
}

size_t OutputGenerator::Emit(const Variant& variant) {
  variant_ = variant;
  align(64);
  const size_t start = getSize();
  std::vector<double> constants;
  for (int k = 0; k < transforms_.tile; ++k) {
    for (int q = 0; q < pairs_; ++q) AddConstant(constants, transforms_.output(k, 1 + 2 * q));
    for (int element : transforms_.unpaired()) AddConstant(constants, transforms_.output(k, element));
  }
  HoldConstants(constants, bias_ + 1, registers() - bias_ - 1);
  if (schedule_.workload.post.bias) vmovups(Vector(bias_), ptr[kBias]);
  Xbyak::Label next;
  align(32);
  L(next);
  for (int parity : {0, 1}) {
    std::vector<int> some;
    for (int row = parity; row < variant.rows; row += 2) {
      some.push_back(row);
      if (row + 2 < variant.rows && static_cast<int>(some.size()) < rows_at_once_) continue;
      EmitColumns(some);
      for (size_t i = 0; i < some.size(); ++i) EmitRow(some[i], static_cast<int>(i) * window_);
      some.clear();
    }
  }
  add(kProducts, Offset(vector_bytes()));
  const int64_t step = schedule_.config.tile * schedule_.out_pixel_bytes();
  add(kOutput, Offset(step));
  if (schedule_.workload.post.sum) add(kResidual, Offset(step));
  dec(kTilesLeft);
  jnz(next, T_NEAR);
  vzeroupper();
  ret();
  return start;
}

void OutputGenerator::EmitColumns(const std::vector<int>& rows) {
  const bool odd = rows.front() % 2 == 1;
  for (int column = 0; column < window_; ++column) {
    for (int q = 0; q < pairs_; ++q) {
      Term plus = ProductTerm(1 + 2 * q, column), minus = ProductTerm(2 + 2 * q, column);
      if (odd) minus.coefficient = -1;
      Sum(sum_ + q, {plus, minus}, scratch_);
    }
    for (size_t i = 0; i < rows.size(); ++i) {
      std::vector<Term> terms;
      terms.reserve(pairs_ + 2);
      for (int q = 0; q < pairs_; ++q)
        terms.push_back({transforms_.output(rows[i], 1 + 2 * q), sum_ + q, {}});
      for (int element : transforms_.unpaired()) {
        terms.push_back(ProductTerm(element, column));
        terms.back().coefficient = transforms_.output(rows[i], element);
      }
      Sum(static_cast<int>(i) * window_ + column, terms, scratch_);
    }
  }
}

void OutputGenerator::EmitRow(int row, int first_register) {
  for (int q = 0; q < pairs_; ++q) {
    const auto plus = Vector(first_register + 1 + 2 * q), minus = Vector(first_register + 2 + 2 * q);
    vaddps(Vector(sum_ + q), plus, minus);
    vsubps(minus, plus, minus);
  }
  for (int k = 0; k < variant_.columns; ++k) {
    std::vector<Term> terms;
    terms.reserve(pairs_ + 2);
    for (int q = 0; q < pairs_; ++q) {
      terms.push_back(
          {transforms_.output(k, 1 + 2 * q), k % 2 == 0 ? sum_ + q : first_register + 2 + 2 * q, {}});
    }
    for (int element : transforms_.unpaired())
      terms.push_back({transforms_.output(k, element), first_register + element, {}});
    Sum(result_, terms, scratch_);
    EmitOutput((row * schedule_.workload.ow + k) * schedule_.out_pixel_bytes());
  }
}

void OutputGenerator::EmitOutput(int64_t offset) {
  const PostOps& post = schedule_.workload.post;
  const auto result = Vector(result_), scratch = Vector(scratch_);
  const DataType type = schedule_.out.type();
  if (post.bias) vaddps(result, result, Vector(bias_));
  if (post.sum) {
    const auto residual = ptr[kResidual + Offset(offset)];
    if (type != DataType::kF32) LoadStored(type, scratch, residual, false, scratch);
    type == DataType::kF32 ? vaddps(result, result, residual) : vaddps(result, result, scratch);
  }
  Apply(post.activation, result, scratch);
  // Whatever the activation is of 0, a NaN or infinity has met padding's zero weights there.
  if (variant_.lanes < vector_floats()) ClearLanesFrom(variant_.lanes, result);
  const auto output = ptr[kOutput + Offset(offset)];
  variant_.stream ? vmovntps(output, result) : StoreAs(type, output, result, false, scratch, scratch);
}

}  // namespace tilesmith::winograd
