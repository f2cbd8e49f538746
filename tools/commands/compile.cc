#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "graph_tuner/compiled/compiled_file.h"
#include "graph_tuner/plan/plan_file.h"
#include "layouts/base/error.h"
#include "layouts/base/text_file.h"
#include "layouts/derived_tensors.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/machine.h"
#include "tools/cli/model.h"
#include "tools/cli/output_file.h"
#include "tools/cli/progress.h"
#include "tools/cli/report.h"
#include "tools/cli/results_file.h"
#include "tools/cli/streams.h"
#include "tools/commands/commands.h"
#include "tools/network/object_file.h"
#include "tools/network/plan_choice.h"

namespace tilesmith {
namespace {

class CompileCommand : public Command {
 public:
  CompileCommand()
      : Command({.name = "compile",
                 .purpose = "Write a network's steps, code and weights to one file, which runs where it lies",
                 .examples = "tilesmith compile resnet50 --plan resnet50.plan.jsonl -o resnet50.tsc\n"
                             "tilesmith compile resnet18 -o resnet18.tsc --for avx2 --for avx512 "
                             "--for-threads 1 --for-threads "
                             "2\n"
                             "tilesmith compile resnet18 -o sizes.tsc --input-shape input=1x3x64x64..96:16\n"
                             "tilesmith run resnet18.tsc\n"
                             "tilesmith compile resnet18 --object --threads 1 -o resnet18.o"}) {}
  void Declare(Args& args) override {
    args_ = &args;
    DeclareModelOptions(args, &model_);
    DeclarePlan(args, &plan_path_);
    args.Text("-o,--output", &path_, "File to write", "FILE");
    args.Texts("--for", &isas_,
               "For CPUs with these instructions: portable, avx2 or avx512, without a plan; may be repeated "
               "(default: this CPU's)",
               "ISA");
    args.Texts("--for-threads", &thread_counts_,
               "For so many threads, with a plan for each; may be repeated (default: as --threads says)",
               "N");
    args.Flag("--object", &object_,
              "Write an ELF object, NAME.o, and NAME.h for C, for programs without files and heap; for one "
              "thread where neither --threads nor a plan says otherwise");
    DeclareMachineOptions(args, &machine_options_);
    DeclareReproducible(args, &machine_options_.reproducible);
    args.Flag("--json", &json_, "Print JSON");
  }

  int Run() override {
    if (path_.empty()) throw Error(ErrorCode::kUsage, "-o FILE is required");
    if (!plan_path_.empty()) args_->RefuseGiven({"--for"}, "is not for a plan, which is for one CPU");
    std::optional<ObjectNames> object;
    if (object_) object = ObjectNamesOf(path_);
    if (object_ && plan_path_.empty() && !args_->IsGiven("--threads")) machine_options_.threads = 1;
    RequireReplaceable(path_, object ? OutputFormat::kObject : OutputFormat::kCompiled);
    if (object) RequireReplaceable(object->header, OutputFormat::kHeader);
    machine_options_.threads = ThreadsFor(plan_path_, machine_options_.threads);
    machine_options_.reproducible |= AskReproducible(plan_path_);
    TakeQuantization(plan_path_, &model_);
    CatchInterrupts();
    const std::vector<CompiledModel> networks = CompileAll();
    int64_t bytes = 0;
    ReplaceFile(path_, [&] { bytes = object ? WriteObject(networks[0], *object) : Write(networks); });
    Report report;
    report.Fact("network", "network", TextCell(networks.front().origin.network));
    AddOrigin(report.details(), networks.front().network->device->target());
    report.details().Fact("graph_hash", "", TextCell(networks.front().origin.graph_hash));
    report.details().Fact("file", "", TextCell(path_));
    report.Fact("networks", "networks in it", CountCell(std::ssize(networks)));
    report.Fact("file_bytes", "file MiB", MebibytesCell(bytes));
    report.Print(json_);
    return 0;
  }

 private:
  static int64_t ParseThreads(const std::string& text) {
    int64_t threads = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), threads);
    if (error == std::errc() && end == text.data() + text.size() && threads >= 1) return threads;
    throw Error(ErrorCode::kUsage, fmt::format("--for-threads must be at least 1, got {}", text));
  }

