// Networks with random weights, and logs whose convolutions have records in f32 and in bf16.
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ops/conv/conv.h"
#include "tests/graph_tuner/support/synthetic.h"
#include "tests/support/random.h"

namespace tilesmith {

inline Graph::NodeId AddRandomConv(Graph& graph, const std::string& name, const std::string& workload,
                                   std::vector<Graph::NodeId> inputs) {
  const ConvWorkload w = ParseWorkload(workload);
  const auto random = [&](Shape shape, uint64_t seed, float scale) {
    auto tensor = std::make_shared<Tensor>(std::move(shape));
    FillUniform({tensor->floats(), static_cast<size_t>(tensor->size())}, seed, -scale, scale);
    return tensor;
  };
  const float scale = std::sqrt(6.0f / static_cast<float>(w.ic * w.kh * w.kw));
  return graph.Add(name,
                   std::make_shared<ConvOp>(w, random(w.weights_shape(), graph.size(), scale),
                                            w.post.bias ? random({w.oc}, graph.size() + 99, 0.1f) : nullptr),
                   std::move(inputs));
}

// Records of default configs, in f32 and in bf16 with every pair of types; bf16 is twice as fast.
inline std::vector<Record> LogOfBothTypes(const Graph& graph, const Target& cpu) {
  std::vector<Record> records;
  for (Graph::NodeId id = 0; id < graph.size(); ++id) {
    const auto* conv = graph.As<ConvOp>(id);
    if (conv == nullptr) continue;
    Record record = DefaultRecord(conv->workload(), cpu, 2);
    record.seconds = 1e-3;
    record.sample_seconds = {record.seconds};
    records.push_back(record);
    const std::vector<const ConvTemplate*> templates = ConvTemplates(kCpuDevice, DataType::kBf16);
    const auto found = std::ranges::find_if(
        templates, [&](const ConvTemplate* one) { return one->Supports(conv->workload(), cpu).ok; });
    if (found == templates.end()) continue;
    const ConvTemplate& narrow = **found;
    for (const DataType in : {DataType::kBf16, DataType::kF32}) {
      for (const DataType out : {DataType::kBf16, DataType::kF32}) {
        record.template_name = narrow.Name();
        record.config = narrow.Default(conv->workload(), cpu);
        record.config.Set("in_type", static_cast<int64_t>(in));
        record.config.Set("out_type", static_cast<int64_t>(out));
        if (in == DataType::kF32) record.config.Set("oc_inner", 1);
        if (narrow.Space(conv->workload(), cpu).WhyInvalid(record.config) != "") continue;
        record.layouts = narrow.Layouts(conv->workload(), record.config);
        record.seconds = 0.5e-3;
        record.sample_seconds = {record.seconds};
        records.push_back(record);
      }
    }
  }
  return records;
}

}  // namespace tilesmith
