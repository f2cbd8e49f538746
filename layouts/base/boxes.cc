#include "layouts/base/boxes.h"

#include <algorithm>

namespace tilesmith {
namespace {

// Tasks [first, last) of one line of the grid, or of whole lines [line, end_line).
Box BoxOf(const TaskGrid& grid, int64_t image, TaskRange lines, TaskRange inner) {
  const TaskRange channels = grid.channels_inner ? inner : lines, rows = grid.channels_inner ? lines : inner;
  const auto part = [](int64_t at, int64_t all) {
    return static_cast<double>(at) / static_cast<double>(all);
  };
  const auto row = [&](int64_t at) {
    return at == grid.rows ? 1 : std::min(part(at * grid.part_units, grid.height * grid.row_units), 1.0);
  };
  return {.images = {part(image, grid.images), part(image + 1, grid.images)},
          .channels = {part(channels.begin, grid.channels), part(channels.end, grid.channels)},
          .rows = {row(rows.begin), row(rows.end)}};
}

// Adds the box or, where it goes on where the last one ends, makes that one larger.
void Append(const Box& box, std::vector<Box>& boxes) {
  boxes.push_back(box);
  constexpr AxisPart Box::*kAxes[] = {&Box::images, &Box::channels, &Box::rows};
  const auto merge = [&](Box& a, const Box& b) {
    int unlike = 0;
    AxisPart Box::*along = nullptr;
    for (const auto axis : kAxes) {
      if (a.*axis == b.*axis) continue;
      ++unlike;
      along = axis;
    }
    if (unlike != 1 || (a.*along).end != (b.*along).begin) return false;
    (a.*along).end = (b.*along).end;
    return true;
  };
  while (boxes.size() > 1 && merge(boxes[boxes.size() - 2], boxes.back())) boxes.pop_back();
}

// Where boxes begin and end along one axis, ascending.
std::vector<double> Cuts(std::span<const Box> a, std::span<const Box> b, AxisPart Box::*axis) {
  std::vector<double> cuts;
  cuts.reserve(2 * (a.size() + b.size()));
  for (const std::span<const Box>& boxes : {a, b}) {
    for (const Box& box : boxes) {
      cuts.push_back((box.*axis).begin);
      cuts.push_back((box.*axis).end);
    }
  }
  std::sort(cuts.begin(), cuts.end());
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  return cuts;
}

bool Holds(const AxisPart& part, double at) { return part.begin <= at && at < part.end; }

}  // namespace

std::vector<Box> BoxesOf(const TaskGrid& grid, Split split, int thread, int threads) {
  std::vector<Box> boxes;
  if (grid.height == 0) return boxes;
  const Share share(grid, split, thread, threads);
  const int64_t inner = grid.channels_inner ? grid.channels : grid.rows;
  const int64_t lines = grid.channels_inner ? grid.rows : grid.channels;
  share.ForEachRange(0, share.tasks(), thread, [&](TaskRange range) {
    for (int64_t task = range.begin; task < range.end;) {
      const int64_t at = task % inner, line = task / inner % lines, image = task / inner / lines;
      const int64_t left = range.end - task;
      const int64_t whole = at == 0 ? std::min(left / inner, lines - line) : 0;
      const int64_t count = whole > 0 ? whole * inner : std::min(left, inner - at);
      const TaskRange outer{line, line + std::max<int64_t>(whole, 1)};
      Append(BoxOf(grid, image, outer, whole > 0 ? TaskRange{0, inner} : TaskRange{at, at + count}), boxes);
      task += count;
    }
  });
  return boxes;
}

double VolumeOutside(std::span<const Box> boxes, std::span<const Box> except) {
  const std::vector<double> images = Cuts(boxes, except, &Box::images);
  const std::vector<double> channels = Cuts(boxes, except, &Box::channels);
  const std::vector<double> rows = Cuts(boxes, except, &Box::rows);
  double volume = 0;
  for (size_t i = 0; i + 1 < images.size(); ++i) {
    for (size_t c = 0; c + 1 < channels.size(); ++c) {
      for (size_t r = 0; r + 1 < rows.size(); ++r) {
        const auto in = [&](const Box& box) {
          return Holds(box.images, images[i]) && Holds(box.channels, channels[c]) && Holds(box.rows, rows[r]);
        };
        if (std::ranges::none_of(boxes, in) || std::ranges::any_of(except, in)) continue;
        volume += (images[i + 1] - images[i]) * (channels[c + 1] - channels[c]) * (rows[r + 1] - rows[r]);
      }
    }
  }
  return volume;
}

}  // namespace tilesmith
