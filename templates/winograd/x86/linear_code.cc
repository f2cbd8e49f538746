#include "templates/winograd/x86/linear_code.h"

#include <algorithm>
#include <cmath>

namespace tilesmith::winograd {

using Xbyak::Xmm;

void AddConstant(std::vector<double>& constants, double value) {
  const double magnitude = std::abs(value);
  if (magnitude == 0 || magnitude == 1) return;
  if (std::find(constants.begin(), constants.end(), magnitude) != constants.end()) return;
  constants.push_back(magnitude);
}

void LinearCode::HoldConstants(const std::vector<double>& values, int first, int count) {
  held_.clear();
  for (size_t i = 0; i < values.size() && static_cast<int>(i) < count; ++i) {
    const int index = first + static_cast<int>(i);
    vmovups(Vector(index), Splat(static_cast<float>(values[i])));
    held_[values[i]] = index;
  }
}

void LinearCode::Sum(int to, std::vector<Term> terms, int scratch) {
  std::erase_if(terms, [](const Term& term) { return term.coefficient == 0; });
  if (terms.empty()) return Zero(Vector(to));
  // Begin with what needs no multiplication, registers last so that they can be operands of an addition.
  const auto rank = [](const Term& term) {
    return term.coefficient == 1 ? (term.index < 0 ? 0 : 1) : term.coefficient > 0 ? 2 : 3;
  };
  std::stable_sort(terms.begin(), terms.end(),
                   [&](const Term& a, const Term& b) { return rank(a) < rank(b); });
  size_t next = 1;
  const bool both_plain =
      terms.size() > 1 && terms[0].coefficient == 1 && std::abs(terms[1].coefficient) == 1;
  if (both_plain && terms[0].index >= 0) {
    const Xmm a = Vector(terms[0].index), b = Vector(terms[1].index < 0 ? to : terms[1].index);
    if (terms[1].index < 0) vmovups(b, ptr[terms[1].address]);
    terms[1].coefficient > 0 ? vaddps(Vector(to), a, b) : vsubps(Vector(to), a, b);
    next = 2;
  } else {
    Start(to, terms[0]);
  }
  for (; next < terms.size(); ++next) Add(to, terms[next], scratch);
}

void LinearCode::Start(int to, const Term& term) {
  const Xmm result = Vector(to);
  if (term.coefficient == 1) {
    term.index < 0 ? vmovups(result, ptr[term.address]) : vmovaps(result, Vector(term.index));
    return;
  }
  const auto found = held_.find(term.coefficient);
  if (found != held_.end()) {
    const Xmm constant = Vector(found->second);
    term.index < 0 ? vmulps(result, constant, ptr[term.address])
                   : vmulps(result, constant, Vector(term.index));
    return;
  }
  const Xbyak::Address constant = Splat(static_cast<float>(term.coefficient));
  if (term.index < 0) {
    vmovups(result, ptr[term.address]);
    vmulps(result, result, constant);
  } else {
    vmulps(result, Vector(term.index), constant);
  }
}

void LinearCode::Add(int to, const Term& term, int scratch) {
  const Xmm result = Vector(to);
  const bool negative = term.coefficient < 0;
  const double magnitude = std::abs(term.coefficient);
  const auto emit = [&](const Xmm& a, const Xbyak::Operand& b) {
    negative ? vfnmadd231ps(result, a, b) : vfmadd231ps(result, a, b);
  };
  const auto plain = [&](const Xbyak::Operand& value) {
    negative ? vsubps(result, result, value) : vaddps(result, result, value);
  };
  if (magnitude == 1) {
    term.index < 0 ? plain(ptr[term.address]) : plain(Vector(term.index));
    return;
  }
  const auto found = held_.find(magnitude);
  if (term.index >= 0) {
    found != held_.end() ? emit(Vector(term.index), Vector(found->second))
                         : emit(Vector(term.index), Splat(static_cast<float>(magnitude)));
    return;
  }
  const Xmm constant = Vector(found != held_.end() ? found->second : scratch);
  if (found == held_.end()) vmovups(constant, Splat(static_cast<float>(magnitude)));
  emit(constant, ptr[term.address]);
}

}  // namespace tilesmith::winograd
