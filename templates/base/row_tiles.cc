#include "templates/base/row_tiles.h"

#include <map>

#include "layouts/base/check.h"

namespace tilesmith {

std::vector<TileRun> CutRow(const ConvWorkload& w, const RowCut& cut) {
  std::vector<TileRun> runs;
  ForEachRun(w, cut, [&](const TileRun& run) { runs.push_back(run); });
  return runs;
}

void AddTileKinds(const ConvWorkload& w, int64_t iw, std::span<const TileRun> tiles, PartKey& key) {
  key.Add(tiles.size());
  for (const TileRun& tile : tiles) {
    key.Add(tile.width, tile.count > 1, tile.edge);
    for (int64_t at = 0; tile.edge && at < tile.width * w.kw; ++at)
      key.Add(IsInside(w, iw, tile, at / w.kw, at % w.kw));
  }
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
