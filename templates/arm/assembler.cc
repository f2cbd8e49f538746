#include "templates/arm/assembler.h"

#include <bit>

#include "layouts/base/check.h"
#include "templates/base/image_strides.h"

namespace tilesmith::arm {
namespace {

using namespace vixl::aarch64;  // NOLINT(google-build-using-namespace)

// Beside those that VIXL takes for itself, x16 and x17.
const Register kPointer = x9, kValue = x10;
// All lanes that are used, those of the last LoadMask, and those that a comparison chose.
const PRegister kAll = p0, kPartial = p1, kChosen = p2;
constexpr int kKept = 2, kAllRegisters = 32;

Register X(const Reg& reg) {
  constexpr int kStack = 31;
  return reg.index == kStack ? sp : XRegister(reg.index);
}
VRegister Q(const Vec& value) { return VRegister(value.index, kQRegSize); }
VRegister V(const Vec& value) { return Q(value).V4S(); }
VRegister Bytes(const Vec& value) { return Q(value).V16B(); }
ZRegister Z(const Vec& value) { return ZRegister(value.index, kSRegSize); }

CPURegList Saved(int general) {
  constexpr int kFirst = 19;
  return CPURegList(CPURegister::kRegister, kXRegSize, kFirst, kFirst + general - 1);
}
const CPURegList kSavedVectors(CPURegister::kVRegister, kDRegSize, 8, 15);

}  // namespace

Assembler::Assembler(const Target& cpu, size_t buffer_bytes)
    : sve_(cpu.isa == Isa::kSve),
      registers_(cpu.vector_registers()),
      vector_bytes_(cpu.vector_floats() * kFloatBytes),
      masm_(buffer_bytes) {
  *masm_.GetCPUFeatures() = vixl::CPUFeatures::All();
}

std::span<const uint8_t> Assembler::Code() const {
  return {masm_.GetBuffer().GetStartAddress<const uint8_t*>(), masm_.GetBuffer().GetSizeInBytes()};
}

size_t Assembler::Begin(int saved) {
  constexpr int kLine = 64;
  Align(kLine);
  TILESMITH_CHECK(saved % 2 == 0, "the stack is aligned to pairs of registers");
  saved_ = saved;
  const size_t start = Position();
  masm_.PushCPURegList(kSavedVectors);
  if (saved > 0) masm_.PushCPURegList(Saved(saved));
  if (sve_) {
    masm_.Mov(kValue, vector_floats());
    masm_.Whilelo(kAll.VnS(), xzr, kValue);
  }
  return start;
}

void Assembler::End() {
  if (saved_ > 0) masm_.PopCPURegList(Saved(saved_));
  masm_.PopCPURegList(kSavedVectors);
  masm_.Ret();
}

void Assembler::Align(int bytes) {
  while (Position() % bytes != 0) masm_.Nop();
}

Register Assembler::Pointer(const Address& address) {
  if (address.constant != nullptr) {
    masm_.Adr(kPointer, address.constant);
    return kPointer;
  }
  Register base = X(address.base);
  if (address.scale > 0) {
    masm_.Add(kPointer, base,
              vixl::aarch64::Operand(X(address.index), LSL,
                                     std::countr_zero(static_cast<unsigned>(address.scale))));
    base = kPointer;
  }
  if (address.bytes == 0) return base;
  masm_.Add(kPointer, base, address.bytes);
  return kPointer;
}

MemOperand Assembler::Place(const Address& address) {
  Address without = address;
  without.bytes = 0;
  return MemOperand(Pointer(without), address.bytes);
}

void Assembler::Move(const Reg& to, const Reg& from) { masm_.Mov(X(to), X(from)); }
void Assembler::Move(const Reg& to, int64_t value) { masm_.Mov(X(to), value); }
void Assembler::Load(const Reg& to, const Address& from) { masm_.Ldr(X(to), Place(from)); }
void Assembler::LoadAddress(const Reg& to, const Address& of) { masm_.Mov(X(to), Pointer(of)); }
void Assembler::Add(const Reg& to, const Reg& value) { masm_.Add(X(to), X(to), X(value)); }
void Assembler::Add(const Reg& to, int64_t value) {
  if (value != 0) masm_.Add(X(to), X(to), value);
}
void Assembler::Add(const Reg& to, const Address& value) {
  masm_.Ldr(kValue, Place(value));
  masm_.Add(X(to), X(to), kValue);
}
void Assembler::Subtract(const Reg& to, const Reg& value) { masm_.Sub(X(to), X(to), X(value)); }
void Assembler::Subtract(const Reg& to, const Address& value) {
  masm_.Ldr(kValue, Place(value));
  masm_.Sub(X(to), X(to), kValue);
}
void Assembler::Multiply(const Reg& to, const Address& factor) {
  masm_.Ldr(kValue, Place(factor));
  masm_.Mul(X(to), X(to), kValue);
}
void Assembler::JumpTo(const Address& code) {
  masm_.Ldr(kValue, Place(code));
  masm_.Br(kValue);
}
void Assembler::JumpIfZero(const Reg& value, Label& label) { masm_.Cbz(X(value), &label); }
void Assembler::JumpIfBelow(const Reg& value, const Address& bound, Label& label) {
  masm_.Ldr(kValue, Place(bound));
  masm_.Cmp(X(value), kValue);
  masm_.B(&label, lo);
}
void Assembler::CountDown(const Reg& left, Label& again) {
  masm_.Subs(X(left), X(left), 1);
  masm_.B(&again, ne);
}

void Assembler::ReserveStack(int64_t bytes) {
  constexpr int64_t kLine = 64;
  stack_bytes_ = (bytes + kLine - 1) / kLine * kLine;
  masm_.Sub(sp, sp, stack_bytes_);
}
void Assembler::ReleaseStack() { masm_.Add(sp, sp, stack_bytes_); }

void Assembler::Prefetch(const Address& line) { masm_.Prfm(PLDL1KEEP, Place(line)); }

Vec Assembler::Kept() {
  next_kept_ = (next_kept_ + 1) % kKept;
  return {kAllRegisters - kKept + next_kept_};
}

Vec Assembler::In(const Operand& operand) {
  if (!operand.in_memory) return operand.vector;
  const Vec loaded = Kept();
  Load(loaded, operand.address);
  return loaded;
}

void Assembler::Load(const Vec& to, const Address& from) {
  sve_ ? masm_.Ld1w(Z(to), kAll.Zeroing(), SVEMemOperand(Pointer(from))) : masm_.Ldr(Q(to), Place(from));
}
void Assembler::Store(const Address& to, const Vec& from) {
  sve_ ? masm_.St1w(Z(from), kAll, SVEMemOperand(Pointer(to))) : masm_.Str(Q(from), Place(to));
}
void Assembler::Copy(const Vec& to, const Vec& from) {
  sve_ ? masm_.Mov(Z(to), Z(from)) : masm_.Mov(Bytes(to), Bytes(from));
}
void Assembler::Zero(const Vec& value) { sve_ ? masm_.Dup(Z(value), 0) : masm_.Movi(V(value), 0); }
void Assembler::Add(const Vec& to, const Vec& a, const Operand& b) {
  const Vec second = In(b);
  sve_ ? masm_.Fadd(Z(to), Z(a), Z(second)) : masm_.Fadd(V(to), V(a), V(second));
}
void Assembler::Subtract(const Vec& to, const Vec& a, const Operand& b) {
  const Vec second = In(b);
  sve_ ? masm_.Fsub(Z(to), Z(a), Z(second)) : masm_.Fsub(V(to), V(a), V(second));
}
void Assembler::Multiply(const Vec& to, const Vec& a, const Operand& b) {
  const Vec second = In(b);
  sve_ ? masm_.Fmul(Z(to), Z(a), Z(second)) : masm_.Fmul(V(to), V(a), V(second));
}
void Assembler::MultiplyAdd(const Vec& acc, const Vec& a, const Operand& b) {
  const Vec second = In(b);
  sve_ ? masm_.Fmla(Z(acc), kAll.Merging(), Z(acc), Z(a), Z(second)) : masm_.Fmla(V(acc), V(a), V(second));
}
void Assembler::MultiplySubtract(const Vec& acc, const Vec& a, const Operand& b) {
  const Vec second = In(b);
  sve_ ? masm_.Fmls(Z(acc), kAll.Merging(), Z(acc), Z(a), Z(second)) : masm_.Fmls(V(acc), V(a), V(second));
}
void Assembler::MultiplyThenAdd(const Vec& to, const Vec& factor, const Operand& b) {
  const Vec sum = Kept();
  b.in_memory ? Load(sum, b.address) : Copy(sum, b.vector);
  MultiplyAdd(sum, to, factor);
  Copy(to, sum);
}

void Assembler::Choose(const Vec& to, const Vec& a, const Vec& b, bool less) {
  const Vec &larger = less ? b : a, &smaller = less ? a : b;
  if (sve_) {
    masm_.Fcmgt(kChosen.VnS(), kAll.Zeroing(), Z(larger), Z(smaller));
    masm_.Sel(Z(to), kChosen, Z(a), Z(b));
    return;
  }
  const Vec chosen = Kept();
  masm_.Fcmgt(V(chosen), V(larger), V(smaller));
  masm_.Bsl(Bytes(chosen), Bytes(a), Bytes(b));
  Copy(to, chosen);
}

void Assembler::LoadElement(const Vec& to, const Address& from) {
  sve_ ? masm_.Ld1rw(Z(to), kAll.Zeroing(), SVEMemOperand(Pointer(from)))
       : masm_.Ldr(VRegister(to.index, kSRegSize), Place(from));
}
void Assembler::MultiplyAddElement(const Vec& acc, const Operand& factor, const Operand& element) {
  Vec one = element.vector;
  if (element.in_memory) LoadElement(one = Kept(), element.address);
  const Vec all = In(factor);
  if (sve_) return MultiplyAdd(acc, all, one);
  masm_.Fmla(V(acc), V(all), VRegister(one.index, kSRegSize), 0);
}

void Assembler::PreparePairs() { TILESMITH_CHECK(false, "no products of bf16"); }
void Assembler::LoadHalfPair(const Vec&, const Address&) { PreparePairs(); }
void Assembler::MultiplyAddPair(const Vec&, const Operand&, const Operand&) { PreparePairs(); }

Address Assembler::Constant(const std::vector<uint32_t>& pattern) {
  TILESMITH_CHECK(static_cast<int>(pattern.size()) == vector_floats());
  return {.constant = &constants_[pattern]};
}

void Assembler::EmitConstants() {
  constexpr int kLine = 64;
  Align(kLine);
  for (auto& [pattern, label] : constants_) {
    const vixl::ExactAssemblyScope scope(&masm_, pattern.size() * sizeof(uint32_t));
    masm_.bind(&label);
    for (const uint32_t word : pattern) masm_.dc32(word);
  }
  masm_.FinalizeCode();
  masm_.GetBuffer()->SetExecutable();
  auto* const begin = masm_.GetBuffer()->GetStartAddress<char*>();
  __builtin___clear_cache(begin, begin + masm_.GetBuffer()->GetSizeInBytes());
}

void Assembler::LoadMask(int count, const Vec&) {
  masked_lanes_ = count;
  if (!sve_) return;
  masm_.Mov(kValue, count);
  masm_.Whilelo(kPartial.VnS(), xzr, kValue);
}

void Assembler::LoadLanes(const Vec& to, const Address& from, int count, int element_bytes) {
  const int whole = count < 2 ? 1 : count < 4 ? 2 : 4;  // loaded together
  masm_.Ldr(VRegister(to.index, whole * element_bytes * 8), Place(from));
  if (count != 3) return;
  Address third = from;
  third.bytes += 2 * element_bytes;
  masm_.Ld1(element_bytes == 4 ? Q(to).S() : Q(to).H(), 2, MemOperand(Pointer(third)));
}

void Assembler::StoreLanes(const Address& to, const Vec& from, int count, int element_bytes) {
  const int whole = count < 2 ? 1 : count < 4 ? 2 : 4;
  masm_.Str(VRegister(from.index, whole * element_bytes * 8), Place(to));
  if (count != 3) return;
  Address third = to;
  third.bytes += 2 * element_bytes;
  masm_.St1(element_bytes == 4 ? Q(from).S() : Q(from).H(), 2, MemOperand(Pointer(third)));
}

void Assembler::LoadStored(DataType type, const Vec& to, const Address& from, bool partial, const Vec&) {
  constexpr int kHalfFloat = 16;
  const bool halves = type == DataType::kBf16;
  if (!halves && !partial) return Load(to, from);
  if (sve_) {
    const PRegister lanes = partial ? kPartial : kAll;
    const SVEMemOperand place(Pointer(from));
    halves ? masm_.Ld1h(Z(to), lanes.Zeroing(), place) : masm_.Ld1w(Z(to), lanes.Zeroing(), place);
    if (halves) masm_.Lsl(Z(to), Z(to), kHalfFloat);
    return;
  }
  LoadLanes(to, from, partial ? masked_lanes_ : vector_floats(), static_cast<int>(ElementBytes(type)));
  if (halves) masm_.Shll(V(to), Q(to).V4H(), kHalfFloat);
}

void Assembler::StoreAs(DataType type, const Address& to, const Vec& from, bool partial, const Vec&,
                        const Vec& scratch) {
  const bool halves = type == DataType::kBf16;
  if (!halves && !partial) return Store(to, from);
  if (halves) RoundToWords(scratch, from);
  const Vec& stored = halves ? scratch : from;
  if (sve_) {
    const PRegister lanes = partial ? kPartial : kAll;
    const SVEMemOperand place(Pointer(to));
    halves ? masm_.St1h(Z(stored), lanes, place) : masm_.St1w(Z(stored), lanes, place);
    return;
  }
  StoreLanes(to, stored, partial ? masked_lanes_ : vector_floats(), static_cast<int>(ElementBytes(type)));
}

// Half of the last place that stays is added, less one bit where the number below it is even: what carries
// over rounds up. Where that would make a NaN something else, all bits are set, which is another NaN.
void Assembler::RoundToWords(const Vec& words, const Vec& from) {
  constexpr int kHalfFloat = 16, kAlmostHalf = 0x7fff;
  const Vec other = Kept();
  if (sve_) {
    masm_.Lsr(Z(words), Z(from), kHalfFloat);
    masm_.And(Z(words), Z(words), 1);
    masm_.Dup(Z(other), kAlmostHalf);
    masm_.Add(Z(words), Z(words), Z(other));
    masm_.Add(Z(words), Z(words), Z(from));
    masm_.Fcmuo(kChosen.VnS(), kAll.Zeroing(), Z(from), Z(from));
    masm_.Dup(Z(other), -1);
    masm_.Sel(Z(words), kChosen, Z(other), Z(words));
    masm_.Lsr(Z(words), Z(words), kHalfFloat);
    return;
  }
  masm_.Ushr(V(words), V(from), kHalfFloat);
  masm_.Movi(V(other), 1);
  masm_.And(Bytes(words), Bytes(words), Bytes(other));
  masm_.Movi(V(other), kAlmostHalf);
  masm_.Add(V(words), V(words), V(other));
  masm_.Add(V(words), V(words), V(from));
  masm_.Fcmeq(V(other), V(from), V(from));
  masm_.Orn(Bytes(words), Bytes(words), Bytes(other));
  masm_.Shrn(Q(words).V4H(), V(words), kHalfFloat);
}

void Assembler::ClearLanesFrom(int count, const Vec& value) {
  std::vector<uint32_t> pattern(vector_floats(), 0);
  for (int lane = 0; lane < count; ++lane) pattern[lane] = UINT32_MAX;
  const Vec lanes = In(Constant(pattern));
  sve_ ? masm_.And(Z(value).VnD(), Z(value).VnD(), Z(lanes).VnD())
       : masm_.And(Bytes(value), Bytes(value), Bytes(lanes));
}

}  // namespace tilesmith::arm
