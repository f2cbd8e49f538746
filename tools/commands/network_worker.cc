#include "tools/peers/network_worker.h"

#include <fmt/format.h>
#include <unistd.h>

#include "graph_tuner/planner/network_run.h"
#include "layouts/base/error.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/machine.h"
#include "tools/cli/model.h"
#include "tools/commands/commands.h"
#include "tools/network/compiled_choice.h"
#include "tools/network/input_files.h"
#include "tools/network/plan_choice.h"
#include "tools/onednn/onednn.h"
#include "tools/onednn/onednn_network.h"
#include "tools/peers/onnx_runtime.h"

namespace tilesmith {
namespace {

class NetworkWorkerCommand : public Command {
 public:
  NetworkWorkerCommand()
      : Command({.name = "network-worker",
                 .purpose = "Run a network for bench or tools/bench-rivals, which start this themselves",
                 .examples = "tilesmith network-worker resnet50",
                 .hidden = true}) {}
  void Declare(Args& args) override {
    DeclareModelOptions(args, &model_);
    args.Text("--plan", &plan_path_, "Plan to run the network with", "PLAN");
    args.Text("--onnxruntime", &library_, "Run it with ONNX Runtime's library instead", "FILE");
    args.Flag("--plain", &plain_, "ONNX Runtime without its graph optimizations");
    args.Flag("--onednn", &onednn_, "Run it with oneDNN's primitives instead");
    args.Flag("--bf16", &bf16_, "With floats of oneDNN's in bf16");
    args.Texts("--input", &inputs_, "Inputs for ours and oneDNN, instead of random ones", "FILE.npz");
    args.Text("--onnx", &onnx_path_, "The network as a file, for ONNX Runtime", "FILE");
    args.Text("--outputs", &outputs_path_, "FILE.npz for what the first run gives", "FILE");
    DeclareMachineOptions(args, &machine_options_);
  }

  int Run() override {
    IgnoreInterrupts();
    machine_options_.reproducible = AskReproducible(plan_path_);
    const DevicePtr machine = OpenMachine(machine_options_);
    if (IsCompiledFile(model_.model))
      return Serve(
          ChooseCompiled(CompiledFile(model_.model), machine_options_, ShapesByName(model_)).network);
    TakeQuantization(plan_path_, &model_);
    Graph graph = LoadModel(model_);
    if (onednn_) return RunOneDnn(machine, graph);
    return library_.empty() ? RunOurs(machine, std::move(graph)) : RunOnnxRuntime(machine, std::move(graph));
  }

 private:
  int RunOurs(const DevicePtr& machine, Graph graph) {
    const Plan plan = LoadPlan(plan_path_, graph, machine);
    return Serve(CompileNetwork(std::move(graph), plan, machine));
  }

  int Serve(const std::shared_ptr<const CompiledNetwork>& compiled) {
    NetworkRun network(compiled, InputsOf(compiled->inputs, ReadInputs(inputs_), kNetworkSeed));
    if (!outputs_path_.empty()) {
      network.Run();
      WriteNpz(outputs_path_, network.Outputs());
    }
    const auto run = [&] {
      network.Run();
      if (compiled->tail) network.Outputs();  // ONNX Runtime computes it in every run
    };
    return ServeNetwork({"tilesmith " TILESMITH_VERSION, run}, STDIN_FILENO, STDOUT_FILENO);
  }

  int RunOneDnn(const DevicePtr& machine, const Graph& graph) {
    PrepareOneDnn(*machine);
    std::string refusal;
    const auto chain = OneDnnNetwork::Create(
        graph, [](const ConvWorkload&) { return OneDnnAlgorithm::kAuto; }, machine->target(), {}, &refusal,
        bf16_ ? DataType::kBf16 : DataType::kF32);
    if (chain == nullptr) throw Error(ErrorCode::kUsage, "oneDNN does not take it: " + refusal);
    const std::vector<Tensor> inputs = InputsOf(graph, ReadInputs(inputs_), kNetworkSeed);
    for (size_t i = 0; i < inputs.size(); ++i) chain->SetInput(static_cast<int>(i), inputs[i]);
    if (!outputs_path_.empty()) {
      chain->Run();
      std::vector<NamedTensor> outputs;
      for (const Graph::NodeId id : graph.outputs())
        outputs.emplace_back(graph.node(id).name, chain->GetOutput(static_cast<int>(outputs.size())));
      WriteNpz(outputs_path_, outputs);
    }
    const OneDnnTurn turn;
    return ServeNetwork({fmt::format("oneDNN {}", OneDnnVersion()), [&] { chain->Run(); }}, STDIN_FILENO,
                        STDOUT_FILENO);
  }

  int RunOnnxRuntime(const DevicePtr& machine, Graph graph) {
    const auto model =
        OpenOnnxRuntime(library_, onnx_path_, machine->threads(), std::move(graph), kNetworkSeed,
                        plain_ ? GraphOptimizations::kNone : GraphOptimizations::kAll);
    if (!outputs_path_.empty()) {
      model->Run();
      WriteNpz(outputs_path_, model->Outputs());
    }
    return ServeNetwork({model->version(), [&] { model->Run(); }}, STDIN_FILENO, STDOUT_FILENO);
  }

  ModelOptions model_;
  MachineOptions machine_options_;
  bool plain_ = false, onednn_ = false, bf16_ = false;
  std::vector<std::string> inputs_;
  std::string plan_path_, library_, onnx_path_, outputs_path_;
};

}  // namespace

std::unique_ptr<Command> MakeNetworkWorkerCommand() { return std::make_unique<NetworkWorkerCommand>(); }

}  // namespace tilesmith
