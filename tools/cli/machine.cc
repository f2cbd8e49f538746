#include "tools/cli/machine.h"

#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <mutex>
#include <sstream>

#include "layouts/base/error.h"
#include "layouts/base/fork_gate.h"
#include "layouts/base/settings.h"
#include "layouts/base/thread_team.h"

namespace tilesmith {

void DeclareMachineOptions(Args& args, MachineOptions* options) {
  const std::string heading = args.Group("Machine");
  args.Positive("--threads", &options->threads, "Threads to compute with (default: every usable core)");
  args.Choice(
      "--wait", &options->wait, {"spin", "yield", "sleep"},
      "What threads do that wait for others: spin; after a while offer the core; at last sleep (default)");
  args.Choice("--max-isa", &options->max_isa, IsaNames(),
              "Use no wider instructions, oneDNN neither (also: TILESMITH_MAX_ISA)");
  DeclareTarget(args, &options->target);
  args.Group(heading);
}

void DeclareTarget(Args& args, std::string* target) {
  args.Text("--target", target, "What to compute on: cpu, cuda or, of several GPUs, cuda:N (default cpu)",
            "DEVICE");
}

void DeclareReproducible(Args& args, bool* reproducible) {
  const std::string heading = args.Group("Machine");
  args.Flag("--reproducible", reproducible,
            "Outputs of the same bits on every CPU, with any threads and plan made so (ops/order.md)");
  args.Group(heading);
}

void DeclarePrecision(Args& args, Precision* precision, std::span<const Precision> choices,
                      const std::string& help) {
  std::vector<std::string> names;
  for (const Precision choice : choices) names.emplace_back(PrecisionName(choice));
  args.Choice("--precision", names, help,
              [precision](const std::string& name) { *precision = ParsePrecision(name); });
}

void DeclareRounding(Args& args, Precision* precision) {
  DeclarePrecision(args, precision, std::array{Precision::kF32, Precision::kTf32},
                   "tf32: GPUs may round what they multiply (default f32)");
}

std::vector<std::string> IsaNames() {
  std::vector<std::string> names;
  for (const Isa isa : kIsas) names.emplace_back(IsaName(isa));
  return names;
}

Target CappedCpu(const std::string& max_isa) {
  const char* variable = std::getenv("TILESMITH_MAX_ISA");
  const std::string cap = !max_isa.empty() ? max_isa : variable != nullptr ? variable : "";
  Target cpu = DetectCpu();
  if (cap.empty()) return cpu;
  try {
    return CapIsa(cpu, ParseIsa(cap));
  } catch (const Error& error) {
    throw Error(error.code(),
                fmt::format("{}: {}", max_isa.empty() ? "TILESMITH_MAX_ISA" : "--max-isa", error.what()));
  }
}

namespace {

// One of those that the variable names already, where it is set; the driver counts from 0 what it names. Who
// asks for the same number again means the same GPU.
void ShowOneGpu(const std::string& number) {
  constexpr const char* kVisible = "CUDA_VISIBLE_DEVICES";
  static std::mutex mutex;
  static std::string shown;
  const AwayFromForks away;
  const std::scoped_lock lock(mutex);
  if (shown == number) return;
  const char* const set = std::getenv(kVisible);
  if (set == nullptr || *set == '\0') {
    setenv(kVisible, number.c_str(), 1);
    shown = number;
    return;
  }
  std::istringstream visible(set);
  std::string one;
  for (int i = std::stoi(number); i >= 0; --i) {
    if (std::getline(visible, one, ',')) continue;
    throw Error(ErrorCode::kUsage,
                fmt::format("{3} cuda:{0}: {1} has no GPU {0}, counted from 0: it is \"{2}\"", number,
                            kVisible, set, settings::kTarget));
  }
  setenv(kVisible, one.c_str(), 1);
  shown = number;
}

// "1" of "cuda:1", "" of "cuda".
std::string GpuNumberOf(const std::string& target) {
  const std::string kind = target.substr(0, target.find(':')), number = target.substr(kind.size());
  constexpr size_t kMaxDigits = 4;
  const bool is_number = number.size() > 1 && number.size() <= 1 + kMaxDigits &&
                         number.find_first_not_of("0123456789", 1) == std::string::npos;
  if (kind != kCudaDevice || !(number.empty() || is_number))
    throw Error(ErrorCode::kUsage, fmt::format("{} must be cpu, cuda or cuda:N, got {}", settings::kTarget,
                                               target.empty() ? "nothing" : target));
  return number.empty() ? "" : number.substr(1);
}

// One with a number is the first from here on.
Target DetectGpu(const std::string& target) {
  const std::string number = GpuNumberOf(target);
  if (!number.empty()) ShowOneGpu(number);
  try {
    return DetectTarget(kCudaDevice);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{} {}: {}", settings::kTarget, target, error.what()));
  }
}

}  // namespace

Target ChosenTarget(const MachineOptions& options) {
  const bool tf32 = options.precision == Precision::kTf32;
  if (options.target == kCpuDevice) {
    if (tf32)
      throw Error(ErrorCode::kUsage,
                  fmt::format("{} tf32 is for {} cuda, not cpu", settings::kPrecision, settings::kTarget));
    const bool rounds = options.precision == Precision::kBf16 || options.precision == Precision::kMixed;
    if (options.reproducible && rounds)
      throw Error(
          ErrorCode::kUsage,
          fmt::format("{} {}: CPUs round bf16 in ways of their own; {} takes f32 and int8",
                      settings::kPrecision, PrecisionName(options.precision), settings::kReproducible));
    const Target cpu = CappedCpu(options.max_isa);
    return options.reproducible ? Reproducible(cpu) : cpu;
  }
  if (options.reproducible)
    throw Error(ErrorCode::kUsage, fmt::format("{} is for {} cpu, not {}", settings::kReproducible,
                                               settings::kTarget, options.target));
  Target target = DetectGpu(options.target);
  target.tf32 = tf32;
  return target;
}

void RequireCpu(const DevicePtr& machine, std::string_view what) {
  const std::string& device = machine->target().device;
  if (device != kCpuDevice)
    throw Error(ErrorCode::kUsage, fmt::format("{} is for {} cpu, not {}", what, settings::kTarget, device));
}

std::vector<std::string> WorkerFor(std::vector<std::string> worker, const Target& target) {
  if (target.device != kCpuDevice) worker.insert(worker.end(), {"--target", target.device});
  if (target.tf32) worker.insert(worker.end(), {"--precision", "tf32"});
  return worker;
}

DevicePtr OpenMachine(const MachineOptions& options) {
  const Target target = ChosenTarget(options);
  if (target.device != kCpuDevice) {
    if (options.threads == 0) return OpenDevice(target, 1);
    throw Error(ErrorCode::kUsage, fmt::format("{} is for {} cpu, not {}", settings::kThreads,
                                               settings::kTarget, options.target));
  }
  if (options.threads > target.cores) {
    throw Error(ErrorCode::kUsage,
                fmt::format("{} must be at most {}, the cores this process may use, got {}",
                            settings::kThreads, target.cores, options.threads));
  }
  return OpenDevice(target, options.threads > 0 ? static_cast<int>(options.threads) : target.cores,
                    ParseWaitPolicy(options.wait));
}

}  // namespace tilesmith
