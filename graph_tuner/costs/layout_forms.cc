#include "graph_tuner/costs/layout_forms.h"

#include "ops/base/quantization.h"

namespace tilesmith {

Layout CanonicalLayout(const Shape& shape, const Layout& layout) {
  if (shape.size() > 4) return layout;
  const Dims4 dims = ToDims4(shape);
  const int64_t padded = layout.PaddedChannels(dims.c);
  const bool is_pixel = dims.h * dims.w == 1;
  if (!is_pixel && !layout.is_nhwc()) return layout;
  const int64_t block = !is_pixel ? dims.c : padded == dims.c ? 1 : padded;
  return block >= 1 && block <= Layout::kMaxBlock ? Layout::Blocked(block, layout.type()) : layout;
}

bool SameForm(const Shape& shape, const Layout& a, const Layout& b) {
  return a == b || (shape.size() <= 4 && SameMemory(shape, a, b));
}

bool HasOrder(const Shape& shape, const Layout& have, const Layout& order) {
  return SameForm(shape, have, IsByte(have.type()) ? order.WithType(have.type()) : order);
}

LayoutPair ConversionOf(const Shape& shape, const Layout& from, const Layout& to) {
  return {CanonicalLayout(shape, SameMemory(shape, from, to) ? to : from), CanonicalLayout(shape, to)};
}

}  // namespace tilesmith
