// Networks through compiled files (graph_tuner/compiled).
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "graph_tuner/compiled/compiled_file.h"
#include "tests/graph_tuner/support/executor_testing.h"
#include "tests/support/temporary_files.h"

namespace tilesmith {

using CompiledNetworks = std::vector<std::shared_ptr<const CompiledNetwork>>;

inline std::string CompiledBytes(const CompiledNetworks& networks) {
  std::vector<CompiledModel> models;
  for (const auto& network : networks) models.push_back({.origin = {}, .network = network});
  std::string bytes;
  WriteCompiled(models, [&](std::span<const std::byte> piece) {
    bytes.append(reinterpret_cast<const char*>(piece.data()), piece.size());
  });
  return bytes;
}

// The network as it is when it was written to a file and loaded.
inline std::shared_ptr<const CompiledNetwork> ThroughFile(
    const std::shared_ptr<const CompiledNetwork>& network) {
  const TemporaryDirectory folder;
  const std::string path = folder.File("network.tsc");
  WriteFile(path, CompiledBytes({network}));
  return CompiledFile(path, true).Load(0, network->device);
}

inline std::vector<Tensor> OutputsOf(const std::shared_ptr<const CompiledNetwork>& network,
                                     const std::vector<Tensor>& inputs) {
  Executor executor(network);
  std::vector<Tensor> in, out;
  for (size_t i = 0; i < inputs.size(); ++i) in.push_back(InOrder(inputs[i], network->inputs[i].layout));
  for (const UserTensor& tensor : network->outputs) {
    out.emplace_back(tensor.shape, tensor.layout);
    std::fill_n(out.back().raw(), out.back().bytes(), std::byte{0xff});
  }
  executor.Run(Pointers(in), Pointers(out));
  return out;
}

// What is loaded computes the same bits, in the same steps. Inputs are plain.
inline void ExpectSameThroughFile(const std::shared_ptr<const CompiledNetwork>& network,
                                  const std::vector<Tensor>& inputs) {
  const auto loaded = ThroughFile(network);
  ASSERT_EQ(loaded->steps.size(), network->steps.size());
  for (size_t i = 0; i < loaded->steps.size(); ++i) {
    EXPECT_EQ(loaded->steps[i].name, network->steps[i].name);
    EXPECT_EQ(loaded->steps[i].kind, network->steps[i].kind);
  }
  const std::vector<Tensor> wanted = OutputsOf(network, inputs), got = OutputsOf(loaded, inputs);
  for (size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_TRUE(std::equal(got[i].raw(), got[i].raw() + got[i].bytes(), wanted[i].raw()))
        << "output " << network->outputs[i].name;
  }
}

}  // namespace tilesmith
