#include "graph_tuner/executor/neighbour_waits.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <tuple>

#include "layouts/base/boxes.h"

namespace tilesmith {
namespace {

// Bytes [begin, end) of one memory: the arena, or that of a graph output.
struct Bytes {
  int memory = 0;
  int64_t begin = 0, end = 0;
};
bool Overlap(const Bytes& a, const Bytes& b) {
  return a.memory == b.memory && a.begin < b.end && b.begin < a.end;
}

struct Touched {
  std::vector<Bytes> reads, writes;
};

// The pieces are in the order of their beginnings.
bool Overlap(std::span<const Bytes> a, std::span<const Bytes> b) {
  for (size_t i = 0, k = 0; i < a.size() && k < b.size();) {
    if (Overlap(a[i], b[k])) return true;
    (std::tie(a[i].memory, a[i].end) < std::tie(b[k].memory, b[k].end) ? i : k) += 1;
  }
  return false;
}

bool Conflict(const Touched& a, const Touched& b) {
  return Overlap(a.writes, b.writes) || Overlap(a.writes, b.reads) || Overlap(a.reads, b.writes);
}

class Waits {
 public:
  Waits(const Program& program, const std::vector<Place>& places, const MemoryPlan& memory,
        std::span<const StepTouch> touches, int threads)
      : program_(program), places_(places), memory_(memory), touches_(touches), threads_(threads) {}

  std::vector<bool> Run() {
    // Longer chains gain nothing more, and are compared with one another.
    constexpr size_t kMaxSteps = 8;
    const size_t steps = program_.steps.size();
    std::vector<bool> may(steps, false);
    size_t first = 0;  // the steps before it are done by all threads
    for (size_t step = 0; step < steps; ++step) {
      begins_.push_back(TouchedBy(step, true));
      ends_.push_back(touches_[step].stages == 1 ? begins_.back() : TouchedBy(step, false));
      // A region is one piece of work, from which threads come in their own time.
      const bool apart = program_.steps[step].region < 0 && step > 0 && program_.steps[step - 1].region < 0;
      may[step] = apart && step - first < kMaxSteps && MayBegin(step, first);
      if (!may[step]) first = step;
      if (touches_[step].stages > 1) first = step;
    }
    return may;
  }

 private:
  // That a tensor's parts are kept apart in: each is compared with others.
  static constexpr int kPiecesOfAll = 512;

  bool MayBegin(size_t step, size_t first) const {
    for (int thread = 0; thread < threads_; ++thread) {
      for (int other = 0; other < threads_; ++other) {
        const auto apart = static_cast<size_t>(std::abs(thread - other));
        if (apart < 2) continue;
        for (size_t before = std::max(first, step - std::min(step, apart - 1)); before < step; ++before) {
          if (Conflict(begins_[step][static_cast<size_t>(thread)], ends_[before][static_cast<size_t>(other)]))
            return false;
        }
      }
    }
    return true;
  }

  // By thread.
  std::vector<Touched> TouchedBy(size_t step, bool begins) const {
    std::vector<Touched> touched(static_cast<size_t>(threads_));
    for (int thread = 0; thread < threads_; ++thread)
      touched[static_cast<size_t>(thread)] = TouchedBy(step, begins, thread);
    return touched;
  }

  Touched TouchedBy(size_t index, bool begins, int thread) const {
    const Step& step = program_.steps[index];
    const StepTouch& touch = touches_[index];
    const Value& out = program_.values[static_cast<size_t>(step.write)];
    const bool one_stage = touch.stages == 1;
    const std::optional<TensorPart> part = PartWritten(touch.writes, step.split, thread, threads_, out.shape);
    Touched touched;
    for (size_t slot = 0; slot < step.reads.size(); ++slot) {
      const Value& in = program_.values[static_cast<size_t>(step.reads[slot])];
      const bool told = part && one_stage && slot < touch.reads.size() && touch.reads[slot] &&
                        in.shape.size() == 4 && in.shape[0] == out.shape[0];
      Add(in, told ? std::optional(PartRead(*touch.reads[slot], *part, in.shape[2])) : std::nullopt,
          touched.reads);
    }
    // What its first stages write, nobody says.
    Add(out, one_stage || !begins ? part : std::nullopt, touched.writes);
    if (touch.scratch_bytes > 0) {
      const int64_t begin = memory_.offsets[program_.buffers.size() + index];
      touched.writes.push_back({0, begin, begin + touch.scratch_bytes});
    }
    for (std::vector<Bytes>* pieces : {&touched.reads, &touched.writes})
      std::ranges::sort(*pieces, {}, [](const Bytes& piece) { return std::tie(piece.memory, piece.begin); });
    return touched;
  }

