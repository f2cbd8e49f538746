// One form of a network, in floats or quantised as the request's model says: its schedules and layouts.
#pragma once

#include "graph_tuner/check/output_errors.h"
#include "tools/tune/graph_tune_model.h"

namespace tilesmith {

// What is known of the errors of a form that is quantised: `of` holds outputs against the network in floats.
struct KnownErrors {
  const OutputErrors& of;
  ErrorSquares squares;  // of its convolutions in bf16
  double of_bytes = 0;   // the square of what its layers in bytes do
};

// As GraphTuneModel, of the model as LoadModel gives it, mixed being f32 and bf16, beside no other types but
// the model's own. With `writes` false the plan is only returned. Without known errors those of a form in
// floats are measured; a limit on those of a quantised one needs them. Precondition: request.machine.
GraphTunedModel GraphTuneForm(const GraphTuneModelRequest& request, const WorkSinks& sinks,
                              bool writes = true, const KnownErrors* known = nullptr);

}  // namespace tilesmith
