#include "templates/winograd/x86/input_generator.h"

#include "templates/base/image_strides.h"

namespace tilesmith::winograd {
namespace {

using x86::Offset;
using Xbyak::Reg64;

const Reg64 kSource(Xbyak::Operand::RDI);
const Reg64 kTarget(Xbyak::Operand::RSI);
const Reg64 kWindowsLeft(Xbyak::Operand::RDX);

constexpr int kInputTemporaries = 4;

int FirstTemporary(int window, int registers) {
  return 2 * window + kInputTemporaries <= registers ? 2 * window : window;
}

}  // namespace

InputGenerator::InputGenerator(const Schedule& schedule, const Target& cpu, size_t buffer_bytes)
    : LinearCode(cpu, buffer_bytes),
      schedule_(schedule),
      transforms_(schedule.transforms()),
      window_(transforms_.window),
      widens_(schedule.in.type() != DataType::kF32),
      pairs_fit_(FirstTemporary(window_, registers()) > window_),
      even_(FirstTemporary(window_, registers())),
      odd_(even_ + 1),
      result_(even_ + 2),
      scratch_(even_ + 3) {}

int64_t InputGenerator::KernelBytes(int window) {
  constexpr int64_t kInstruction = 11, kFixed = 512, kWidening = 3;
  return kFixed + kInstruction * ((4L * window + kWidening) * window * window);
}

Xbyak::RegExp InputGenerator::WindowAt(int row, int column) const {
  const int64_t pixel = row * schedule_.workload.iw + column;
  return kSource + Offset(pixel * schedule_.in_pixel_bytes());
}

LinearCode::Term InputGenerator::WindowTerm(double coefficient, int row, int column) const {
  if (!widens_) return {coefficient, -1, WindowAt(row, column)};
  return {coefficient, -1, rsp + Offset((row * window_ + column) * vector_bytes())};
}

void InputGenerator::EmitWidening() {
  for (int row = rows_.first; row < rows_.last; ++row) {
    for (int column = columns_.first; column < columns_.last; ++column) {
      const auto widened = Vector(column % window_);
      LoadStored(schedule_.in.type(), widened, ptr[WindowAt(row, column)], false, widened);
      vmovups(ptr[WindowTerm(1, row, column).address], widened);
    }
  }
}

double InputGenerator::Even(int pair, int k) const {
  return (transforms_.input(1 + 2 * pair, k) + transforms_.input(2 + 2 * pair, k)) / 2;
}

double InputGenerator::Odd(int pair, int k) const {
  return (transforms_.input(1 + 2 * pair, k) - transforms_.input(2 + 2 * pair, k)) / 2;
}

size_t InputGenerator::Emit(const Span& rows, const Span& columns) {
  rows_ = rows;
  columns_ = columns;
  align(64);
  const size_t start = getSize();
  std::vector<double> constants;
  const int pairs = static_cast<int>(transforms_.pairs.size());
  for (int k = 0; k < window_; ++k) {
    for (int q = 0; q < pairs; ++q) {
      AddConstant(constants, Even(q, k));
      AddConstant(constants, Odd(q, k));
    }
    for (int row : transforms_.unpaired()) AddConstant(constants, transforms_.input(row, k));
  }
  HoldConstants(constants, scratch_ + 1, registers() - scratch_ - 1);
  const int64_t line = 64, widened_bytes = schedule_.elements() * vector_bytes();
  if (widens_) {
    mov(rax, rsp);
    sub(rsp, Offset(widened_bytes + line));
    and_(rsp, static_cast<int>(-line));
  }
  Xbyak::Label next;
  align(32);
  L(next);
  if (widens_) EmitWidening();
  for (int q = 0; q < pairs; ++q) {
    const int row = 1 + 2 * q;
    if (pairs_fit_) {
      EmitColumns(row, true);
      EmitRow(row, 0);
      EmitRow(row + 1, window_);
      continue;
    }
    for (int i : {row, row + 1}) {
      EmitColumns(i, false);
      EmitRow(i, 0);
    }
  }
  for (int row : transforms_.unpaired()) {
    EmitColumns(row, false);
    EmitRow(row, 0);
  }
  add(kSource, Offset(schedule_.input_step() * schedule_.in_pixel_bytes()));
  add(kTarget, Offset(schedule_.v_vector_bytes()));
  dec(kWindowsLeft);
  jnz(next, T_NEAR);
  if (widens_) mov(rsp, rax);
  vzeroupper();
  ret();
  return start;
}

void InputGenerator::EmitColumns(int row, bool pair) {
  for (int column = columns_.first; column < columns_.last; ++column) {
    std::vector<Term> all, even, odd;
    for (int k = rows_.first; k < rows_.last; ++k) {
      if (pair) {
        even.push_back(WindowTerm(Even(row / 2, k), k, column));
        odd.push_back(WindowTerm(Odd(row / 2, k), k, column));
      } else {
        all.push_back(WindowTerm(transforms_.input(row, k), k, column));
      }
    }
    if (!pair) {
      Sum(column, all, scratch_);
      continue;
    }
    Sum(even_, even, scratch_);
    Sum(odd_, odd, scratch_);
    vaddps(Vector(column), Vector(even_), Vector(odd_));
    vsubps(Vector(window_ + column), Vector(even_), Vector(odd_));
  }
}

void InputGenerator::EmitRow(int row, int first_register) {
  const auto terms = [&](const auto& coefficient) {
    std::vector<Term> list;
    for (int k = columns_.first; k < columns_.last; ++k) {
      list.push_back({coefficient(k), first_register + k, {}});
    }
    return list;
  };
  const int element = row * window_;
  for (int q = 0; q < static_cast<int>(transforms_.pairs.size()); ++q) {
    Sum(even_, terms([&](int k) { return Even(q, k); }), scratch_);
    Sum(odd_, terms([&](int k) { return Odd(q, k); }), scratch_);
    vaddps(Vector(result_), Vector(even_), Vector(odd_));
    vsubps(Vector(even_), Vector(even_), Vector(odd_));
    Store(element + 1 + 2 * q, result_);
    Store(element + 2 + 2 * q, even_);
  }
  for (int column : transforms_.unpaired()) {
    Sum(result_, terms([&](int k) { return transforms_.input(column, k); }), scratch_);
    Store(element + column, result_);
  }
}

void InputGenerator::Store(int element, int index) {
  const DataType type = schedule_.v_type();
  const int64_t place = schedule_.PlaceOf(element) * schedule_.in_element * ElementBytes(type);
  StoreAs(type, ptr[kTarget + Offset(place)], Vector(index), false, Vector(scratch_), Vector(scratch_));
}

}  // namespace tilesmith::winograd
