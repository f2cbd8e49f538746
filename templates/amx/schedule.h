// What the schedules of templates by AMX tiles have in common, and what follows from that.
#pragma once

#include "templates/amx/config.h"

namespace tilesmith::amx {

struct Schedule {
  ConvWorkload workload;
  AmxConfig config;
  Layout in, out;  // as stored
  WindowPlan plan;
  bool as_it_is = false;  // windows are read where they lie, without a copy

  // Tiles of positions that a task multiplies with each tile of weights.
  int64_t position_tiles() const;
  // Instructions that multiply tiles, of one position tile and 16 output channels.
  int64_t steps() const;
};

// Precondition: in_type is a type that `number_bytes` has room for; out_type is one of the template's.
Schedule MakeSchedule(const ConvWorkload& workload, const AmxConfig& config, const Target& cpu,
                      int64_t number_bytes, DataType in_type, DataType out_type);

// Whether windows lie a fixed distance apart in the input itself, so that numbers that are multiplied as they
// are stored need no copy.
bool AreInPlace(const Schedule& schedule);

// A task is a block of 32 output channels in a tile of pixels of an image.
TaskGrid GridOf(const Schedule& schedule);
LoopFeatures FeaturesOf(const Schedule& schedule);
LoopNest NestOf(const Schedule& schedule);
// Estimates what ConvTemplate::Cycles does.
double CyclesOf(const Schedule& schedule, const Target& cpu);

}  // namespace tilesmith::amx
