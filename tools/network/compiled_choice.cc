#include "tools/network/compiled_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "layouts/base/error.h"

namespace tilesmith {
namespace {

const Shape* ShapeFor(const std::map<std::string, Shape>& shapes, const CompiledSummary& network,
                      const UserTensor& input) {
  auto found = shapes.find(input.name);
  if (found == shapes.end() && network.inputs.size() == 1) found = shapes.find("");
  return found == shapes.end() ? nullptr : &found->second;
}

void RequireNames(const CompiledFile& file, const std::map<std::string, Shape>& shapes) {
  const std::vector<UserTensor>& inputs = file.networks().front().inputs;
  for (const auto& [name, shape] : shapes) {
    if (name.empty() || std::ranges::find(inputs, name, &UserTensor::name) != inputs.end()) continue;
    throw Error(ErrorCode::kUsage, fmt::format("{} has no input named \"{}\"", file.path(), name));
  }
}

}  // namespace

ChosenNetwork ChooseCompiled(const CompiledFile& file, const MachineOptions& machine,
                             const std::map<std::string, Shape>& shapes) {
  RequireNames(file, shapes);
  std::vector<Shape> wanted;
  for (const CompiledSummary& network : file.networks()) {
    wanted.clear();
    bool fits = true;
    for (const UserTensor& input : network.inputs) {
      const Shape* const shape = ShapeFor(shapes, network, input);
      fits &= shape == nullptr || *shape == input.shape;
      wanted.push_back(shape ? *shape : input.shape);
    }
    if (fits) break;
  }
  const Target cpu = ChosenTarget(machine);
  const int threads = machine.threads > 0 ? static_cast<int>(machine.threads) : cpu.cores;
  const size_t index = file.Choose(cpu, threads, shapes.empty() ? nullptr : &wanted);
  return {file.path(), file.networks()[index].origin,
          LoadCompiled(file, index, ParseWaitPolicy(machine.wait))};
}

void DeclareSource(Args& args, std::string* model, const std::string& what_for) {
  args.Text("--model", model, "Of a compiled network: the model that it was compiled from, for " + what_for,
            "MODEL");
}

void TakeSource(const ChosenNetwork& compiled, const std::string& source, ModelOptions* options) {
  options->model = source;
  options->input_shapes.clear();
  for (const UserTensor& input : compiled.network->inputs)
    if (!input.shape.empty())
      options->input_shapes.push_back(fmt::format("{}={}", input.name, ShapeToString(input.shape)));
}

void RequireSource(const ChosenNetwork& compiled, const ModelOptions& source, const Graph& graph) {
  if (GraphHash(graph) == compiled.origin.graph_hash) return;
  throw Error(ErrorCode::kUsage,
              fmt::format("{} was compiled from network \"{}\" ({}), {} is another one ({}){}", compiled.path,
                          compiled.origin.network, compiled.origin.graph_hash, source.model, GraphHash(graph),
                          source.quantization ? "" : ", unless a plan quantises it: give that, too"));
}

void RequireSource(const ChosenNetwork& compiled, const std::string& plan_path, const Plan& plan) {
  if (PlanHash(plan) == compiled.origin.plan_hash) return;
  throw Error(ErrorCode::kUsage,
              fmt::format("{} was compiled by plan {}, {} {}: give that one with --plan", compiled.path,
                          compiled.origin.plan_hash,
                          plan_path.empty() ? "default schedules are" : plan_path + " is", PlanHash(plan)));
}

}  // namespace tilesmith
