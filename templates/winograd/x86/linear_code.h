// Straight-line code for small linear maps of vectors: what both transform generators are made of.
#pragma once

#include <map>
#include <vector>

#include "templates/x86/vector_code.h"

namespace tilesmith::winograd {

class LinearCode : public x86::VectorCode {
 protected:
  using VectorCode::VectorCode;

  // coefficient * (vector register, or vector in memory where `index` is negative).
  struct Term {
    double coefficient = 0;
    int index = -1;
    Xbyak::RegExp address;
  };

  // Emits loads of the first of `values` into registers [first, first + count), where Sum finds them. Forgets
  // those of an earlier call.
  void HoldConstants(const std::vector<double>& values, int first, int count);

  // register `to` = sum of the terms; those with coefficient 0 cost nothing. Precondition: `to` and `scratch`
  // are no operands.
  void Sum(int to, std::vector<Term> terms, int scratch);

 private:
  void Start(int to, const Term& term);
  void Add(int to, const Term& term, int scratch);

  std::map<double, int> held_;  // positive constants to registers
};

// Distinct absolute values, the first ones first, without 0 and 1, which need no multiplication.
void AddConstant(std::vector<double>& constants, double value);

}  // namespace tilesmith::winograd