  // Where the part of the tensor lies, or all of it, unless nobody writes there.
  void Add(const Value& value, const std::optional<TensorPart>& part, std::vector<Bytes>& bytes) const {
    const int64_t max_pieces = std::max(1, kPiecesOfAll / threads_);
    const TensorBuffer& buffer = program_.buffers[static_cast<size_t>(value.buffer)];
    const Place& place = places_[static_cast<size_t>(value.buffer)];
    const TensorBuffer& root = program_.buffers[static_cast<size_t>(place.root)];
    if (root.source != TensorBuffer::Source::kComputed || (part && part->empty())) return;
    const bool in_arena = root.output < 0;
    const int memory = in_arena ? 0 : 1 + root.output;
    const int64_t begin = place.offset + (in_arena ? memory_.offsets[static_cast<size_t>(place.root)] : 0);
    const int64_t blocks = part ? value.layout.Blocks(value.shape[1]) : 1;
    const bool all = !part || buffer.images != value.shape[0] ||
                     (part->last_image - part->first_image) * blocks > max_pieces;
    if (all) {
      bytes.push_back({memory, begin, begin + (buffer.images - 1) * place.image_stride + buffer.image_bytes});
      return;
    }
    const int64_t row = value.shape[3] * value.layout.BlockFor(value.shape[1]) * value.layout.element_bytes();
    for (int64_t image = part->first_image; image < part->last_image; ++image) {
      for (int64_t block = 0; block < blocks; ++block) {
        const int64_t at = begin + image * place.image_stride + block * value.shape[2] * row;
        bytes.push_back({memory, at + part->first_row * row, at + part->last_row * row});
      }
    }
  }

  const Program& program_;
  const std::vector<Place>& places_;
  const MemoryPlan& memory_;
  const std::span<const StepTouch> touches_;
  const int threads_;
  std::vector<std::vector<Touched>> begins_, ends_;  // by step and thread: of its first stage, of its last
};

}  // namespace

std::optional<TensorPart> PartWritten(const TaskGrid& grid, Split split, int thread, int threads,
                                      const Shape& shape) {
  constexpr double kRounding = 1e-6;
  if (!grid.exact || shape.size() != 4 || grid.height != shape[2] || grid.images != shape[0])
    return std::nullopt;
  const auto first = [](double share, int64_t size) {
    return static_cast<int64_t>(std::floor(share * static_cast<double>(size) + kRounding));
  };
  const auto last = [](double share, int64_t size) {
    return static_cast<int64_t>(std::ceil(share * static_cast<double>(size) - kRounding));
  };
  TensorPart part{shape[0], 0, shape[2], 0};
  for (const Box& box : BoxesOf(grid, split, thread, threads)) {
    part.first_image = std::min(part.first_image, first(box.images.begin, shape[0]));
    part.last_image = std::max(part.last_image, last(box.images.end, shape[0]));
    part.first_row = std::min(part.first_row, first(box.rows.begin, shape[2]));
    part.last_row = std::max(part.last_row, last(box.rows.end, shape[2]));
  }
  return part;
}

TensorPart PartRead(const RowWindows& windows, TensorPart written, int64_t height) {
  if (written.empty()) return {};
  const RowRange rows = RowsRead(windows, {written.first_row, written.last_row}, height);
  return {written.first_image, written.last_image, rows.first, rows.last};
}

std::vector<bool> NeighbourWaits(const Program& program, const std::vector<Place>& places,
                                 const MemoryPlan& memory, std::span<const StepTouch> touches, int threads) {
  return Waits(program, places, memory, touches, threads).Run();
}

}  // namespace tilesmith
