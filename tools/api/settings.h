// What the APIs' settings are to the use cases.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <type_traits>

#include "layouts/base/error.h"
#include "tools/api/setting_list.h"
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

// Throws Error(kUsage) for a number below 0, which is not the default that 0 asks for.
template <typename Settings>
void CheckNumbers(const Settings& settings) {
  VisitSettings(settings, [](std::string_view name, const auto& value) {
    if constexpr (std::is_signed_v<std::decay_t<decltype(value)>>) {
      if (!(value >= 0) && name != "percentile")  // which has a range of its own
        throw Error(ErrorCode::kUsage, fmt::format("{} must be at least 0, got {}", name, value));
    }
  });
}

// Stages and warnings go to the settings' on_progress.
template <typename Settings>
WorkSinks SinksOf(const Settings& settings) {
  return {.on_stage = settings.on_progress, .on_warning = settings.on_progress, .stop = settings.stop};
}

}  // namespace tilesmith
