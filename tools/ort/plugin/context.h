// Regions as ONNX Runtime ships them when they are compiled: EPContext nodes, each of which names a file of
// graph_tuner/compiled beside the model, or holds it.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "graph_tuner/compiled/compiled_file.h"
#include "tools/api/tilesmith.h"
#include "tools/ort/plugin/ort_api.h"

namespace tilesmith {

// What a session's owner asks of compiled models.
struct ContextOptions {
  bool wanted = false;    // that the session writes one
  bool embedded = false;  // whose nodes hold the files
  std::string path;       // of the model that is written, or read from memory; "": not known
};
// From the session's entries by what is behind "ep.context_" in their names.
ContextOptions ParseContextOptions(const std::map<std::string, std::string>& entries);

using OrtNodePtr = std::unique_ptr<OrtNode, void (*)(OrtNode*)>;

// The node for a region that the host calls `fused`, number `index` of the session; its file is written.
// Throws Error(kUsage) where nobody knows the folder, or the file is too large to be embedded, and as
// WriteCompiled and NewFile do.
OrtNodePtr MakeContextNode(const OrtApi& api, const OrtGraph* graph, const OrtNode* fused, size_t index,
                           const CompiledModel& model, const ContextOptions& options);

// What such a node holds. Throws Error(kBadModel) for a node that is none of ours, or not of floats, and as
// CompiledFile and its Choose do.
Model LoadContextNode(const OrtApi& api, const OrtGraph* graph, const OrtNode* node,
                      const ContextOptions& options, const LoadOptions& load);

}  // namespace tilesmith
