// Models of networks that are no files, for what is built together with the library.
#pragma once

#include <memory>

#include "graph_tuner/executor/compiled_network.h"
#include "tools/api/tilesmith.h"

namespace tilesmith {

struct ModelFromGraph {
  static Model Of(std::shared_ptr<const CompiledNetwork> network, double predicted_seconds);
};

}  // namespace tilesmith
