// What a compiled network's regions are: read from a file it knows that anew, without what compiles.
#include <fmt/format.h>

#include <map>

#include "graph_tuner/executor/compiled_network.h"
#include "layouts/base/error.h"
#include "ops/base/op.h"

namespace tilesmith {

std::vector<std::optional<RowWindows>> RowsReadBy(const CompiledNetwork& network, size_t index) {
  const Program& program = network.program;
  const Step& step = program.steps[index];
  const KernelRecipe& recipe = network.recipes[index];
  const bool is_conv = !recipe.conv_template.empty();
  std::vector<Shape> shapes;
  shapes.reserve(step.reads.size());
  for (const int value : step.reads) shapes.push_back(program.values[value].shape);
  std::vector<std::optional<RowWindows>> reads(step.reads.size());
  for (size_t slot = 0; slot < reads.size(); ++slot) {
    const Shape& result = program.values[step.write].shape;
    if (is_conv && slot == 0) {
      if (!recipe.workload.product) reads[0] = WindowsOf(recipe.workload);
    } else if (step.kind != StepKind::kNode || (is_conv && !recipe.workload.product)) {
      reads[slot] = SameRows(slot, shapes, result);  // a residual, say
    } else if (!is_conv) {
      reads[slot] = recipe.op->RowsReadOf(slot, shapes, result);
    }
  }
  return reads;
}

namespace {

// As RefusePlan (plan.h), which reads none.
[[noreturn]] void RefuseRegion(const std::string& reason) {
  throw Error(ErrorCode::kUsage, "plan: " + reason);
}

// What the steps of a region do with rows. Nobody in it reads a concat's slices together.
std::vector<RegionStep> RegionStepsOf(const CompiledNetwork& network, const Region& region) {
  const Program& program = network.program;
  const auto refuse = [&](int step, std::string_view reason) {
    RefuseRegion(fmt::format("region {}: \"{}\" {}", region.number, network.steps[step].name, reason));
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
    made.rows_adjacent = written.layout.Blocks(written.shape[1]) == 1;
    made.kept = !buffer.rolls;
    const std::vector<std::optional<RowWindows>> reads = RowsReadBy(network, static_cast<size_t>(i));
    for (size_t slot = 0; slot < step.reads.size(); ++slot) {
      const Value& value = program.values[step.reads[slot]];
      const auto writer = writers.find(value.buffer);
      const bool of_slices = std::ranges::any_of(writers, [&](const auto& written_here) {
        return program.buffers[written_here.first].slice_of == value.buffer;
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

std::vector<const Kernel*> KernelsOf(const CompiledNetwork& network, const Region& region) {
  std::vector<const Kernel*> kernels;
  for (int i = region.first; i < region.last; ++i) kernels.push_back(network.kernels[i].get());
  return kernels;
}

}  // namespace

std::vector<ScheduledRegion> CompileRegions(const CompiledNetwork& network) {
  std::vector<ScheduledRegion> regions;
  for (const Region& region : network.program.regions) {
    if (!network.device->ReadsHostMemory()) RefuseRegion("regions are for CPUs only");
    ScheduledRegion& made = regions.emplace_back();
    made.steps = RegionStepsOf(network, region);
    const std::string why_not = WhyNoRegion(made.steps);
    if (!why_not.empty()) RefuseRegion(fmt::format("region {}: {}", region.number, why_not));
    made.schedule = ScheduleRegion(made.steps, region.band_rows, network.device->threads());
  }
  return regions;
}

int64_t RegionScratchBytes(const CompiledNetwork& network, size_t region) {
  return RegionScratchBytes(network.regions[region].schedule,
                            KernelsOf(network, network.program.regions[region]), network.device->threads());
}

}  // namespace tilesmith
