#include "layouts/transform_plan.h"

#include <algorithm>

#include "layouts/base/check.h"
#include "layouts/base/sizes.h"

namespace tilesmith {
namespace {

constexpr int64_t kLineBytes = 64;
// A task moves 4 KiB, a few times the cost of starting it, and up to 16 KiB (half an L1 cache, with its
// source) once there are enough tasks to balance any team.
constexpr int64_t kMinTaskBytes = 4 << 10;
constexpr int64_t kMaxTaskBytes = 16 << 10;
constexpr int64_t kEnoughTasks = 256;
// Channels in one move: several cache lines, yet few enough streams for the L1 cache's associativity. Also
// the least of a task, so that few lines are shared by tasks.
constexpr int64_t kMoveChannels = 64;
// Channels in one run of a transpose: one tile.
constexpr int64_t kTileChannels = 16;

struct Problem {
  int64_t images, channels, pixels;
  int64_t in_block, out_block;
  int64_t padded_channels;  // of the output
  int64_t element_bytes;
};

Problem ToProblem(const Shape& shape, const Layout& from, const Layout& to) {
  if (shape.size() > 4) {
    TILESMITH_CHECK(from.is_nchw() && to.is_nchw(), "{} from {} to {}", ShapeToString(shape), from.ToString(),
                    to.ToString());
    const int64_t elements = BatchStride(shape, from);
    return {shape[0], elements, 1, 1, 1, elements, to.element_bytes()};
  }
  const Dims4 dims = ToDims4(shape);
  return {dims.n,
          dims.c,
          dims.h * dims.w,
          from.BlockFor(dims.c),
          to.BlockFor(dims.c),
          to.PaddedChannels(dims.c),
          to.element_bytes()};
}

int64_t TaskElements(const Problem& problem) {
  const int64_t bytes = problem.images * problem.padded_channels * problem.pixels * problem.element_bytes;
  return std::clamp(bytes / kEnoughTasks, kMinTaskBytes, kMaxTaskBytes) / problem.element_bytes;
}

// One run per `task_elements`; the last runs may be partly or wholly zeros.
std::vector<ChannelMove> FlatMoves(int64_t elements, int64_t padded, int64_t task_elements) {
  std::vector<ChannelMove> moves;
  for (int64_t begin = 0; begin < padded; begin += task_elements) {
    const int64_t length = std::clamp<int64_t>(elements - begin, 0, task_elements);
    moves.push_back({.in_offset = length > 0 ? begin : 0,
                     .out_offset = begin,
                     .length = length,
                     .padded = std::min(task_elements, padded - begin)});
  }
  return moves;
}

// Where channel c of pixel 0 lies.
int64_t ChannelOffset(int64_t c, int64_t block, int64_t pixels) {
  return c / block * block * pixels + c % block;
}

// The channels from one cut to the next: single runs, in order.
std::vector<ChannelMove> CutChannels(const Problem& p, int64_t max_length) {
  std::vector<ChannelMove> runs;
  for (int64_t c = 0, end = 0; c < p.channels; c = end) {
    end = std::min(p.channels, c + max_length);
    // A side of planes has a cut at every channel, but there the transpose crosses it.
    if (p.in_block > 1) end = std::min(end, (c / p.in_block + 1) * p.in_block);
    if (p.out_block > 1) end = std::min(end, (c / p.out_block + 1) * p.out_block);
    runs.push_back({.in_offset = ChannelOffset(c, p.in_block, p.pixels),
                    .out_offset = ChannelOffset(c, p.out_block, p.pixels),
                    .length = end - c,
                    .padded = (end == p.channels ? p.padded_channels : end) - c,
                    .in_block = c / p.in_block,
                    .out_block = c / p.out_block});
  }
  return runs;
}

// Whether `next` goes on where `move` leaves off, with the same spacing.
bool Continues(const ChannelMove& move, const ChannelMove& next) {
  if (next.length != move.length || next.padded != move.padded || move.length != move.padded) return false;
  if (move.runs == 1) return true;
  return next.in_offset == move.in_offset + move.runs * move.in_run_stride &&
         next.out_offset == move.out_offset + move.runs * move.out_run_stride;
}

// Neighbouring runs of equal length and spacing become one move of at most `max_channels` channels.
std::vector<ChannelMove> JoinRuns(const std::vector<ChannelMove>& runs, int64_t max_channels) {
  std::vector<ChannelMove> moves;
  for (const ChannelMove& run : runs) {
    if (moves.empty() || (moves.back().runs + 1) * run.length > max_channels ||
        !Continues(moves.back(), run)) {
      moves.push_back(run);
      continue;
    }
    ChannelMove& move = moves.back();
    move.in_run_stride = (run.in_offset - move.in_offset) / move.runs;
    move.out_run_stride = (run.out_offset - move.out_offset) / move.runs;
    move.in_run_blocks = (run.in_block - move.in_block) / move.runs;
    move.out_run_blocks = (run.out_block - move.out_block) / move.runs;
    ++move.runs;
  }
  return moves;
}

}  // namespace

ChannelMove MovePlan::Shifted(size_t move, const MoveShifts& shifts) const {
  ChannelMove shifted = moves[move];
  shifted.in_offset += shifted.in_block * shifts.in;
  shifted.out_offset += shifted.out_block * shifts.out;
  shifted.in_run_stride += shifted.in_run_blocks * shifts.in;
  shifted.out_run_stride += shifted.out_run_blocks * shifts.out;
  return shifted;
}

MovePlan::TaskPart MovePlan::PartOf(int64_t task) const {
  TaskPart part;
  part.chunk = chunks_outside ? task / Groups() : task % chunks;
  part.first_pixel = ChunkBegin(part.chunk);
  part.last_pixel = ChunkBegin(part.chunk + 1);
  part.first_move = (chunks_outside ? task % Groups() : task / chunks) * moves_a_task;
  part.last_move = std::min(part.first_move + moves_a_task, static_cast<int64_t>(moves.size()));
  return part;
}

TaskGrid MovePlan::Grid() const {
  TaskGrid grid = {.images = images,
                   .channels = Groups(),
                   .rows = chunks,
                   .channels_inner = chunks_outside,
                   .height = pixels / row_pixels,
                   .row_units = row_pixels,
                   .part_units = chunk_pixels};
  // A flat run knows no channels, and no rows either.
  if (kind == MoveKind::kFlat) grid.height = 0;
  return grid;
}

MovePlan PlanTransform(const Shape& shape, const Layout& from, const Layout& to) {
  const Problem problem = ToProblem(shape, from, to);
  const int64_t task_elements = TaskElements(problem);
  MovePlan plan;
  plan.images = problem.images;
  if (shape.size() <= 4) plan.row_pixels = std::max<int64_t>(ToDims4(shape).w, 1);
  if (problem.images * problem.channels * problem.pixels == 0) {
    plan.images = 0;
    return plan;
  }
  if (problem.in_block == problem.out_block && problem.channels % problem.in_block == 0) {
    const int64_t elements = problem.channels * problem.pixels;
    plan.moves = FlatMoves(elements, elements, task_elements);
    return plan;
  }
  if (problem.pixels == 1) {
    plan.moves = FlatMoves(problem.channels, problem.padded_channels, task_elements);
    return plan;
  }
  plan.kind = problem.in_block == 1    ? MoveKind::kInterleave
              : problem.out_block == 1 ? MoveKind::kDeinterleave
                                       : MoveKind::kRuns;
  plan.pixels = problem.pixels;
  plan.in_pixel_stride = problem.in_block;
  plan.out_pixel_stride = problem.out_block;
  const int64_t max_length = plan.kind == MoveKind::kRuns ? kMoveChannels : kTileChannels;
  plan.moves = JoinRuns(CutChannels(problem, max_length), kMoveChannels);
  const int64_t moves = static_cast<int64_t>(plan.moves.size());
  const int64_t task_channels =
      std::min(problem.padded_channels, std::max(kMoveChannels, task_elements / problem.pixels));
  plan.moves_a_task = std::max<int64_t>(1, task_channels * moves / problem.padded_channels);
  const int64_t line_elements = kLineBytes / problem.element_bytes;
  const int64_t chunks =
      std::max<int64_t>(1, problem.pixels / std::max(line_elements, task_elements / task_channels));
  plan.chunk_pixels = RoundUp(CeilDiv(problem.pixels, chunks), line_elements);
  plan.chunks = CeilDiv(problem.pixels, plan.chunk_pixels);
  plan.chunks_outside = problem.out_block >= problem.channels && problem.out_block > 1;
  return plan;
}

}  // namespace tilesmith
