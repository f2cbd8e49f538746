// What a network is run with and gives, as files.
#pragma once

#include <string>
#include <vector>

#include "graph_tuner/executor/compiled_network.h"
#include "ops/graph/graph.h"
#include "tools/cli/npz.h"
#include "tools/network/plan_choice.h"

namespace tilesmith {

struct InputFile {
  std::string argument;  // for messages
  std::string name;      // of the input; "": the only one
  Tensor tensor;
};

// Each of `arguments` is FILE.npz, whose entries are named after the inputs; NAME=FILE.npz, of which the
// entry of that name counts, or its only one; or NAME=FILE.npy, whose NAME may be left out when there is one
// input. Throws Error(kUsage) for other arguments.
std::vector<InputFile> ReadInputs(const std::vector<std::string>& arguments);
// The network's inputs from them; those not given are random, seeded. Throws Error(kUsage) when a name, shape
// or type is not the network's.
std::vector<Tensor> InputsOf(std::span<const UserTensor> wanted, std::vector<InputFile> files, uint64_t seed);
std::vector<Tensor> InputsOf(const Graph& graph, std::vector<InputFile> files, uint64_t seed);

// FILE.npz, or a directory that gets one NAME.npy per output, characters unfit for file names replaced by
// '_'.
void SaveOutputs(const std::string& path, const std::vector<NamedTensor>& outputs);
// Before long work: throws as SaveOutputs would, and changes nothing but that it makes the directory; and
// with Error(kUsage) where the file is one that `inputs`, as ReadInputs takes them, name.
void RequireSavable(const std::string& path, const std::vector<std::string>& inputs);

// LoadPlan for commands: says on stderr what it notes.
Plan OpenPlan(const std::string& path, const Graph& graph, const DevicePtr& machine,
              PlanLoading loading = {});

}  // namespace tilesmith
