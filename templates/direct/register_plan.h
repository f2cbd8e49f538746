// Which vector register holds what in the direct kernel. A plan that needs more registers than the CPU has
// makes the config invalid before a byte is emitted.
#pragma once

#include "templates/direct/config.h"

namespace tilesmith::direct {

//   [0, accumulators)             output tile, vector v of position w at v * positions + w
//   [first_broadcast, + count)    input elements, used in turn so that loads run ahead
//   [first_weight, registers)     weight vectors held in registers
// Before and after the channel loop everything from first_broadcast on is scratch.
struct RegisterPlan {
  int accumulators = 0;
  int first_broadcast = 0;
  int broadcasts = 0;
  int first_weight = 0;
  int weights = 0;
  bool fits = false;
};

// Scratch registers that the epilogue needs beside the accumulators.
constexpr int kEpilogueScratch = 2;

inline RegisterPlan PlanRegisters(int vectors, int positions, Broadcast broadcast, int registers) {
  constexpr int kMaxBroadcasts = 4;
  RegisterPlan plan;
  plan.accumulators = vectors * positions;
  plan.weights = broadcast == Broadcast::kMixed ? vectors - 1 : vectors;
  plan.first_weight = registers - plan.weights;
  plan.first_broadcast = plan.accumulators;
  const int room = plan.first_weight - plan.accumulators;
  const int needed = broadcast == Broadcast::kEmbedded ? 0 : 1;
  plan.fits = room >= needed && plan.accumulators + kEpilogueScratch <= registers;
  plan.broadcasts = needed == 0 || room < 0 ? 0 : room < kMaxBroadcasts ? room : kMaxBroadcasts;
  return plan;
}

}  // namespace tilesmith::direct
