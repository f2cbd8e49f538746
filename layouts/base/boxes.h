// Boxes of a tensor: which part of it a thread writes or reads, whatever its layout.
#pragma once

#include <span>
#include <vector>

#include "layouts/base/split.h"

namespace tilesmith {

// A part of one axis, which goes from 0 to 1.
struct AxisPart {
  double begin = 0, end = 1;
  double size() const { return end - begin; }
  bool operator==(const AxisPart&) const = default;
};

struct Box {
  AxisPart images = {}, channels = {}, rows = {};
};

// The boxes, as few as follow from the order of the tasks, that share `thread` of a stage's tasks lies in;
// none where the grid has no place in the output.
std::vector<Box> BoxesOf(const TaskGrid& grid, Split split, int thread, int threads);

// How much of the tensor lies in one of `boxes`, which may overlap, and in none of `except`: from 0 to 1.
double VolumeOutside(std::span<const Box> boxes, std::span<const Box> except);

}  // namespace tilesmith
