#include "graph_tuner/executor/placement.h"

#include <algorithm>
#include <optional>

#include "layouts/base/check.h"

namespace tilesmith {
namespace {

class Placer {
 public:
  explicit Placer(const Program& program)
      : program_(program), places_(program.buffers.size()), overwrites_(program.buffers.size(), false) {
    FindReaders();
  }

  // Concats come after their slices and results after what they may overwrite, so going backwards every
  // buffer is placed after the one it may lie in.
  std::vector<Place> Run() {
    for (int buffer = static_cast<int>(program_.buffers.size()) - 1; buffer >= 0; --buffer) {
      places_[buffer] = PlaceOf(buffer);
    }
    return std::move(places_);
  }

 private:
  void FindReaders() {
    last_read_.assign(program_.buffers.size(), -1);
    slice_read_.assign(program_.buffers.size(), -1);
    for (size_t step = 0; step < program_.steps.size(); ++step) {
      for (const int value : program_.steps[step].reads) {
        last_read_[program_.values[value].buffer] = static_cast<int>(step);
      }
    }
    for (size_t buffer = 0; buffer < program_.buffers.size(); ++buffer) {
      const int whole = program_.buffers[buffer].slice_of;
      if (whole < 0) continue;
      slice_read_[whole] = std::max({slice_read_[whole], last_read_[buffer], slice_read_[buffer]});
    }
  }

  Place PlaceOf(int index) {
    const TensorBuffer& buffer = program_.buffers[index];
    const Place own{index, 0, buffer.image_bytes};
    if (buffer.source != TensorBuffer::Source::kComputed) return own;
    if (buffer.slice_of >= 0) {
      const Place& whole = places_[buffer.slice_of];
      return {whole.root, whole.offset + buffer.slice_offset, whole.image_stride};
    }
    if (buffer.output >= 0) return own;
    const std::optional<int> result = InPlaceResult(index);
    if (!result.has_value()) return own;
    overwrites_[*result] = true;
    return places_[*result];
  }

  // The buffer that may be written over `index`: the result of its last reader, which must read nothing else
  // of it and be elementwise in every slot that does.
  std::optional<int> InPlaceResult(int index) const {
    const int last = last_read_[index];
    if (last < 0 || slice_read_[index] >= last) return std::nullopt;
    const Step& step = program_.steps[last];
    // Steps of a region run in parts, and before each other.
    if (step.in_place.empty() || step.region >= 0) return std::nullopt;
    const Value& written = program_.values[step.write];
    for (size_t slot = 0; slot < step.reads.size(); ++slot) {
      const Value& read = program_.values[step.reads[slot]];
      if (read.buffer != index) continue;
      if (!step.in_place[slot] || read.layout != written.layout || read.shape != written.shape) {
        return std::nullopt;
      }
    }
    const TensorBuffer& buffer = program_.buffers[index];
    const TensorBuffer& result = program_.buffers[written.buffer];
    const int64_t stride = places_[written.buffer].image_stride;
    const bool recut = (buffer.dense_only && stride != buffer.image_bytes) ||
                       (buffer.images != result.images && stride != result.image_bytes);
    if (overwrites_[written.buffer] || recut) return std::nullopt;
    return written.buffer;
  }

  const Program& program_;
  std::vector<Place> places_;
  std::vector<bool> overwrites_;  // by buffer: it is written over something
  std::vector<int> last_read_;    // by buffer: the last step that reads it, not counting slices; -1 for none
  std::vector<int> slice_read_;   // by buffer: the last step that reads a slice of it; -1 for none
};

}  // namespace

std::vector<Place> PlaceBuffers(const Program& program) { return Placer(program).Run(); }

StepSpan SpanOf(const Program& program, int step) {
  const int region = program.steps[static_cast<size_t>(step)].region;
  if (region < 0) return {step, step};
  const Region& all = program.regions[static_cast<size_t>(region)];
  return {all.first, all.last - 1};
}

std::vector<BufferRequest> ArenaRequests(const Program& program, const std::vector<Place>& places) {
  std::vector<BufferRequest> requests(program.buffers.size());
  const auto touch = [&](int value, const StepSpan& span) {
    const int root = places[program.values[value].buffer].root;
    const TensorBuffer& buffer = program.buffers[root];
    if (buffer.source != TensorBuffer::Source::kComputed || buffer.output >= 0 || buffer.rolls) return;
    BufferRequest& request = requests[root];
    if (request.bytes == 0) {
      request.first = span.first;
      request.bytes = (Checked(buffer.images) * buffer.image_bytes).value();
    }
    request.last = span.last;
  };
  for (size_t i = 0; i < program.steps.size(); ++i) {
    const Step& step = program.steps[i];
    const StepSpan span = SpanOf(program, static_cast<int>(i));
    for (const int value : step.reads) touch(value, span);
    touch(step.write, span);
  }
  return requests;
}

}  // namespace tilesmith
