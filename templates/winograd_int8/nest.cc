// The winograd_int8 template's loops in words.
#include "ops/quantize/quantized_winograd_loops.h"
#include "templates/winograd_int8/schedule.h"

namespace tilesmith::winograd_int8 {

LoopNest NestOf(const Schedule& s) {
  const QuantizedWinogradPlan& p = s.plan;
  LoopNest nest;
  nest.tasks = {LoopOver("mb", p.conv.mb, 1, LoopKind::kTasks),
                LoopOver("tiles", p.row_parts * p.column_parts * p.part_tiles(), p.part_tiles(),
                         LoopKind::kTasks, "parts of an image, in tiles of 2x2 outputs"),
                LoopOver("oc", p.conv.oc, p.lanes, LoopKind::kTasks)};
  LoopPart in = {"transform the input, once for all blocks of channels: windows of 4x4",
                 {},
                 "V[xi] = 16 sums of a window's input - zero point",
                 0};
  in.loops = {LoopOver("tiles", p.part_tiles(), 1, LoopKind::kLoop),
              LoopOver("ic", p.channels, p.lanes, LoopKind::kLoop),
              LoopOver("ic", p.lanes, 1, LoopKind::kVector)};
  LoopPart multiply = {"multiply: one matrix product for each element xi of the windows",
                       {},
                       "sum += weights * V[xi]",
                       4.0 * 9 / kWinogradElements};
  multiply.loops = {LoopOver("xi", kWinogradElements, 1, LoopKind::kLoop),
                    LoopOver("tiles", p.part_tiles(), p.pixels, LoopKind::kLoop, "register tiles"),
                    LoopOver("ic", p.conv.ic, 2, LoopKind::kLoop),
                    LoopOver("tiles", p.pixels, 1, LoopKind::kUnrolled, "register tile"),
                    LoopOver("oc", p.lanes, 1, LoopKind::kVector),
                    LoopOver("ic", 2, 1, LoopKind::kVector, "summed by one instruction")};
  LoopPart out = {
      "transform back", {}, "2x2 outputs = a quarter of the transformed sums, rounded to bytes", 0};
  out.loops = {LoopOver("tiles", p.part_tiles(), 1, LoopKind::kLoop),
               LoopOver("oc", p.lanes, 1, LoopKind::kVector)};
  nest.parts = {std::move(in), std::move(multiply), std::move(out)};
  const auto tile = static_cast<double>(p.pixels), lanes = static_cast<double>(p.lanes),
             channels = static_cast<double>(p.conv.ic);
  nest.tile_input_bytes = tile * channels * sizeof(int16_t);
  nest.tile_weight_bytes = channels * lanes * sizeof(int16_t);
  nest.tile_output_bytes = tile * lanes * sizeof(int32_t);
  return nest;
}

}  // namespace tilesmith::winograd_int8
