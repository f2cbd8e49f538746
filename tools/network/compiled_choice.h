// Compiled files as commands take them: the network that is meant, and what it was compiled from.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "graph_tuner/compiled/compiled_file.h"
#include "graph_tuner/plan/plan.h"
#include "ops/graph/graph.h"
#include "tools/cli/args.h"
#include "tools/cli/machine.h"
#include "tools/cli/model.h"

namespace tilesmith {

struct ChosenNetwork {
  std::string path;
  CompiledOrigin origin;
  std::shared_ptr<const CompiledNetwork> network;
};

// The file's network that fits the machine best (CompiledFile::Choose), among those whose inputs have these
// shapes, by name; "" is a network's only input. Throws as Choose and LoadCompiled do, and Error(kUsage) for
// a name that no input has.
ChosenNetwork ChooseCompiled(const CompiledFile& file, const MachineOptions& machine,
                             const std::map<std::string, Shape>& shapes);

// "--model", of what takes compiled files.
void DeclareSource(Args& args, std::string* model, const std::string& what_for);

// Has `options` load `source` for the network's sizes.
void TakeSource(const ChosenNetwork& compiled, const std::string& source, ModelOptions* options);

// Throws Error(kUsage), saying which is another one, unless the network was compiled from this graph and this
// plan. Weights are not looked at.
void RequireSource(const ChosenNetwork& compiled, const ModelOptions& source, const Graph& graph);
void RequireSource(const ChosenNetwork& compiled, const std::string& plan_path, const Plan& plan);

}  // namespace tilesmith
