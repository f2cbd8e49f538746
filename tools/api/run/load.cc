// Loading where nothing but compiled networks can be run: libtilesmith_run.
#include <fmt/format.h>

#include "graph_tuner/compiled/compiled_file.h"
#include "layouts/base/error.h"
#include "tools/api/model_impl.h"

namespace tilesmith {

Model Model::Load(const std::string& model, const LoadOptions& options) {
  if (IsCompiledFile(model)) return ModelFromFile::Load(model, options);
  throw Error(ErrorCode::kUsage,
              fmt::format("{} is no compiled network: libtilesmith_run runs what `tilesmith compile` writes, "
                          "libtilesmith loads models, too",
                          model));
}

Model Model::Load(const ModelMemory& model, const LoadOptions&) {
  throw Error(ErrorCode::kUsage, fmt::format("\"{}\" is a model in memory: libtilesmith_run runs files that "
                                             "`tilesmith compile` writes",
                                             model.name));
}

}  // namespace tilesmith
