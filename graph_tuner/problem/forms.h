// The options of the layout problem's variables, and what they are found by.
#pragma once

#include <vector>

#include "graph_tuner/costs/layout_forms.h"
#include "graph_tuner/plan/crossings.h"
#include "ops/conv/fusion.h"
#include "tuner/records/record.h"

namespace tilesmith {

// Which of the forms that is for a tensor of this shape; one more where it is none yet.
inline int IndexOfForm(std::vector<Layout>& forms, const Shape& shape, const Layout& layout) {
  for (size_t i = 0; i < forms.size(); ++i)
    if (SameForm(shape, forms[i], layout)) return int(i);
  forms.push_back(layout);
  return int(forms.size()) - 1;
}

// A layout, and whose what is computed with it is.
struct Form {
  Layout layout;
  Ownership owned;
};

inline int IndexOfForm(std::vector<Form>& forms, const Shape& shape, const Form& form) {
  for (size_t i = 0; i < forms.size(); ++i)
    if (forms[i].owned == form.owned && SameForm(shape, forms[i].layout, form.layout)) return int(i);
  forms.push_back(form);
  return int(forms.size()) - 1;
}

// A record with one way to deal its tasks.
struct DealtRecord {
  const Record* record = nullptr;
  Deal deal;
};

// A pair of nodes that there are fused candidates for.
struct Fusion {
  FusablePair pair;
  std::vector<DealtRecord> records;
  std::vector<Form> forms;  // distinct ones that the records read

  int Index(const DealtRecord& dealt) const {
    std::vector<Form> known = forms;
    return IndexOfForm(known, pair.workload.input_shape(), {dealt.record->layouts.in, dealt.deal.ownership});
  }
};

}  // namespace tilesmith
