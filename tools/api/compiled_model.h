// Models that are compiled networks: all that libtilesmith_run loads.
#pragma once

#include <memory>
#include <string>

#include "tools/api/prepared_sizes.h"
#include "tools/api/tilesmith.h"

namespace tilesmith {

// What a network is prepared for.
PreparedSize SizeOf(std::shared_ptr<const CompiledNetwork> network);

struct CompiledModel {
  // A file of `tilesmith compile`, whose networks are the sizes that the model takes, for this CPU, which
  // TILESMITH_MAX_ISA may cap. Throws Error(kUsage) for settings that the file decides, and what CompiledFile
  // throws.
  static Model Load(const std::string& path, const LoadOptions& options);
};

}  // namespace tilesmith
