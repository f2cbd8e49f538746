// What the APIs' settings are to the use cases.
#pragma once

#include <string>

#include "tools/api/tilesmith.h"
#include "tools/cli/model.h"
#include "tools/cli/progress.h"

namespace tilesmith {

// What the commands take for a model in a file or of a built-in network, and for one in memory.
inline ModelOptions OptionsOf(const std::string& model) { return {.model = model, .input_shapes = {}}; }
inline ModelOptions OptionsOf(const ModelMemory& model) {
  return {.model = model.name,
          .input_shapes = {},
          .memory = ModelInMemory{{reinterpret_cast<const char*>(model.bytes.data()), model.bytes.size()},
                                  PartsInMemory(model.parts)}};
}

// Stages and warnings go to the settings' on_progress.
template <typename Settings>
WorkSinks SinksOf(const Settings& settings) {
  return {.on_stage = settings.on_progress, .on_warning = settings.on_progress, .stop = settings.stop};
}

}  // namespace tilesmith
