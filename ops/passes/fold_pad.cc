#include <algorithm>

#include "layouts/base/error.h"
#include "ops/conv/conv.h"
#include "ops/movement/pad.h"
#include "ops/passes/pass_util.h"
#include "ops/passes/passes.h"
#include "ops/pool/pool.h"

namespace tilesmith {
namespace {

using NodeId = Graph::NodeId;

bool PadsPlanesWithZeros(const PadOp& pad) {
  const auto& begin = pad.begin();
  const auto& end = pad.end();
  if (pad.mode() != PadMode::kConstant || pad.value() != 0 || begin.size() != 4) return false;
  if (begin[0] != 0 || begin[1] != 0 || end[0] != 0 || end[1] != 0) return false;
  return std::min({begin[2], begin[3], end[2], end[3]}) >= 0;
}

OpPtr WithPad(const PadOp& pad, const ConvOp& conv) {
  ConvWorkload workload = conv.workload();
  workload.ih -= pad.begin()[2] + pad.end()[2];
  workload.iw -= pad.begin()[3] + pad.end()[3];
  workload.ph += pad.begin()[2];
  workload.pw += pad.begin()[3];
  try {
    ValidateWorkload(workload);
  } catch (const Error&) {
    return nullptr;  // more padding at the end than a workload can state
  }
  return std::make_shared<ConvOp>(workload, conv.weights(), conv.bias());
}

OpPtr WithPad(const PadOp& pad, const PoolOp& pool) {
  PoolWindow window = pool.window();
  const bool own_padding = window.top + window.left + window.bottom + window.right > 0;
  if (window.kind != PoolKind::kAverage || window.ceil_mode || (own_padding && !window.count_include_pad)) {
    return nullptr;
  }
  window.count_include_pad = true;  // the zeros were data, and counted
  window.top += pad.begin()[2];
  window.left += pad.begin()[3];
  window.bottom += pad.end()[2];
  window.right += pad.end()[3];
  return std::make_shared<PoolOp>(window);
}

OpPtr Folded(const Graph& graph, NodeId id) {
  const std::vector<NodeId> inputs = graph.Inputs(id);
  if (inputs.empty()) return nullptr;
  const PadOp* pad = OpAs<PadOp>(graph, inputs[0]);
  if (pad == nullptr || !PadsPlanesWithZeros(*pad)) return nullptr;
  if (const ConvOp* conv = OpAs<ConvOp>(graph, id)) return WithPad(*pad, *conv);
  if (const PoolOp* pool = OpAs<PoolOp>(graph, id)) return WithPad(*pad, *pool);
  return nullptr;
}

}  // namespace

Graph FoldPad(const Graph& graph) {
  std::vector<NodeId> unpadded(graph.size());  // of each Pad, its input in the result
  return RewriteGraph(
      graph, [&](NodeId id, const std::vector<NodeId>& inputs, Graph& result) -> std::optional<NodeId> {
        if (OpAs<PadOp>(graph, id) != nullptr) unpadded[id] = inputs[0];
        OpPtr folded = Folded(graph, id);
        if (folded == nullptr) return std::nullopt;
        std::vector<NodeId> sources = inputs;
        sources[0] = unpadded[graph.Inputs(id)[0]];
        return result.Add(graph.node(id).name, std::move(folded), sources);
      });
}

}  // namespace tilesmith
