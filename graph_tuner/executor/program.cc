#include "graph_tuner/executor/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "graph_tuner/executor/network_regions.h"
#include "graph_tuner/plan/concat_slices.h"
#include "layouts/transform.h"
#include "ops/base/op.h"
#include "ops/conv/conv.h"
#include "ops/graph/end_layouts.h"

namespace tilesmith {
namespace {

using NodeId = Graph::NodeId;

int64_t Images(const Shape& shape) { return shape.empty() ? 1 : shape[0]; }

class ProgramBuilder {
 public:
  ProgramBuilder(const Graph& graph, std::span<const NodeSchedule> schedules, const Layout& outputs,
                 std::span<const RegionPlan> bands)
      : graph_(graph),
        schedules_(schedules),
        outputs_(outputs),
        bands_(bands),
        slices_(ConcatSlices(graph)),
        primary_(graph.size(), -1) {}

  Program Build() {
    int inputs = 0;
    for (NodeId id = 0; id < graph_.size(); ++id) {
      const bool is_input = graph_.As<InputOp>(id) != nullptr;
      if (schedules_[id].live) AddNode(id, inputs);
      inputs += is_input;
    }
    for (size_t k = 0; k < graph_.outputs().size(); ++k) AddOutput(graph_.outputs()[k], static_cast<int>(k));
    if (!bands_.empty()) FormRegions();
    return std::move(program_);
  }

 private:
  void AddNode(NodeId id, int next_input) {
    const Op& op = *graph_.node(id).op;
    if (graph_.As<InputOp>(id) != nullptr) {
      TensorBuffer buffer;
      buffer.source = TensorBuffer::Source::kInput;
      buffer.input = next_input;
      primary_[id] = NewValue(id, schedules_[id].out, std::move(buffer));
    } else if (const auto* constant = graph_.As<ConstantOp>(id)) {
      primary_[id] = NewConstant(id, constant->value()->layout(), constant->value());
    } else if (op.IsView()) {
      AddView(id);
    } else if (schedules_[id].sliced) {
      AddSlicedConcat(id);
    } else if (!schedules_[id].fused_away) {
      AddStep(id);
    }
  }

  void AddStep(NodeId id) {
    const Node& node = graph_.node(id);
    const NodeSchedule& schedule = schedules_[id];
    std::vector<NodeId> inputs = graph_.Inputs(id);
    if (schedule.first.has_value()) inputs[0] = graph_.Inputs(*schedule.first)[0];
    Step step{.kind = StepKind::kNode,
              .node = id,
              .reads = {},
              .write = 0,
              .in_place = {},
              .split = schedule.split,
              .region = schedule.region - 1};
    const bool is_conv = schedule.conv_template != nullptr;
    for (size_t slot = 0; slot < inputs.size(); ++slot) {
      step.reads.push_back(Need(inputs[slot], schedule.inputs[slot]));
      const int index = static_cast<int>(slot);
      step.in_place.push_back(is_conv ? index == 1 : node.op->InPlaceOk(index));
    }
    primary_[id] = step.write = NewValue(id, schedule.out, TensorBuffer());
    program_.steps.push_back(std::move(step));
  }

  void AddView(NodeId id) {
    const Shape& shape = graph_.node(id).shape;
    const Value source = program_.values[Need(graph_.Inputs(id).at(0), schedules_[id].inputs.at(0))];
    primary_[id] = Alias(id, schedules_[id].out, source.buffer);
    TensorBuffer& buffer = program_.buffers[source.buffer];
    if (buffer.images > 1 && Images(shape) != buffer.images) buffer.dense_only = true;
  }

  void AddSlicedConcat(NodeId id) {
    const Layout& layout = schedules_[id].out;
    const Shape& shape = graph_.node(id).shape;
    const std::vector<NodeId> inputs = graph_.Inputs(id);
    const int64_t plane_bytes = ElementCount({shape.begin() + 2, shape.end()}) * layout.element_bytes();
    int64_t channel = 0;
    std::vector<std::pair<int, int64_t>> parts;  // buffer, offset
    for (size_t slot = 0; slot < inputs.size(); ++slot) {
      const int64_t channels = graph_.node(inputs[slot]).shape[1];
      if (channels > 0) parts.emplace_back(SlicePart(id, slot, layout), channel * plane_bytes);
      channel += channels;
    }
    primary_[id] = NewValue(id, layout, TensorBuffer());
    const int whole = program_.values[primary_[id]].buffer;
    for (const auto& [buffer, offset] : parts) {
      program_.buffers[buffer].slice_of = whole;
      program_.buffers[buffer].slice_offset = offset;
    }
  }