  std::vector<DevicePtr> Machines() const {
    std::vector<std::string> isas = isas_;
    std::vector<int64_t> thread_counts;
    thread_counts.reserve(thread_counts_.size());
    for (const std::string& text : thread_counts_) thread_counts.push_back(ParseThreads(text));
    if (isas.empty()) isas.push_back(machine_options_.max_isa);
    if (thread_counts.empty()) thread_counts.push_back(machine_options_.threads);
    std::vector<DevicePtr> machines;
    for (const std::string& isa : isas) {
      for (const int64_t threads : thread_counts) {
        MachineOptions options = machine_options_;
        options.max_isa = isa;
        options.threads = threads;
        machines.push_back(OpenMachine(options));
        RequireCpu(machines.back(), "compile");
        if (!isas_.empty() && machines.back()->target().isa < ParseIsa(isa)) {
          throw Error(ErrorCode::kUsage,
                      fmt::format("--for {}: this CPU has {}, and code is made where it runs", isa,
                                  IsaName(machines.back()->target().isa)));
        }
      }
    }
    return machines;
  }

  // For each size of the inputs, and each machine.
  std::vector<CompiledModel> CompileAll() {
    std::vector<CompiledModel> networks;
    std::vector<std::string> notes;
    BufferPool pool;
    DerivedTensors derived;
    const std::vector<DevicePtr> machines = Machines();
    std::vector<ModelOptions> sizes = SizesOf(model_);
    // What sizes share is kept where there are others.
    const bool shares = sizes.size() > 1;
    const auto file = shares ? ReadForSizes(model_) : nullptr;
    const std::vector<Plan> plans = plan_path_.empty() ? std::vector<Plan>() : ReadPlans(plan_path_, &notes);
    const PlanLoading loading{.other_sizes = shares, .strict = true, .notes = &notes};
    const size_t count = sizes.size() * machines.size();
    if (object_ && count > 1)
      throw Error(ErrorCode::kUsage, "--object: an object holds one network, for one size and one machine");
    const double begin = NowSeconds();
    ProgressLine progress;
    for (ModelOptions& size : sizes) {
      std::optional<DerivedTensors::Preparation> preparation;
      if (shares) preparation.emplace(derived);
      size.file = file;
      Graph graph = LoadModel(size);
      for (const DevicePtr& machine : machines) {
        const Plan plan = ChoosePlan(plan_path_, plans, graph, machine, loading);
        CompiledOrigin origin{graph.name(), plan.graph_hash, PlanHash(plan), std::string(ToolVersion()),
                              KnownPrediction(plan)};
        Graph own = graph;
        if (machine == machines.back()) graph = Graph(own.name());  // lets go of its weights
        networks.push_back(
            {std::move(origin), CompileNetwork(std::move(own), plan, machine, &InterruptFlag(), &pool)});
        const double left = (NowSeconds() - begin) / static_cast<double>(networks.size()) *
                            static_cast<double>(count - networks.size());
        progress.Show(fmt::format("network {} of {}, about {:.0f} s left", networks.size(), count, left));
      }
    }
    progress.Clear();
    constexpr size_t kMostNotes = 3;
    for (size_t i = 0; i < std::min(notes.size(), kMostNotes); ++i) PrintNote(notes[i] + "\n");
    if (notes.size() > kMostNotes)
      PrintNote(fmt::format("and {} such notes more\n", notes.size() - kMostNotes));
    return networks;
  }

  int64_t Write(const std::vector<CompiledModel>& networks) const {
    int64_t bytes = 0;
    NewFile file(path_);
    WriteCompiled(networks, [&](std::span<const std::byte> piece) {
      file.Write({reinterpret_cast<const char*>(piece.data()), piece.size()});
      bytes += std::ssize(piece);
    });
    file.Finish();
    return bytes;
  }

  const Args* args_ = nullptr;  // while it runs
  ModelOptions model_;
  MachineOptions machine_options_;
  std::string plan_path_, path_;
  std::vector<std::string> isas_, thread_counts_;
  bool object_ = false, json_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeCompileCommand() { return std::make_unique<CompileCommand>(); }

}  // namespace tilesmith
