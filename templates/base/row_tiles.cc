#include "templates/base/row_tiles.h"

#include <algorithm>
#include <map>

#include "layouts/base/check.h"

namespace tilesmith {
namespace {

// The position after the last one whose last tap is inside an input row of `iw`; 0 when none is.
int64_t InsideEnd(const ConvWorkload& w, int64_t iw) {
  const int64_t last_tap =
      iw - 1 + w.pw - (w.kw - 1) * (w.dw + 1);  // of a position's first tap, before padding
  return last_tap < 0 ? 0 : last_tap / w.sw + 1;
}

}  // namespace

std::vector<TileRun> CutRow(const ConvWorkload& w, const RowCut& cut) {
  const int64_t reach = (w.kw - 1) * (w.dw + 1);
  const int64_t inside_end = InsideEnd(w, cut.iw);
  const auto is_edge = [&](int64_t first, int64_t width) {
    return first * w.sw - w.pw < 0 || (first + width - 1) * w.sw - w.pw + reach >= cut.iw;
  };
  const int64_t count = (cut.ow + cut.width - 1) / cut.width;
  std::vector<TileRun> runs;
  int64_t first = 0;
  for (int64_t i = 0; i < count;) {
    const int64_t wider = cut.balance ? cut.ow % count : 0;  // so many tiles are one wider
    const int64_t width = cut.balance ? cut.ow / count + (i < wider) : std::min(cut.width, cut.ow - first);
    const bool edge = is_edge(first, width);
    int64_t equal = 1;
    if (!edge) {
      const int64_t as_wide = !cut.balance ? (cut.ow - first) / width : i < wider ? wider - i : count - i;
      equal = std::min(as_wide, (inside_end - first) / width);
    }
    runs.push_back({static_cast<int>(first), static_cast<int>(width), static_cast<int>(equal), edge});
    first += equal * width;
    i += equal;
  }
  return runs;
}

int64_t EdgePositions(const ConvWorkload& w) {
  const int64_t inside_begin = (w.pw + w.sw - 1) / w.sw;
  return w.ow - std::max<int64_t>(0, std::min(InsideEnd(w, w.iw), w.ow) - inside_begin);
}

bool CanFlatten(const ConvWorkload& w) {
  return w.kh == 1 && w.kw == 1 && w.sh == 1 && w.sw == 1 && w.ph == 0 && w.pw == 0 && w.oh == w.ih &&
         w.ow == w.iw;
}

ConvWorkload Flattened(ConvWorkload w, int64_t width) {
  if (width == 0) return w;
  w.ih = w.oh = w.ih * w.iw / width;
  w.iw = w.ow = width;
  return w;
}

std::vector<int64_t> LongerRowWidths(const ConvWorkload& w) {
  std::vector<int64_t> widths = {0};
  const int64_t pixels = w.ih * w.iw;
  for (int64_t parts : {1, 2, 4, 7, 8, 14, 16, 28}) {
    if (CanFlatten(w) && pixels % parts == 0 && pixels / parts > w.iw) widths.push_back(pixels / parts);
  }
  return widths;
}

std::vector<InputRow> InputRowsOf(const ConvWorkload& w, int64_t output_rows) {
  std::map<int64_t, InputRow> rows;
  for (int64_t output_row = 0; output_row < output_rows; ++output_row) {
    for (int64_t kernel_row = 0; kernel_row < w.kh; ++kernel_row) {
      const int64_t offset = output_row * w.sh + kernel_row * (w.dh + 1);
      InputRow& row = rows[offset];
      row.offset = offset;
      row.taps.push_back({static_cast<int>(output_row), static_cast<int>(kernel_row)});
    }
  }
  std::vector<InputRow> ascending;
  ascending.reserve(rows.size());
  for (auto& [offset, row] : rows) ascending.push_back(std::move(row));
  return ascending;
}

uint64_t RowsInside(const std::vector<InputRow>& rows, int64_t top, int64_t ih) {
  TILESMITH_CHECK(rows.size() <= kMaxInputRows);
  uint64_t inside = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    const int64_t row = top + rows[i].offset;
    if (row >= 0 && row < ih) inside |= uint64_t{1} << i;
  }
  return inside;
}

}  // namespace tilesmith