  // The buffer that holds input `slot` of a sliced concat: the tensor's own where the concat owns it, else
  // a copy.
  int SlicePart(NodeId concat, size_t slot, const Layout& layout) {
    const NodeId input = graph_.Inputs(concat)[slot];
    const auto& slice = slices_[input];
    const bool owned = slice.has_value() && slice->concat == concat && slice->slot == static_cast<int>(slot);
    if (owned) {
      const int buffer = program_.values[Need(input, layout)].buffer;
      if (CanBeSlice(input, program_.buffers[buffer])) return buffer;
    }
    const auto existing = values_.find({input, layout});
    const int source = existing != values_.end() ? existing->second : primary_[input];
    const int copy = Convert(source, layout);
    program_.steps.back().fills_slice = !owned;
    return program_.values[copy].buffer;
  }

  bool CanBeSlice(NodeId node, const TensorBuffer& buffer) const {
    if (buffer.source != TensorBuffer::Source::kComputed || buffer.slice_of >= 0) return false;
    if (buffer.images != Images(graph_.node(node).shape)) return false;
    return buffer.images == 1 || !(buffer.dense_only || HasRecuttingView(node));
  }

  // Views come after the concat in the program, too late to change where the tensor lies.
  bool HasRecuttingView(NodeId id) const {
    for (const NodeId consumer : graph_.Consumers(id)) {
      const Node& node = graph_.node(consumer);
      if (!schedules_[consumer].live || !node.op->IsView()) continue;
      if (Images(node.shape) != Images(graph_.node(id).shape) || HasRecuttingView(consumer)) return true;
    }
    return false;
  }

  void AddOutput(NodeId id, int index) {
    const Layout layout = EndLayout(graph_.node(id), outputs_);
    const int value = Need(id, layout);
    TensorBuffer& buffer = program_.buffers[program_.values[value].buffer];
    if (buffer.source == TensorBuffer::Source::kComputed && buffer.slice_of < 0 && buffer.output < 0) {
      buffer.output = index;
    } else {
      const int copy = Convert(value, layout);
      program_.buffers[program_.values[copy].buffer].output = index;
    }
  }

  // The value of a node in a layout, made now if it does not exist yet.
  int Need(NodeId id, const Layout& layout) {
    const auto found = values_.find({id, layout});
    if (found != values_.end()) return found->second;
    const Value source = program_.values[primary_[id]];
    // Layouts that are the same memory for this tensor are one form.
    for (auto known = values_.lower_bound({id, Layout::Nhwc()});
         known != values_.end() && known->first.first == id; ++known) {
      const Value& value = program_.values[known->second];
      if (SameMemory(source.shape, value.layout, layout)) return Alias(id, layout, value.buffer);
    }
    const TensorBuffer& buffer = program_.buffers[source.buffer];
    if (buffer.source == TensorBuffer::Source::kConstant && buffer.constant->layout().is_nchw()) {
      const Tensor plain = buffer.constant->Reshaped(source.shape);
      return NewConstant(id, layout, std::make_shared<const Tensor>(TransformGeneric(plain, layout)));
    }
    return values_[{id, layout}] = Convert(primary_[id], layout);
  }

  // A new value in a buffer of its own, made from `source` by a transform, or a copy when that is enough.
  int Convert(int source, const Layout& layout) {
    const Value from = program_.values[source];
    const StepKind kind =
        SameMemory(from.shape, from.layout, layout) ? StepKind::kCopy : StepKind::kTransform;
    const int value = NewUnsharedValue(from.node, layout, TensorBuffer());
    program_.steps.push_back({.kind = kind,
                              .node = from.node,
                              .reads = {source},
                              .write = value,
                              .in_place = {},
                              .split = schedules_[from.node].split});
    return value;
  }

  int NewConstant(NodeId id, const Layout& layout, std::shared_ptr<const Tensor> tensor) {
    TensorBuffer buffer;
    buffer.source = TensorBuffer::Source::kConstant;
    buffer.constant = std::move(tensor);
    return NewValue(id, layout, std::move(buffer));
  }

  int NewValue(NodeId id, const Layout& layout, TensorBuffer buffer) {
    return values_[{id, layout}] = NewUnsharedValue(id, layout, std::move(buffer));
  }

  int NewUnsharedValue(NodeId id, const Layout& layout, TensorBuffer buffer) {
    const Shape& shape = graph_.node(id).shape;
    buffer.images = Images(shape);
    buffer.image_bytes = BatchBytes(shape, layout);
    program_.buffers.push_back(std::move(buffer));
    program_.values.push_back({id, layout, shape, static_cast<int>(program_.buffers.size()) - 1});
    return static_cast<int>(program_.values.size()) - 1;
  }

