// A network compiled by its plan: kernels emitted, weights packed, memory planned. Nothing in it changes when
// it runs, so that any number of executors, in any threads, share one.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "graph_tuner/executor/executor.h"
#include "graph_tuner/executor/kernel_recipe.h"
#include "graph_tuner/executor/memory_planner.h"
#include "graph_tuner/executor/neighbour_waits.h"
#include "graph_tuner/executor/placement.h"
#include "graph_tuner/executor/program.h"
#include "graph_tuner/executor/regions.h"
#include "layouts/kernel_parts.h"
#include "templates/base/conv_template.h"

namespace tilesmith {

// What the caller must bring.
struct UserTensor {
  std::string name;
  Shape shape;
  Layout layout;
};

// A graph's inputs, or its outputs, where the plan has images in `layout`.
std::vector<UserTensor> UserTensors(const Graph& graph, std::span<const Graph::NodeId> ids,
                                    const Layout& layout = Layout::Nchw());

// One of the program's regions, ready to run.
struct ScheduledRegion {
  std::vector<RegionStep> steps;
  RegionSchedule schedule;
};

struct CompiledNetwork {
  DevicePtr device;
  std::vector<UserTensor> inputs, outputs;
  std::shared_ptr<const Tail> tail;  // that computes the model's outputs of these; null: they are the same
  Program program;
  std::vector<Place> places;                     // by buffer
  std::vector<KernelRecipe> recipes;             // by step
  std::vector<std::unique_ptr<Kernel>> kernels;  // by step
  std::vector<DeviceMemory> constants;           // by buffer; empty if the device reads host memory
  MemoryPlan memory;                     // of the buffers, then of each step's scratch, then of each region's
  int64_t layer_by_layer_bytes = 0;      // what that takes without regions; 0: compiled files do not say
  std::vector<StepProfile> steps;        // without times
  std::vector<StepTouch> touches;        // by step
  std::vector<bool> neighbour_waits;     // by step (NeighbourWaits)
  std::vector<ScheduledRegion> regions;  // as in the program

  size_t ScratchIndex(size_t step) const { return program.buffers.size() + step; }
  size_t RegionIndex(size_t region) const { return ScratchIndex(program.steps.size()) + region; }
};

// A region, of an image: what its steps do together.
struct RegionProfile {
  int number = 0;  // in the plan
  int64_t steps = 0;
  int64_t bands = 0, band_rows = 0;            // those of all threads; rows of the last step's result
  int64_t buffer_bytes = 0;                    // of each thread
  int64_t computed_rows = 0, result_rows = 0;  // of all steps (StepRegion)
};
std::vector<RegionProfile> RegionProfiles(const CompiledNetwork& network);

// Arguments and errors are those of Executor's constructor. Once a conv's weights are packed the graph lets
// go of them, so that a caller who keeps no copy of it never holds all of them twice. Networks compiled with
// one pool share equal packed weights.
std::shared_ptr<const CompiledNetwork> CompileNetwork(Graph graph, const Plan& plan, DevicePtr device,
                                                      const StopFlag* stop = nullptr,
                                                      BufferPool* pool = nullptr);

// The plan's program and regions, as CompileNetwork has them for one thread, and the kernels in these: what a
// plan's regions are, and whether they can be, without packing all of its weights. Throws as that does.
CompiledNetwork CompileOnlyRegions(Graph graph, const Plan& plan, const Target& cpu);
// The plan without those of its regions that CompileNetwork refuses: their layers are computed one after the
// other. Other refusals are left to that.
Plan WithRegionsThatCompile(const Graph& graph, Plan plan, const Target& cpu);

// Of all of them together: what they share counts once.
size_t PackedWeightBytes(std::span<const CompiledNetwork* const> networks);
size_t PackedWeightBytes(const CompiledNetwork& network);

}  // namespace tilesmith
