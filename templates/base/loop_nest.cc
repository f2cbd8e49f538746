#include "templates/base/loop_nest.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace tilesmith {
namespace {

// A line and what is said about it.
using Line = std::pair<std::string, std::string>;

std::string LoopText(const Loop& loop) {
  if (loop.kind == LoopKind::kVector) return fmt::format("vector of {} {}", loop.trips, loop.dim);
  const std::string by = loop.step > 1 ? fmt::format(" by {}", loop.step) : "";
  const std::string text = fmt::format("for {}{}, {} times", loop.dim, by, loop.trips);
  if (loop.kind == LoopKind::kTasks) return "parallel " + text;
  return loop.kind == LoopKind::kUnrolled ? "unrolled " + text : text;
}

void AddLoops(const std::vector<Loop>& loops, size_t& depth, std::vector<Line>& lines) {
  for (const Loop& loop : loops) {
    if (loop.trips == 1) continue;
    lines.emplace_back(std::string(2 * depth, ' ') + LoopText(loop), loop.note);
    ++depth;
  }
}

}  // namespace

Loop LoopOver(std::string_view dim, int64_t size, int64_t step, LoopKind kind, std::string note) {
  return {std::string(dim), (size + step - 1) / step, step, kind, std::move(note)};
}

int64_t LoopPart::points() const {
  int64_t points = 1;
  for (const Loop& loop : loops) points *= loop.trips;
  return points;
}

double LoopNest::multiplications() const {
  double around = 1, inside = 0;
  for (const Loop& loop : tasks) around *= static_cast<double>(loop.trips);
  for (const LoopPart& part : parts) inside += part.covers * static_cast<double>(part.points());
  return around * inside;
}

std::string LoopNestText(const LoopNest& nest) {
  std::vector<Line> lines;
  size_t tasks_depth = 0;
  AddLoops(nest.tasks, tasks_depth, lines);
  for (const LoopPart& part : nest.parts) {
    size_t depth = tasks_depth;
    if (!part.title.empty()) lines.emplace_back(std::string(2 * depth, ' ') + part.title + ":", "");
    if (!part.title.empty()) ++depth;
    AddLoops(part.loops, depth, lines);
    lines.emplace_back(std::string(2 * depth, ' ') + part.body, "");
  }
  size_t width = 0;
  for (const Line& line : lines) {
    if (!line.second.empty()) width = std::max(width, line.first.size());
  }
  std::string text;
  for (const auto& [loop, note] : lines)
    text += note.empty() ? loop + "\n" : fmt::format("{:<{}}  # {}\n", loop, width, note);
  return text;
}

}  // namespace tilesmith
