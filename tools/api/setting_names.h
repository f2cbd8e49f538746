// Commands and APIs share what reads models, tunes and plans, whose messages name options of the command
// line. Who uses an API reads the names of its settings instead, and may have a model in memory.
#pragma once

#include <functional>
#include <string>

#include "layouts/base/error.h"
#include "tools/api/tilesmith.h"
#include "tools/cli/model.h"
#include "tools/cli/progress.h"

namespace tilesmith {

// "--input-shape must be ..." -> "input_shapes must be ...". Of what no setting is called after, only the
// dashes go.
std::string WithSettingNames(const std::string& message);

// The same error with those names.
[[noreturn]] void ThrowWithSettingNames(const Error& error);

// What the commands take for a model in a file or of a built-in network, and for one in memory.
inline ModelOptions OptionsOf(const std::string& model) { return {.model = model, .input_shapes = {}}; }
inline ModelOptions OptionsOf(const ModelMemory& model) {
  return {.model = model.name,
          .input_shapes = {},
          .memory = ModelInMemory{{reinterpret_cast<const char*>(model.bytes.data()), model.bytes.size()},
                                  PartsInMemory(model.parts)}};
}

// Stages and warnings to the settings' on_progress, with those names.
template <typename Settings>
WorkSinks SinksOf(const Settings& settings) {
  std::function<void(const std::string&)> tell;
  if (settings.on_progress)
    tell = [&settings](const std::string& text) { settings.on_progress(WithSettingNames(text)); };
  return {.on_stage = tell, .on_warning = tell, .stop = settings.stop};
}

}  // namespace tilesmith
