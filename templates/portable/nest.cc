// The portable template's loops in words.
#include <algorithm>

#include "templates/portable/schedule.h"
#include "templates/portable/tiles.h"

namespace tilesmith::portable {
namespace {

constexpr double kBytes = sizeof(float);

LoopNest OverChannels(const Schedule& s, bool depthwise) {
  const ConvWorkload& w = s.workload;
  const int64_t rows = std::min(s.config.rows, w.oh), width = std::min(s.config.ow_tile, w.ow);
  const int64_t channels = depthwise ? 1 : w.ic / w.g, outputs = depthwise ? w.oc : w.oc / w.g;
  LoopNest nest;
  nest.tasks = {LoopOver("mb", w.mb, 1, LoopKind::kTasks),
                LoopOver("g", depthwise ? 1 : w.g, 1, LoopKind::kTasks),
                LoopOver(depthwise ? "c" : "oc", outputs, kPortableLanes, LoopKind::kTasks),
                LoopOver("oh", w.oh, rows, LoopKind::kTasks, "output rows of a task")};
  LoopPart part;
  part.loops = {LoopOver("oh", rows, 1, LoopKind::kLoop),
                LoopOver("ow", w.ow, width, LoopKind::kLoop, "tiles; positions at the border one by one"),
                LoopOver("kh", w.kh, 1, LoopKind::kLoop),
                LoopOver("kw", w.kw, 1, LoopKind::kLoop),
                LoopOver("ic", channels, 1, LoopKind::kLoop),
                LoopOver("ow", width, 1, LoopKind::kUnrolled),
                LoopOver(depthwise ? "c" : "oc", kPortableLanes, 1, LoopKind::kVector)};
  part.body = "sum += weights * input";
  nest.parts = {std::move(part)};
  const int64_t lanes = kPortableLanes,
                columns = std::min(w.iw, (width - 1) * w.sw + (w.kw - 1) * (w.dw + 1) + 1);
  nest.tile_input_bytes = static_cast<double>(columns * w.kh * (depthwise ? lanes : channels)) * kBytes;
  nest.tile_weight_bytes = static_cast<double>(lanes * w.kh * w.kw * channels) * kBytes;
  nest.tile_output_bytes = static_cast<double>(lanes * width) * kBytes;
  return nest;
}

LoopNest OverWidth(const Schedule& s) {
  const ConvWorkload& w = s.workload;
  const int64_t rows = std::min(s.config.rows, w.oh), channels = w.ic / w.g, outputs = w.oc / w.g;
  const int64_t planes = std::min<int64_t>(kPortableMaxPlanes, outputs), lanes = kPortableLanes;
  LoopNest nest;
  nest.tasks = {LoopOver("mb", w.mb, 1, LoopKind::kTasks), LoopOver("g", w.g, 1, LoopKind::kTasks),
                LoopOver("oh", w.oh, rows, LoopKind::kTasks, "output rows of a task")};
  LoopPart gather = {"gather the group's input rows, planar and padded", {}, "row in scratch = input", 0};
  gather.loops = {LoopOver("ic", channels, 1, LoopKind::kLoop),
                  LoopOver("ih", (rows - 1) * w.sh + (w.kh - 1) * (w.dh + 1) + 1, 1, LoopKind::kLoop),
                  LoopOver("iw", w.iw, 1, LoopKind::kLoop)};
  LoopPart multiply = {"multiply", {}, "sum += weight * input", 1};
  multiply.loops = {
      LoopOver("oh", rows, 1, LoopKind::kLoop),       LoopOver("oc", outputs, planes, LoopKind::kLoop),
      LoopOver("ow", w.ow, lanes, LoopKind::kLoop),   LoopOver("ic", channels, 1, LoopKind::kLoop),
      LoopOver("kh", w.kh, 1, LoopKind::kLoop),       LoopOver("kw", w.kw, 1, LoopKind::kLoop),
      LoopOver("oc", planes, 1, LoopKind::kUnrolled), LoopOver("ow", lanes, 1, LoopKind::kVector)};
  nest.parts = {std::move(gather), std::move(multiply)};
  nest.tile_input_bytes = static_cast<double>((lanes + w.kw - 1) * w.kh * channels) * kBytes;
  nest.tile_weight_bytes = static_cast<double>(planes * channels * w.kh * w.kw) * kBytes;
  nest.tile_output_bytes = static_cast<double>(planes * lanes) * kBytes;
  return nest;
}

}  // namespace

LoopNest NestOf(const Schedule& s) {
  const ConvWorkload& w = s.workload;
  if (s.config.over_width) return OverWidth(s);
  return OverChannels(s, IsDepthwise(w, s.in.BlockFor(w.ic), s.out.BlockFor(w.oc)));
}

}  // namespace tilesmith::portable