  int Alias(NodeId id, const Layout& layout, int buffer) {
    program_.values.push_back({id, layout, graph_.node(id).shape, buffer});
    return values_[{id, layout}] = static_cast<int>(program_.values.size()) - 1;
  }

  // The step that writes each buffer; of a sliced concat, those that write its slices.
  std::vector<std::vector<int>> Writers() const {
    std::vector<std::vector<int>> writers(program_.buffers.size());
    for (size_t step = 0; step < program_.steps.size(); ++step) {
      for (int buffer = program_.values[program_.steps[step].write].buffer; buffer >= 0;
           buffer = program_.buffers[buffer].slice_of)
        writers[buffer].push_back(static_cast<int>(step));
    }
    return writers;
  }

  // Steps that move a tensor from one step of a region to another belong to it, and those that bring a tensor
  // to it or away, where rows can be moved as they are wanted. Then steps are put in an order in which those
  // of each region follow each other, as near to the one there is as can be.
  void FormRegions() {
    std::vector<Step>& steps = program_.steps;
    const std::vector<std::vector<int>> writers = Writers();
    std::vector<std::vector<int>> before(steps.size()), behind(steps.size());
    for (size_t i = 0; i < steps.size(); ++i) {
      for (const int value : steps[i].reads) {
        for (const int writer : writers[program_.values[value].buffer]) {
          before[i].push_back(writer);
          behind[writer].push_back(static_cast<int>(i));
        }
      }
    }
    std::vector<int> ends(bands_.size(), -1);  // by region: its last node's step
    for (size_t i = 0; i < steps.size(); ++i)
      if (steps[i].region >= 0) ends[steps[i].region] = static_cast<int>(i);
    for (size_t i = 0; i < steps.size(); ++i) {
      if (steps[i].kind == StepKind::kNode) continue;
      const auto in = [&](int region) {
        return [&steps, region](int step) { return steps[step].region == region; };
      };
      const int from = before[i].size() == 1 ? steps[before[i][0]].region : -1;
      const int to = behind[i].empty() ? -1 : steps[behind[i][0]].region;
      if (from >= 0 && (std::ranges::any_of(behind[i], in(from)) ||
                        EndsRegion(steps[i], before[i][0], behind[before[i][0]], steps[ends[from]]))) {
        steps[i].region = from;
      } else if (to >= 0 && std::ranges::all_of(behind[i], in(to)) &&
                 std::ranges::none_of(before[i], in(to)) && BeginsRegion(steps[i], behind[i])) {
        steps[i].region = to;
      }
    }
    Reorder(before, behind);
    MarkRolling();
  }

  bool MovesRows(const Step& step) const {
    const Value &from = program_.values[step.reads[0]], &to = program_.values[step.write];
    return step.kind == StepKind::kTransform && TransformGivesRows(to.shape, from.layout, to.layout);
  }

  // Whether a node's kernel takes a tensor of which not all rows are there, as far as it is known without it.
  bool ShiftsBlocks(const Step& step, const Value& value) const {
    const ConvTemplate* conv = step.kind == StepKind::kNode ? schedules_[step.node].conv_template : nullptr;
    return value.layout.Blocks(value.shape[1]) == 1 || (conv && conv->ShiftsBlocks());
  }

  // Whether a step brings what the writer in a region gives to others than it, so that in the region it need
  // not exist before that. `end`: the region's last node.
  bool EndsRegion(const Step& step, int writer, const std::vector<int>& readers, const Step& end) const {
    const Step& by = program_.steps[writer];
    const Value &from = program_.values[step.reads[0]], &made = program_.values[by.write];
    const TensorBuffer& buffer = program_.buffers[made.buffer];
    const Shape& result = program_.values[end.write].shape;
    return MovesRows(step) && result.size() == from.shape.size() && from.buffer == made.buffer &&
           from.shape == made.shape && from.shape[2] == result[2] && buffer.output < 0 &&
           buffer.slice_of < 0 && ShiftsBlocks(by, made) && std::ranges::all_of(readers, [&](int reader) {
             return &program_.steps[reader] == &step || program_.steps[reader].region == by.region;
           });
  }

