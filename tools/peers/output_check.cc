#include "tools/peers/output_check.h"

#include <fmt/format.h>

#include <memory>
#include <optional>

#include "graph_tuner/planner/network_run.h"
#include "layouts/base/error.h"
#include "ops/quantize/byte_sums.h"
#include "tools/cli/output_file.h"
#include "tools/network/outputs.h"
#include "tools/peers/onnx_runtime.h"

namespace tilesmith {

OutputCheck CheckOutputs(const ModelOptions& model, const Graph& graph, const std::vector<PlanToCheck>& plans,
                         const DevicePtr& machine, const std::string& library, const StopFlag* stop) {
  constexpr uint64_t kSeed = 1;
  const bool beside_reference = library.empty() || MaySaturate(graph, DetectCpu());
  const ScratchFolder scratch;
  const std::string onnx = beside_reference ? ""
                                            : TwinInFloats(OnnxFileOf(model, scratch.File("model.onnx")),
                                                           scratch.File("twin.onnx"));
  OutputCheck check;
  const auto peer_outputs = [&](GraphOptimizations optimizations) {
    const auto peer = OpenOnnxRuntime(library, onnx, machine->threads(), graph, kSeed, optimizations);
    peer->Run();
    check.expected_from = "ONNX Runtime " + peer->version();
    return peer->Outputs();
  };
  std::vector<NamedTensor> expected;
  if (beside_reference) {
    check.expected_from = "the reference";
    expected = ReferenceOutputs(graph, SeededInputs(graph, kSeed), stop);
  } else {
    expected = peer_outputs(GraphOptimizations::kAll);
  }
  std::optional<double> peer_difference;  // to itself in another order
  for (const PlanToCheck& checked : plans) {
    check.differences.push_back(0);
    check.allowed.push_back(kAllowedOutputDifference);
    check.wrong.emplace_back();
    if (!checked.plan) continue;
    NetworkRun ours(graph, *checked.plan, machine, SeededInputs(graph, kSeed), stop);
    ours.Run();
    check.differences.back() = LargestDifference(ours.Outputs(), expected);
    if (check.differences.back() <= kAllowedOutputDifference) continue;
    const NetworkCheck layers = ours.Check(graph);
    check.allowed.back() = AllowedBesideOthers(layers.rounding);
    check.wrong.back() = layers.wrong;
    if (beside_reference || check.differences.back() <= check.allowed.back()) continue;
    if (!peer_difference)
      peer_difference = LargestDifference(peer_outputs(GraphOptimizations::kNone), expected);
    check.allowed.back() = AllowedBesideOthers(layers.rounding, *peer_difference);
  }
  return check;
}

void AddOutputCheck(Report& report, const std::vector<PlanToCheck>& plans, const OutputCheck& check) {
  Table table("outputs", "outputs beside those of " + check.expected_from,
              {{"plan", "plan"}, {"difference", "difference"}, {"allowed", "allowed"}, {"note", "note"}});
  for (size_t i = 0; i < plans.size(); ++i) {
    const auto cell = [&](double value) {
      return plans[i].plan ? Cell{value, fmt::format("{:.1e}", value)} : NoCell();
    };
    table.AddRow({TextCell(plans[i].name), cell(check.differences[i]), cell(check.allowed[i]),
                  TextCell(plans[i].note)});
  }
  report.AddTable(std::move(table));
}

void RequireAlike(const std::vector<PlanToCheck>& plans, const OutputCheck& check) {
  for (size_t i = 0; i < plans.size(); ++i) {
    const bool alike = check.differences[i] <= check.allowed[i];
    if (alike && check.wrong[i].empty()) continue;
    throw Error(
        ErrorCode::kWrongAnswer,
        fmt::format("{}: outputs differ from those of {} by {:.1e} of the largest (allowed: {:.1e}){}{}",
                    plans[i].name, check.expected_from, check.differences[i], check.allowed[i],
                    check.wrong[i].empty() ? "" : "; ", check.wrong[i]));
  }
}

}  // namespace tilesmith
