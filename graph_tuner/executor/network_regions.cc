#include "graph_tuner/executor/network_regions.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include "layouts/base/error.h"
#include "ops/base/op.h"

namespace tilesmith {

RowWindows WindowsOf(const ConvWorkload& workload) {
  RowWindows windows = {{workload.sh, workload.ph, (workload.kh - 1) * (workload.dh + 1) + 1}};
  for (const ConvWorkload& before : workload.before)
    windows.push_back({before.sh, before.ph, (before.kh - 1) * (before.dh + 1) + 1});
  return windows;
}

std::optional<RowWindows> RowsReadOf(const Program& program, const Step& step, size_t slot,
                                     const ConvWorkload* conv, const Op* op) {
  if (conv && conv->product) return std::nullopt;
  if (conv && slot == 0) return WindowsOf(*conv);
  std::vector<Shape> shapes;
  shapes.reserve(step.reads.size());
  for (const int value : step.reads) shapes.push_back(program.values[value].shape);
  const Shape& result = program.values[step.write].shape;
  // What a convolution reads beside its input is a residual.
  return op && !conv ? op->RowsReadOf(slot, shapes, result) : SameRows(slot, shapes, result);
}

namespace {

// Of each input of a step.
std::vector<std::optional<RowWindows>> RowsReadBy(const CompiledNetwork& network, size_t index) {
  const Step& step = network.program.steps[index];
  const KernelRecipe& recipe = network.recipes[index];
  const ConvWorkload* conv = recipe.conv_template.empty() ? nullptr : &recipe.workload;
  std::vector<std::optional<RowWindows>> reads;
  for (size_t slot = 0; slot < step.reads.size(); ++slot)
    reads.push_back(RowsReadOf(network.program, step, slot, conv, recipe.op.get()));
  return reads;
}

[[noreturn]] void RefuseRegion(const Region& region, std::string_view reason) {
  throw Error(ErrorCode::kUsage, fmt::format("plan: region {}: {}", region.number, reason));
}

// What the steps of a region do with rows. Nobody in it reads a concat's slices together.
std::vector<RegionStep> RegionStepsOf(const CompiledNetwork& network, std::span<const StepTouch> touches,
                                      const Region& region) {
  const Program& program = network.program;
  const auto refuse = [&](int step, std::string_view reason) {
    RefuseRegion(region, fmt::format("\"{}\" {}", network.steps[step].name, reason));
  };
  std::map<int, int> writers;  // of buffers
  std::vector<RegionStep> steps;
  for (int i = region.first; i < region.last; ++i) {
    const Step& step = program.steps[i];
    const Kernel& kernel = *network.kernels[i];
    const Value& written = program.values[step.write];
    const TensorBuffer& buffer = program.buffers[written.buffer];
    RegionStep& made = steps.emplace_back();
    if (kernel.Stages() != 1) refuse(i, "is computed in several stages");
    if (written.shape.size() != 4 || written.shape[0] != buffer.images) refuse(i, "gives no images");
    made.grid = kernel.Grid(0);
    made.images = written.shape[0];
    made.height = written.shape[2];
    made.row_bytes =
        written.shape[3] * written.layout.BlockFor(written.shape[1]) * written.layout.element_bytes();
    made.blocks = written.layout.Blocks(written.shape[1]);
    made.shifts_blocks = kernel.ShiftsBlocks();
    made.kept = !buffer.rolls;
    const std::vector<std::optional<RowWindows>>& reads = touches[static_cast<size_t>(i)].reads;
    for (size_t slot = 0; slot < step.reads.size(); ++slot) {
      const Value& value = program.values[step.reads[slot]];
      const auto writer = writers.find(value.buffer);
      const bool of_slices = std::ranges::any_of(writers, [&](const auto& written_here) {
        int whole = program.buffers[written_here.first].slice_of;
        while (whole >= 0 && whole != value.buffer) whole = program.buffers[whole].slice_of;
        return whole == value.buffer;
      });
      if (of_slices) refuse(i, "reads a concat of what the region computes");
      if (writer == writers.end()) continue;
      const Value& source = program.values[program.steps[region.first + writer->second].write];
      if (!reads[slot] || value.shape != source.shape)
        refuse(i, "may read any row of what the region computes");
      made.reads.push_back({writer->second, slot, *reads[slot]});
    }
    writers[written.buffer] = i - region.first;
  }
  return steps;
}

std::vector<const Kernel*> KernelsInRegion(const CompiledNetwork& network, const Region& region) {
  std::vector<const Kernel*> kernels;
  for (int i = region.first; i < region.last; ++i) kernels.push_back(network.kernels[i].get());
  return kernels;
}

}  // namespace

std::vector<StepTouch> TouchesOf(const CompiledNetwork& network) {
  std::vector<StepTouch> touches(network.kernels.size());
  for (size_t i = 0; i < touches.size(); ++i) {
    if (network.kernels[i] == nullptr) continue;
    const Kernel& kernel = *network.kernels[i];
    touches[i] = {kernel.Stages(), kernel.Grid(kernel.Stages() - 1), RowsReadBy(network, i),
                  kernel.ScratchBytes(network.device->threads())};
  }
  return touches;
}

std::vector<ScheduledRegion> CompileRegions(const CompiledNetwork& network,
                                            std::span<const StepTouch> touches) {
  std::vector<ScheduledRegion> regions;
  for (const Region& region : network.program.regions) {
    if (!network.device->ReadsHostMemory()) RefuseRegion(region, "regions are for CPUs only");
    ScheduledRegion& made = regions.emplace_back();
    made.steps = RegionStepsOf(network, touches, region);
    const std::string why_not = WhyNoRegion(made.steps);
    if (!why_not.empty()) RefuseRegion(region, why_not);
    made.schedule = ScheduleRegion(made.steps, region.band_rows, network.device->threads());
  }
  return regions;
}

int64_t RegionScratchBytes(const CompiledNetwork& network, size_t region) {
  return RegionScratchBytes(network.regions[region].schedule,
                            KernelsInRegion(network, network.program.regions[region]),
                            network.device->threads());
}

}  // namespace tilesmith