  // Whether a step brings what is there already to nodes of a region, all of whom take it row by row.
  bool BeginsRegion(const Step& step, const std::vector<int>& readers) const {
    const Value& made = program_.values[step.write];
    return MovesRows(step) && program_.buffers[made.buffer].output < 0 &&
           std::ranges::all_of(readers, [&](int reader) {
             const Step& by = program_.steps[reader];
             const NodeSchedule& schedule = schedules_[by.node];
             const ConvWorkload* conv = schedule.conv_template ? &schedule.workload : nullptr;
             bool reads = false;
             for (size_t slot = 0; slot < by.reads.size(); ++slot) {
               const Value& value = program_.values[by.reads[slot]];
               if (value.buffer != made.buffer) continue;
               reads = true;
               const Shape& result = program_.values[by.write].shape;
               if (by.kind != StepKind::kNode || value.shape != made.shape || !ShiftsBlocks(by, value) ||
                   result.empty() || result[0] != made.shape[0] ||
                   !RowsReadOf(program_, by, slot, conv, graph_.node(by.node).op.get()))
                 return false;
             }
             return reads;
           });
  }

  // Whole regions, and steps of none, each when all that it reads is there, of these the one that was first.
  void Reorder(const std::vector<std::vector<int>>& before, const std::vector<std::vector<int>>& behind) {
    std::vector<Step>& steps = program_.steps;
    const int count = static_cast<int>(steps.size()), regions = static_cast<int>(bands_.size());
    const auto unit_of = [&](int step) {
      return steps[step].region >= 0 ? steps[step].region : regions + step;
    };
    std::vector<std::vector<int>> members(static_cast<size_t>(regions + count));
    std::vector<int> waits_for(members.size(), 0);
    for (int i = 0; i < count; ++i) {
      members[unit_of(i)].push_back(i);
      for (const int writer : before[i]) waits_for[unit_of(i)] += unit_of(writer) != unit_of(i);
    }
    std::set<std::pair<int, int>> ready;  // the unit's last step, the unit
    for (int unit = 0; unit < regions + count; ++unit)
      if (!members[unit].empty() && waits_for[unit] == 0) ready.emplace(members[unit].back(), unit);
    std::vector<Step> ordered;
    while (!ready.empty()) {
      const int unit = ready.begin()->second;
      ready.erase(ready.begin());
      const int first = static_cast<int>(ordered.size());
      for (const int i : members[unit]) {
        ordered.push_back(steps[i]);
        for (const int reader : behind[i]) {
          const int by = unit_of(reader);
          if (by != unit && --waits_for[by] == 0) ready.emplace(members[by].back(), by);
        }
      }
      if (unit >= regions) continue;
      const int last = static_cast<int>(ordered.size());
      program_.regions.push_back({first, last, bands_[unit].band_rows, unit + 1});
      for (int i = first; i < last; ++i) {
        ordered[i].region = static_cast<int>(program_.regions.size()) - 1;
        ordered[i].split = Split::kRows;
      }
    }
    if (ordered.size() != steps.size()) {
      const auto stuck = std::ranges::find_if(waits_for, [](int waits) { return waits > 0; });
      RefusePlan(
          fmt::format("region {} needs what others make of its results", stuck - waits_for.begin() + 1));
    }
    steps = std::move(ordered);
  }

  void MarkRolling() {
    const std::vector<Step>& steps = program_.steps;
    std::vector<int> written_in(program_.buffers.size(), -1);
    std::vector<bool> read_elsewhere(program_.buffers.size(), false);
    for (const Step& step : steps) written_in[program_.values[step.write].buffer] = step.region;
    for (const Step& step : steps) {
      for (const int value : step.reads) {
        const int buffer = program_.values[value].buffer;
        if (step.region != written_in[buffer]) read_elsewhere[buffer] = true;
      }
    }
    for (const TensorBuffer& buffer : program_.buffers)
      if (buffer.slice_of >= 0) read_elsewhere[buffer.slice_of] = true;
    for (size_t i = 0; i < program_.buffers.size(); ++i) {
      TensorBuffer& buffer = program_.buffers[i];
      buffer.rolls = buffer.source == TensorBuffer::Source::kComputed && written_in[i] >= 0 &&
                     !read_elsewhere[i] && buffer.slice_of < 0 && buffer.output < 0;
    }
  }

  const Graph& graph_;
  const std::span<const NodeSchedule> schedules_;
  const Layout outputs_;
  const std::span<const RegionPlan> bands_;
  const std::vector<std::optional<ConcatSlice>> slices_;
  Program program_;
  std::vector<int> primary_;                         // by node: the value in the layout it is produced in
  std::map<std::pair<NodeId, Layout>, int> values_;  // what Need has found or made
};

}  // namespace

Program BuildProgram(const Graph& graph, std::span<const NodeSchedule> schedules, const Layout& outputs,
                     std::span<const RegionPlan> bands) {
  return ProgramBuilder(graph, schedules, outputs, bands).Build();
}

}  // namespace tilesmith
