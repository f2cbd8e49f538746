// What a template says of where its tasks lie, before anything is built: for plans that keep parts of tensors
// with the threads that wrote them (layouts/base/split.h).
#pragma once

#include <optional>

#include "layouts/base/split.h"
#include "templates/base/conv_template.h"

namespace tilesmith {

class TaskPlaces {
 public:
  virtual ~TaskPlaces() = default;
  // A valid config for networks whose threads keep the rows that they wrote: in NHWC, few input channels in
  // planes, and with tasks that cpu.cores even shares cut, nearly, at the same part of the height in every
  // conv. nullopt for a conv of one row or that is not supported, or where there is none.
  virtual std::optional<Config> RowsDefault(const ConvWorkload& workload, const Target& cpu) const = 0;
  // Where the tasks lie that write the output: the built kernel's grid of its last stage. Preconditions as
  // ConvTemplate's.
  virtual TaskGrid Grid(const ConvWorkload& workload, const Config& config, const Target& cpu) const = 0;
};

// Null for a template that does not say.
inline const TaskPlaces* PlacesOf(const ConvTemplate& conv_template) {
  return dynamic_cast<const TaskPlaces*>(&conv_template);
}

}  // namespace tilesmith
