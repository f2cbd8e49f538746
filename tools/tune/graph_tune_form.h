// One form of a network, in floats or quantised as the request's model says: its schedules and layouts.
#pragma once

#include "tools/tune/graph_tune_model.h"

namespace tilesmith {

// As GraphTuneModel, of the model as LoadModel gives it, mixed being f32 and bf16, beside no other types.
// With `writes` false the plan is only returned. Precondition: request.machine.
GraphTunedModel GraphTuneForm(const GraphTuneModelRequest& request, const WorkSinks& sinks,
                              bool writes = true);

}  // namespace tilesmith
