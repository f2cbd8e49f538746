#include "templates/base/window_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "ops/conv/conv.h"

namespace tilesmith {
namespace {

constexpr int64_t kTileBytes = 128 << 10;  // a part of the L2 cache that leaves room for weights
constexpr int64_t kMaxTilePixels = 4096;
constexpr int64_t kMinTilePixels = 48;
constexpr int64_t kMinAmxPixels = 128;
constexpr int64_t kWantedTasksPerCore = 4;

// Into how many parts to cut `count` things: at least `least` parts, some `wanted`, such that `cores` of
// them, taking whole parts, have the same to do.
int64_t EvenParts(int64_t count, int64_t least, int64_t wanted, int64_t cores) {
  const auto most_of_a_core = [&](int64_t parts) {
    const int64_t part = CeilDiv(count, parts);
    return CeilDiv(CeilDiv(count, part), cores) * part;
  };
  int64_t best = std::max(least, wanted);
  for (int64_t parts = std::max(least, CeilDiv(wanted, 2)); parts <= std::min(2 * wanted, count); ++parts) {
    if (most_of_a_core(parts) < most_of_a_core(best)) best = parts;
  }
  return best;
}

ConvWorkload Flattened(ConvWorkload w) {
  const bool single = w.kh == 1 && w.kw == 1 && w.sh == 1 && w.sw == 1 && w.ph == 0 && w.pw == 0;
  if (!single || w.oh != w.ih || w.ow != w.iw) return w;
  w.iw *= w.ih, w.ow *= w.oh;
  w.ih = w.oh = 1;
  return w;
}

}  // namespace

WindowPlan::WindowPlan(const ConvWorkload& workload, const WindowForm& form, int64_t cores,
                       const WindowCut& cut)
    : conv(Flattened(workload)),
      depthwise(form.depthwise),
      amx(form.amx),
      dots(form.dots),
      group_words(form.group_words),
      lanes(form.lanes),
      number_bytes(form.number_bytes),
      word(form.word()),
      groups(depthwise ? CeilDiv(conv.oc, lanes) : conv.g),
      blocks(depthwise ? 1 : CeilDiv(conv.oc / conv.g, lanes)),
      group_in(depthwise ? lanes : conv.ic / conv.g),
      group_out(depthwise ? lanes : conv.oc / conv.g),
      row_step(conv.kh == 1 ? conv.sh : 1),
      column_step(conv.kw == 1 ? conv.sw : 1),
      row_stride(conv.sh / row_step),
      column_stride(conv.sw / column_step),
      window_rows((conv.kh - 1) * (conv.dh + 1) + 1),
      window_columns((conv.kw - 1) * (conv.dw + 1) + 1),
      pixels(cut.pixels > 0 && form.chooses_pixels() ? cut.pixels : form.pixels),
      blocks_inner(cut.blocks_inner),
      height_(workload.oh),
      width_(workload.ow) {
  FormRuns();
  if (amx && run_columns == 1) FormPhases();
  if (cut.tile_rows > 0) {
    CutIntoTiles(cut);
  } else {
    CutIntoTiles(cores);
  }
  FindRuns();
}

// Tiles take a run in steps of equally many words: nothing that lies beside a window may be multiplied, since
// it may be a NaN. Either a run is the channels of one pixel, filled up with zeros to whole steps, or all
// columns of a kernel row, whose words have to be a multiple of the steps; whichever makes fewer steps.
void WindowPlan::FormRuns() {
  pixel_numbers = depthwise ? word * lanes : group_in;
  run_columns = depthwise ? word : conv.dw == 0 ? conv.kw : 1;
  run_length = depthwise ? word : RoundUp(run_columns * group_in, word);
  step_words = run_length / word;
  if (amx) {
    const int64_t pixel_steps = CeilDiv(group_in, kTileWords * word);
    pixel_numbers = RoundUp(group_in, pixel_steps * word);
    run_columns = 1;
    step_words = pixel_numbers / word / pixel_steps;
    const int64_t row_words = conv.kw * CeilDiv(group_in, word);
    int64_t row_steps = CeilDiv(row_words, kTileWords);
    while (row_words % row_steps != 0) ++row_steps;
    if (conv.dw == 0 && row_steps < conv.kw * pixel_steps) {
      pixel_numbers = RoundUp(group_in, word);
      run_columns = conv.kw;
      step_words = row_words / row_steps;
    }
    run_length = run_columns * pixel_numbers;
  }
  pitch = pixel_numbers * number_bytes;
}

void WindowPlan::FormPhases() {
  row_phases = row_stride, column_phases = column_stride;
  row_step *= row_phases, column_step *= column_phases;
  row_stride = column_stride = 1;
  window_rows = (window_rows - 1) / row_phases + 1;
  window_columns = (window_columns - 1) / column_phases + 1;
}

void WindowPlan::CutIntoTiles(const WindowCut& cut) {
  tile_rows = cut.tile_rows;
  tile_columns = cut.tile_columns;
  row_tiles = CeilDiv(conv.oh, tile_rows);
  column_tiles = CeilDiv(conv.ow, tile_columns);
  row_pitch = ColumnsSeenBy(tile_columns) * pitch;
}

void WindowPlan::CutIntoTiles(int64_t cores) {
  const int64_t others = conv.mb * groups * blocks;
  const int64_t wanted_tasks = kWantedTasksPerCore * cores;
  // Products by tiles are done so soon that what is copied and read for each task counts more.
  const int64_t least_pixels = amx ? kMinAmxPixels : kMinTilePixels;
  if (amx && others % cores == 0) cores = 1;  // any cut is even
  const int64_t pixels = std::max(least_pixels, CeilDiv(conv.oh * conv.ow, CeilDiv(wanted_tasks, others)));
  const int64_t columns = kTileBytes / pitch / phases();
  const auto that_fit = [](int64_t seen, int64_t window, int64_t stride) {
    return std::max<int64_t>((seen - window) / stride + 1, 1);
  };
  // Into parts of at most so many, better of `pixels`, though never of far fewer.
  const auto parts = [&](int64_t count, int64_t at_most, int64_t part_pixels) {
    const int64_t wanted = std::max<int64_t>(count * part_pixels / pixels, 1);
    return EvenParts(count, CeilDiv(count, at_most), wanted, cores);
  };
  const int64_t columns_that_fit =
      std::max(std::min(that_fit(columns / window_rows, window_columns, column_stride), kMaxTilePixels),
               kLeastSeenOutputs);
  column_tiles = conv.oh == 1 ? parts(conv.ow, columns_that_fit, 1) : CeilDiv(conv.ow, columns_that_fit);
  tile_columns = CeilDiv(conv.ow, column_tiles);
  column_tiles = CeilDiv(conv.ow, tile_columns);
  const int64_t row_columns = ColumnsSeenBy(tile_columns);
  const int64_t rows_that_fit = std::min(that_fit(columns / row_columns, window_rows, row_stride),
                                         CeilDiv(kMaxTilePixels, tile_columns));
  row_tiles = parts(conv.oh, rows_that_fit, tile_columns);
  tile_rows = CeilDiv(conv.oh, row_tiles);
  row_tiles = CeilDiv(conv.oh, tile_rows);
  row_pitch = row_columns * pitch;
}

int64_t WindowPlan::RunOffset(int64_t row, int64_t column) const {
  const int64_t phase = row % row_phases * column_phases + column % column_phases;
  return phase * PlaneBytes() + row / row_phases * row_pitch + column / column_phases * pitch;
}

void WindowPlan::FindRuns() {
  for (int64_t i = 0; i < conv.kh; ++i) {
    for (int64_t j = 0; j < conv.kw; j += run_columns)
      runs.push_back(static_cast<int32_t>(RunOffset(i * (conv.dh + 1), j * (conv.dw + 1))));
  }
}

bool WindowPlan::IsRead(int64_t row_phase, int64_t row, int64_t rows) const {
  for (int64_t tap = 0; tap < conv.kh; ++tap) {
    const int64_t below = tap * (conv.dh + 1);
    if (below % row_phases != row_phase) continue;
    const int64_t above = row - below / row_phases;
    if (above >= 0 && above % row_stride == 0 && above / row_stride < rows) return true;
  }
  return false;
}

std::vector<int32_t> WindowPlan::PixelOffsets() const {
  std::vector<int32_t> offsets;
  for (int64_t y = 0; y < tile_rows; ++y) {
    for (int64_t x = 0; x < tile_columns; ++x)
      offsets.push_back(static_cast<int32_t>(y * row_stride * row_pitch + x * column_stride * pitch));
  }
  return offsets;
}

TaskGrid WindowPlan::Grid() const {
  TaskGrid grid{
      .images = conv.mb, .channels = groups * blocks, .rows = tiles(), .channels_inner = blocks_inner};
  if (column_tiles == 1) {
    grid.height = height_, grid.row_units = height_ == conv.oh ? 1 : width_;
    grid.part_units = height_ == conv.oh ? tile_rows : tile_columns;
  } else if (conv.oh == 1) {
    grid.height = height_, grid.row_units = width_, grid.part_units = tile_columns;
  } else {
    return TaskGrid::List(grid.tasks());
  }
  return grid;
}

WindowPlan::Place WindowPlan::PlaceOf(int64_t task) const {
  const int64_t channels = groups * blocks, in_image = task % (channels * tiles());
  const int64_t channel = blocks_inner ? in_image % channels : in_image / tiles();
  return {.image = task / (channels * tiles()),
          .tile = blocks_inner ? in_image / channels : in_image % tiles(),
          .group = channel / blocks,
          .block = channel % blocks};
}

WindowTile WindowPlan::TileOf(const Place& place) const {
  WindowTile tile{.image = place.image,
                  .group = place.group,
                  .y = place.tile / column_tiles * tile_rows,
                  .x = place.tile % column_tiles * tile_columns};
  tile.rows = std::min(tile_rows, conv.oh - tile.y);
  tile.columns = std::min(tile_columns, conv.ow - tile.x);
  return tile;
}

std::string WhyTooLarge(int64_t bytes, std::string_view what, const Target& cpu) {
  if (bytes <= cpu.l2_bytes) return "";
  return fmt::format("{} bytes of {} exceed the {} of the second-level cache", bytes, what, cpu.l2_bytes);
}

std::string WhyNoGoodCut(const WindowPlan& plan, const WindowCut& preset, const Target& cpu) {
  if (!plan.blocks_inner && (plan.tiles() == 1 || plan.groups * plan.blocks == 1))
    return "oc_inner changes nothing: tasks are in one line";
  const bool smaller = plan.tile_rows <= preset.tile_rows && plan.tile_columns <= preset.tile_columns;
  return smaller ? "" : WhyTooLarge(plan.ThreadBytes(), "widened input", cpu);
}

}  // namespace tilesmith
