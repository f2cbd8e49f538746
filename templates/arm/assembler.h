// The vocabulary of generated kernels (templates/code/vector_code.h) in NEON and SVE, by VIXL: Vector(i) is
// v or z register i. Two of the 32 are kept for operands that are in memory, and for masks of comparisons. Of
// SVE's registers the first Target::sve_bytes are used.
#pragma once

#define VIXL_INCLUDE_TARGET_A64  // of VIXL's CPUs, this one
#include <aarch64/macro-assembler-aarch64.h>

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "layouts/base/target.h"
#include "layouts/data_type.h"

namespace tilesmith::arm {

using Label = vixl::aarch64::Label;

struct Reg {
  int index = 31;  // the stack's pointer
  bool operator==(const Reg&) const = default;
};
struct Vec {
  int index = 0;
};
// base + bytes + index * scale, or a constant.
struct Address {
  Reg base = {};
  int64_t bytes = 0;
  Reg index = {};
  int scale = 0;  // 0: no index
  Label* constant = nullptr;
};
// A register, or a vector in memory.
struct Operand {
  Operand(const Vec& value) : vector(value) {}                        // NOLINT(google-explicit-constructor)
  Operand(const Address& place) : in_memory(true), address(place) {}  // NOLINT(google-explicit-constructor)
  bool in_memory = false;
  Vec vector = {};
  Address address = {};
};

// General register number `index`: 0 to 5 are arguments, and like 6 to 8 nobody's; Begin saves those from 9
// to 14.
inline Reg General(int index) {
  constexpr int kFirstSaved = 9, kFirstOfCaller = 19;
  return {index < kFirstSaved ? index : index - kFirstSaved + kFirstOfCaller};
}

// What was streamed is seen by other threads in the order in which all stores are.
inline void FenceStreams() {}

class Assembler {
 public:
  std::span<const uint8_t> Code() const;

 protected:
  // Precondition: cpu.isa is NEON or SVE.
  Assembler(const Target& cpu, size_t buffer_bytes);

  int registers() const { return registers_; }
  int64_t vector_bytes() const { return vector_bytes_; }
  int vector_floats() const { return static_cast<int>(vector_bytes_ / sizeof(float)); }
  static Vec Vector(int index) { return {index}; }

  size_t Begin(int saved = 0);
  void End();
  void Align(int bytes);
  size_t Position() const { return masm_.GetCursorOffset(); }

  static Address At(const Reg& base, int64_t bytes = 0) { return {.base = base, .bytes = bytes}; }
  static Address At(const Reg& base, const Reg& index, int scale, int64_t bytes = 0) {
    return {.base = base, .bytes = bytes, .index = index, .scale = scale};
  }
  static void LoadElementUnit(const Reg&) {}
  static Address ElementAt(const Reg& base, int64_t bytes, const Reg&) { return At(base, bytes); }

  void Move(const Reg& to, const Reg& from);
  void Move(const Reg& to, int64_t value);
  void Load(const Reg& to, const Address& from);
  void LoadAddress(const Reg& to, const Address& of);
  void Add(const Reg& to, const Reg& value);
  void Add(const Reg& to, const Address& value);
  void Add(const Reg& to, int64_t value);
  void Subtract(const Reg& to, const Reg& value);
  void Subtract(const Reg& to, const Address& value);
  void Subtract(const Reg& to, int64_t value) { Add(to, -value); }
  void Multiply(const Reg& to, const Address& factor);
  void Bind(Label& label) { masm_.Bind(&label); }
  void JumpTo(Label& label) { masm_.B(&label); }
  void JumpTo(const Address& code);
  void JumpIfZero(const Reg& value, Label& label);
  void JumpIfBelow(const Reg& value, const Address& bound, Label& label);
  void CountDown(const Reg& left, Label& again);
  static Reg Stack() { return {}; }
  void ReserveStack(int64_t bytes);
  void ReleaseStack();
  void Prefetch(const Address& line);

  void Load(const Vec& to, const Address& from);
  void Store(const Address& to, const Vec& from);
  void StoreStreaming(const Address& to, const Vec& from) { Store(to, from); }
  void Copy(const Vec& to, const Vec& from);
  void Zero(const Vec& value);
  void Add(const Vec& to, const Vec& a, const Operand& b);
  void Subtract(const Vec& to, const Vec& a, const Operand& b);
  void Multiply(const Vec& to, const Vec& a, const Operand& b);
  void Max(const Vec& to, const Vec& a, const Operand& b) { Choose(to, a, In(b), false); }
  void Min(const Vec& to, const Vec& a, const Operand& b) { Choose(to, a, In(b), true); }
  void MultiplyAdd(const Vec& acc, const Vec& a, const Operand& b);
  void MultiplySubtract(const Vec& acc, const Vec& a, const Operand& b);
  void MultiplyThenAdd(const Vec& to, const Vec& factor, const Operand& b);
  // NEON multiplies by one lane.
  void LoadElement(const Vec& to, const Address& from);
  void MultiplyAddElement(const Vec& acc, const Operand& factor, const Operand& element);
  // No template multiplies bf16 here.
  void PreparePairs();
  void LoadHalfPair(const Vec& to, const Address& from);
  void MultiplyAddPair(const Vec& acc, const Operand& factor, const Operand& pair);

  Address Constant(const std::vector<uint32_t>& pattern);
  void EmitConstants();

  static bool masks_in_vectors() { return false; }
  void LoadMask(int count, const Vec& in_vector);
  void LoadStored(DataType type, const Vec& to, const Address& from, bool partial, const Vec& mask);
  void StoreAs(DataType type, const Address& to, const Vec& from, bool partial, const Vec& mask,
               const Vec& scratch);
  static bool RoundsInSteps(DataType type) { return type == DataType::kBf16; }
  void ClearLanesFrom(int count, const Vec& value);

 private:
  Vec Kept();                      // one of the two
  Vec In(const Operand& operand);  // loaded where it is in memory
  // Of an operand in memory: where it is for instructions that take displacements, or none.
  vixl::aarch64::MemOperand Place(const Address& address);
  vixl::aarch64::Register Pointer(const Address& address);
  // to = a > b ? a : b, or a < b ? a : b where `less`.
  void Choose(const Vec& to, const Vec& a, const Vec& b, bool less);
  // The first `count` elements of 2 or 4 bytes.
  void LoadLanes(const Vec& to, const Address& from, int count, int element_bytes);
  void StoreLanes(const Address& to, const Vec& from, int count, int element_bytes);
  // The upper half of each float, rounded, as words in the lower half of each lane, or of NEON's vector.
  void RoundToWords(const Vec& words, const Vec& from);

  const bool sve_;
  const int registers_;
  const int64_t vector_bytes_;
  int saved_ = 0;         // general registers, by the last Begin
  int masked_lanes_ = 0;  // of the last LoadMask
  int next_kept_ = 0;
  int64_t stack_bytes_ = 0;
  vixl::aarch64::MacroAssembler masm_;
  std::map<std::vector<uint32_t>, Label> constants_;
};

}  // namespace tilesmith::arm
