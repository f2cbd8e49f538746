#include "templates/portable/schedule.h"

#include <algorithm>

#include "templates/portable/tiles.h"

namespace tilesmith::portable {

Schedule MakeSchedule(const ConvWorkload& workload, const PortableConfig& config, int vector_floats) {
  return {workload, config, LayoutOfBlockKnob(config.ic_block), LayoutOfBlockKnob(config.oc_block),
          vector_floats};
}

bool IsDepthwise(const ConvWorkload& workload, int64_t in_block, int64_t out_block) {
  return workload.g == workload.ic && workload.g == workload.oc && in_block == out_block && in_block >= 8;
}

std::vector<Chunk> ChunksOf(const Schedule& s) {
  const ConvWorkload& w = s.workload;
  const int64_t in_block = s.in.BlockFor(w.ic), out_block = s.out.BlockFor(w.oc);
  std::vector<Chunk> chunks;
  if (!IsDepthwise(w, in_block, out_block)) {
    const int64_t per_group = w.oc / w.g;
    for (int64_t group = 0; group < w.g; ++group) {
      for (int64_t o = 0; o < per_group; o += kPortableLanes) {
        chunks.push_back(
            {group * per_group + o, std::min<int64_t>(kPortableLanes, per_group - o), kPortableLanes});
      }
    }
    return chunks;
  }
  // A padded block may be read to its end; the one block of NHWC is followed by the next pixel.
  const bool padded = s.out.PaddedChannels(w.oc) > w.oc;
  for (int64_t o = 0; o < w.oc;) {
    const int64_t left = std::min(out_block - o % out_block, padded ? out_block : w.oc - o);
    const int lanes = left >= 16 ? 16 : left >= 8 ? 8 : 1;
    chunks.push_back({o, std::min<int64_t>(lanes, w.oc - o), lanes});
    o += lanes;
  }
  return chunks;
}

TaskGrid GridOf(const Schedule& s) {
  const ConvWorkload& w = s.workload;
  return {.images = w.mb,
          .channels = s.config.over_width ? w.g : static_cast<int64_t>(ChunksOf(s).size()),
          .rows = (w.oh + s.config.rows - 1) / s.config.rows,
          .height = w.oh,
          .part_units = s.config.rows};
}

LoopFeatures FeaturesOf(const Schedule& s) {
  const ConvWorkload& w = s.workload;
  const PortableConfig& c = s.config;
  constexpr double kBytes = sizeof(float);
  const int64_t rows = std::min(c.rows, w.oh), tile = c.ow_tile, lanes = s.vector_floats;
  const auto round_up = [&](int64_t n) { return (n + lanes - 1) / lanes * lanes; };
  const int64_t outputs = c.over_width ? w.oc * round_up(w.ow) : round_up(w.oc) * w.ow;
  const int64_t taps = w.ic / w.g * w.kh * w.kw;
  const auto vectors = static_cast<double>(kPortableLanes) / static_cast<double>(lanes);
  LoopFeatures f;
  f.flops = 2.0 * static_cast<double>(w.mb * w.oh * outputs) * static_cast<double>(taps);
  f.accumulators = c.over_width ? 1 : vectors * static_cast<double>(tile);
  f.fma_per_load = c.over_width ? 1 : f.accumulators / (vectors + static_cast<double>(tile));
  f.weight_bytes = static_cast<double>(w.oc * taps) * kBytes;
  f.tasks = static_cast<double>(w.mb * ((w.oh + rows - 1) / rows));
  f.task_input_bytes = InputBytes(w, rows, w.ic);
  f.task_weight_bytes = f.weight_bytes;
  f.task_output_bytes = static_cast<double>(rows * w.ow * w.oc) * kBytes;
  if (c.over_width) f.scratch_bytes = static_cast<double>(PlaneScratchFloats(w, rows)) * kBytes;
  return f;
}

}  // namespace tilesmith::portable
