#include "graph_tuner/executor/ownership.h"

#include "graph_tuner/plan/crossings.h"
#include "layouts/base/boxes.h"

namespace tilesmith {
namespace {

constexpr Box kAll = {};

AxisPart Scaled(const AxisPart& part, double first, double size) {
  return {first + part.begin * size, first + part.end * size};
}

class Owners {
 public:
  Owners(const Program& program, std::span<const StepGrids> grids, int threads)
      : program_(program),
        grids_(grids),
        threads_(threads),
        writers_(program.buffers.size(), -1),
        slices_(program.buffers.size()) {
    for (size_t buffer = 0; buffer < program.buffers.size(); ++buffer) {
      const int whole = program.buffers[buffer].slice_of;
      if (whole >= 0) slices_[static_cast<size_t>(whole)].push_back(buffer);
    }
  }

  std::vector<double> Count() {
    std::vector<double> crossed(program_.steps.size(), 0.0);
    for (size_t step = 0; step < program_.steps.size(); ++step) {
      for (size_t slot = 0; slot < program_.steps[step].reads.size(); ++slot)
        crossed[step] += OfRead(step, slot);
      writers_[BufferOf(program_.steps[step].write)] = static_cast<int>(step);
    }
    return crossed;
  }

 private:
  size_t BufferOf(int value) const { return static_cast<size_t>(program_.values[value].buffer); }

  double OfRead(size_t step, size_t slot) const {
    const Value& value = program_.values[program_.steps[step].reads[slot]];
    const TensorBuffer& buffer = program_.buffers[value.buffer];
    if (buffer.source != TensorBuffer::Source::kComputed) return 0;
    const int writer = writers_[BufferOf(program_.steps[step].reads[slot])];
    const int region = program_.steps[step].region;
    if (region >= 0 && writer >= 0 && program_.steps[static_cast<size_t>(writer)].region == region) return 0;
    double share = 0;
    for (int thread = 0; thread < threads_; ++thread) {
      std::vector<Box> owned;
      AddOwned(BufferOf(program_.steps[step].reads[slot]), thread, kAll, value.shape, owned);
      share += VolumeOutside(ReadBy(step, slot, thread), owned);
    }
    return share * static_cast<double>(buffer.images * buffer.image_bytes);
  }

  std::vector<Box> ReadBy(size_t step, size_t slot, int thread) const {
    const Step& s = program_.steps[step];
    const Shape& in = program_.values[s.reads[slot]].shape;
    const Shape& out = program_.values[s.write].shape;
    if (grids_[step].reads.height == 0) return {kAll};
    std::vector<Box> boxes = BoxesOf(grids_[step].reads, s.split, thread, threads_);
    for (Box& box : boxes) {
      if (grids_[step].conv != nullptr && slot == 0) {
        box = InputOf(*grids_[step].conv, box);
      } else if (in != out) {
        const bool images = in.size() == 4 && out.size() == 4 && in[0] == out[0];
        if (!images) return {kAll};
        if (in[1] != out[1]) box.channels = {};
      }
    }
    return boxes;
  }

  // What the thread has written of a buffer, as parts of a tensor that has it at `place`. Of a tensor of
  // another shape (a view) nobody can say.
  void AddOwned(size_t buffer, int thread, const Box& place, const Shape& shape,
                std::vector<Box>& owned) const {
    if (const int writer = writers_[buffer]; writer >= 0) {
      const Step& step = program_.steps[static_cast<size_t>(writer)];
      const Shape& written = program_.values[step.write].shape;
      Shape whole = written;
      if (place.channels != AxisPart() && written.size() > 1 && shape.size() > 1) whole[1] = shape[1];
      if (whole != shape) return;
      for (Box box : BoxesOf(grids_[static_cast<size_t>(writer)].writes, step.split, thread, threads_)) {
        box.channels = Scaled(box.channels, place.channels.begin, place.channels.size());
        owned.push_back(box);
      }
      return;
    }
    for (const size_t part : slices_[buffer]) {
      const TensorBuffer& slice = program_.buffers[part];
      const auto all = static_cast<double>(program_.buffers[buffer].image_bytes);
      Box at = place;
      at.channels = Scaled({static_cast<double>(slice.slice_offset) / all,
                            static_cast<double>(slice.slice_offset + slice.image_bytes) / all},
                           place.channels.begin, place.channels.size());
      AddOwned(part, thread, at, shape, owned);
    }
  }

  const Program& program_;
  const std::span<const StepGrids> grids_;
  const int threads_;
  std::vector<int> writers_;                 // by buffer: the step that has written it; -1 for none
  std::vector<std::vector<size_t>> slices_;  // by buffer: those that lie in it
};

}  // namespace

std::vector<double> CrossedBytes(const Program& program, std::span<const StepGrids> grids, int threads) {
  if (threads == 1) return std::vector<double>(program.steps.size());
  return Owners(program, grids, threads).Count();
}

}  // namespace tilesmith
