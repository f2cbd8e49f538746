// The names under which costs know layouts that are the same memory for a tensor.
#pragma once

#include "layouts/layout.h"
#include "templates/base/conv_template.h"

namespace tilesmith {

// The one name that all layouts share which are the same memory for a tensor of this shape: NHWC is NCHW[C]c,
// and of one pixel there is a single block, or NCHW where nothing is padded. Same memory as `layout`.
Layout CanonicalLayout(const Shape& shape, const Layout& layout);

// Whether two layouts are one and the same for this tensor; any rank.
bool SameForm(const Shape& shape, const Layout& a, const Layout& b);
// Whether a tensor in `have` is as it would be in a network all in `order`: bytes have their own type in it.
bool HasOrder(const Shape& shape, const Layout& have, const Layout& order);

// What a conversion of a tensor is known by: canonical layouts, `in` and `out` the same when a copy is
// enough.
LayoutPair ConversionOf(const Shape& shape, const Layout& from, const Layout& to);

}  // namespace tilesmith
