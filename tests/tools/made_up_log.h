// A tuning log of a network that nobody measured.
#pragma once

#include <set>
#include <string>

#include "layouts/base/target.h"
#include "ops/conv/conv.h"
#include "tools/cli/model.h"
#include "tuner/records/log.h"

namespace tilesmith {

// Every conv by the portable template, in NCHW8c and, half as fast, in NCHW16c.
inline void WriteMadeUpLog(const std::string& model, const std::string& input, const std::string& path) {
  const Target cpu = DetectCpu();
  const ConvTemplate& portable = FindConvTemplate("portable");
  LogWriter log(path);
  std::set<std::string> known;
  const Graph graph = LoadModel({.model = model, .input_shapes = {input}});
  for (Graph::NodeId id = 0; id < graph.size(); ++id) {
    const auto* conv = graph.As<ConvOp>(id);
    if (!conv || !known.insert(WorkloadToString(conv->workload())).second) continue;
    for (const int64_t block : {8, 16}) {
      Record record;
      record.target = cpu;
      record.workload = conv->workload();
      record.template_name = portable.Name();
      record.config = portable.Default(conv->workload(), cpu);
      record.config.Set("ic_block", conv->workload().ic == 3 ? 1 : block);
      record.config.Set("oc_block", block);
      record.layouts = portable.Layouts(record.workload, record.config);
      record.seconds = block == 8 ? 1e-5 : 2e-5;
      record.sample_seconds = {record.seconds};
      record.tuner = "made up";
      record.time = "2024-01-01T00:00:00Z";
      log.Append(record);
    }
  }
}

}  // namespace tilesmith
