#include "layouts/base/split.h"

namespace tilesmith {
namespace {

// The one whose beginning is nearest to the share's.
int64_t FirstPart(const TaskGrid& grid, int thread, int threads) {
  const int64_t first_unit = FirstRowOf(grid.height, thread, threads) * grid.row_units;
  return std::clamp<int64_t>((2 * first_unit + grid.part_units) / (2 * grid.part_units), 0, grid.rows);
}

}  // namespace

TaskRange RowPartsOf(const TaskGrid& grid, int thread, int threads) {
  const int64_t end = thread + 1 == threads ? grid.rows : FirstPart(grid, thread + 1, threads);
  return {FirstPart(grid, thread, threads), end, thread};
}

TaskRange ShareOf(int64_t tasks, int thread, int threads) {
  return {tasks * thread / threads, tasks * (thread + 1) / threads, thread};
}

std::string_view SplitName(Split split) {
  switch (split) {
    case Split::kEven:
      return "even";
    case Split::kRows:
      return "rows";
    case Split::kChannels:
      return "channels";
    case Split::kImages:
      return "images";
    case Split::kOne:
      return "one";
  }
  return "";
}

std::optional<Split> SplitOfName(std::string_view name) {
  for (const Split split : kSplits) {
    if (SplitName(split) == name) return split;
  }
  return std::nullopt;
}

bool TaskGrid::GivesRows(int64_t of_images, int64_t of_height) const {
  return images == of_images && height == of_height && (exact || row_group > 1);
}

bool TaskGrid::Can(Split split) const {
  switch (split) {
    case Split::kEven:
    case Split::kOne:
      return true;
    case Split::kRows:
      return height > 0 && rows > 1;
    case Split::kChannels:
      return height > 0 && channels > 1;
    case Split::kImages:
      return height > 0 && images > 1;
  }
  return false;
}

Share::Share(const TaskGrid& grid, Split split, int thread, int threads) {
  images_ = {0, grid.images, grid.images};
  Axis channels = {0, grid.channels, grid.channels}, rows = {0, grid.rows, grid.rows};
  const auto cut = [&](Axis& axis) {
    const TaskRange range = ShareOf(axis.all, thread, threads);
    axis.begin = range.begin;
    axis.end = range.end;
  };
  if (!grid.Can(split)) split = Split::kEven;
  if (split == Split::kImages) cut(images_);
  if (split == Split::kChannels) cut(channels);
  if (split == Split::kRows) {
    const TaskRange parts = RowPartsOf(grid, thread, threads);
    rows.begin = parts.begin;
    rows.end = parts.end;
  }
  outer_ = grid.channels_inner ? rows : channels;
  inner_ = grid.channels_inner ? channels : rows;
  end_ = images_.size() * outer_.size() * inner_.size();
  if (split == Split::kOne && thread > 0) end_ = 0;
  if (split == Split::kEven) {
    const TaskRange range = ShareOf(end_, thread, threads);
    begin_ = range.begin;
    end_ = range.end;
  }
}

}  // namespace tilesmith
