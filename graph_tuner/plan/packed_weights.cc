#include "graph_tuner/plan/packed_weights.h"

#include "templates/base/conv_template.h"

namespace tilesmith {

double PackedWeightBytes(const Record& record, const Target& cpu) {
  return FindConvTemplate(record.template_name).Features(record.workload, record.config, cpu).weight_bytes;
}

double PackedWeightBytes(const Plan& plan, const Target& cpu) {
  double bytes = 0;
  for (const NodePlan& node : plan.nodes)
    if (node.record) bytes += PackedWeightBytes(*node.record, cpu);
  return bytes;
}

}  // namespace tilesmith
