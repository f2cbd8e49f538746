// The settings that LoadOptions, TuneSettings, OptimizeSettings, GraphTuneSettings and QuantizeSettings have,
// once: what C and Python give is taken by it, and numbers are checked. What reports progress and what stops
// is not among them.
#pragma once

// Calls X(name) for each.
// clang-format off
#define TILESMITH_SETTINGS(X) \
  X(plan) X(log) X(seconds) X(graph_seconds) X(rounds) X(database) X(program) \
  X(threads) X(batch) X(input_shapes) X(sizes) X(max_elements) X(max_memory) X(wait) X(target) X(precision) X(reproducible) \
  X(strict) X(calibrate) X(max_output_error) X(max_error) X(forbid) X(input_layout) X(output_layout) \
  X(max_weights) X(samples) X(method) X(percentile) X(activations) X(reduce_range) X(keep) X(keep_first) \
  X(keep_last) X(op_types) X(external_data) X(check)
// clang-format on

namespace tilesmith {

// Calls visit(name, value) for each that the settings have.
template <typename Settings, typename Visit>
void VisitSettings(Settings& settings, const Visit& visit) {
#define TILESMITH_VISIT(name) \
  if constexpr (requires { settings.name; }) visit(#name, settings.name);
  TILESMITH_SETTINGS(TILESMITH_VISIT)
#undef TILESMITH_VISIT
}

}  // namespace tilesmith
