// Plans with regions, and runs of them that see what is read or written where it must not be.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "graph_tuner/executor/compiled_network.h"
#include "graph_tuner/executor/heuristic_plan.h"
#include "layouts/tensor.h"
#include "tests/graph_tuner/support/executor_testing.h"

namespace tilesmith {

// Defaults by rows, of convolutions in channels-last, whose tasks are a few rows where that is a knob.
inline Plan RowsPlan(const Graph& graph, const Target& cpu, int threads) {
  return PlanOfRecords(graph, cpu, threads, [&](const ConvWorkload& workload) {
    Record record = DefaultRecord(workload, cpu, threads, DefaultStyle::kRows);
    const ConfigSpace space = FindConvTemplate(record.template_name).Space(workload, cpu);
    for (const int64_t rows : {1, 2, 3, 4}) {
      Config few = record.config;
      if (few.Find("rows")) few.Set("rows", rows);
      if (space.IndexOf(few) && space.WhyInvalid(few).empty()) record.config = few;
    }
    return record;
  });
}

// With one more region, of these nodes.
inline Plan WithRegion(Plan plan, const std::set<std::string>& nodes, int64_t band_rows) {
  plan.regions.push_back({band_rows});
  for (NodePlan& node : plan.nodes)
    if (nodes.contains(node.node)) node.region = static_cast<int>(plan.regions.size());
  return plan;
}

// The bytes of each output. Activations and buffers are full of NaN before, and nothing is written outside of
// the outputs.
inline std::vector<std::string> BytesOfRun(const std::shared_ptr<const CompiledNetwork>& network,
                                           const std::vector<Tensor>& inputs) {
  constexpr size_t kGuard = 4096;
  Executor executor(network);
  std::memset(executor.arena().data.get(), 0xff, executor.ArenaBytes());
  std::vector<Tensor> in;
  std::vector<const void*> reads;
  for (size_t i = 0; i < inputs.size(); ++i) in.push_back(InOrder(inputs[i], network->inputs[i].layout));
  for (const Tensor& tensor : in) reads.push_back(tensor.raw());
  std::vector<AlignedBuffer> memory;
  std::vector<void*> writes;
  std::vector<size_t> sizes;
  for (const UserTensor& output : network->outputs) {
    sizes.push_back(static_cast<size_t>(PaddedBytes(output.shape, output.layout)));
    memory.emplace_back(sizes.back() + 2 * kGuard);
    std::memset(memory.back().data(), 0xa5, memory.back().bytes());
    writes.push_back(static_cast<std::byte*>(memory.back().data()) + kGuard);
  }
  executor.Run(reads, writes);
  std::vector<std::string> outputs;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const std::string_view all(static_cast<const char*>(memory[i].data()), sizes[i] + 2 * kGuard);
    const auto is_guard = [](char byte) { return byte == static_cast<char>(0xa5); };
    EXPECT_TRUE(std::ranges::all_of(all.substr(0, kGuard), is_guard)) << "in front of output " << i;
    EXPECT_TRUE(std::ranges::all_of(all.substr(kGuard + sizes[i]), is_guard)) << "behind output " << i;
    outputs.emplace_back(all.substr(kGuard, sizes[i]));
  }
  return outputs;
}

}  // namespace tilesmith
