// The options of the layout problem's variables, and what they are found by.
#pragma once

#include <algorithm>
#include <iterator>
#include <vector>

#include "graph_tuner/costs/layout_forms.h"
#include "graph_tuner/plan/crossings.h"
#include "graph_tuner/problem/build_problem.h"
#include "ops/conv/fusion.h"

namespace tilesmith {

// A layout, and whose what is computed with it is.
struct Form {
  Layout layout;
  Ownership owned;
};

inline bool SameForm(const Shape& shape, const Form& a, const Form& b) {
  return a.owned == b.owned && SameForm(shape, a.layout, b.layout);
}

// Which of the forms, layouts or with their owners, that is for a tensor of this shape; their number where it
// is none of them.
template <typename AnyForm>
int FindForm(const std::vector<AnyForm>& forms, const Shape& shape, const AnyForm& form) {
  const auto found =
      std::ranges::find_if(forms, [&](const AnyForm& known) { return SameForm(shape, known, form); });
  return static_cast<int>(found - forms.begin());
}

// The same; one more where it is none yet.
template <typename AnyForm>
int IndexOfForm(std::vector<AnyForm>& forms, const Shape& shape, const AnyForm& form) {
  const int index = FindForm(forms, shape, form);
  if (index == std::ssize(forms)) forms.push_back(form);
  return index;
}

// A pair of nodes that there are fused candidates for.
struct Fusion {
  FusablePair pair;
  std::vector<DealtRecord> records;
  std::vector<Form> forms;    // distinct ones that the records read
  std::vector<bool> as_even;  // of each, whether one of them is of a deal so (Deal::as_even)

  int Index(const DealtRecord& dealt) const {
    return FindForm(forms, pair.workload.input_shape(), {dealt.record->layouts.in, dealt.deal.ownership});
  }
};

}  // namespace tilesmith
