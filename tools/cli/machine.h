// The machine as a command is to use it: how many threads, and which instructions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "graph_tuner/planner/work.h"
#include "layouts/base/target.h"
#include "layouts/base/thread_team.h"
#include "tools/cli/args.h"
#include "tuner/precision.h"

namespace tilesmith {

struct MachineOptions {
  int64_t threads = 0;         // 0: all cores this process may use
  std::string wait = "sleep";  // WaitPolicyName
  std::string max_isa;         // "": the environment variable TILESMITH_MAX_ISA, or no cap
  std::string target = "cpu";  // or another kind of device (OpenDevice), of several with ":N" behind it
  Precision precision = Precision::kF32;  // in what is computed
  bool reproducible = false;              // Target::reproducible
};
void DeclareMachineOptions(Args& args, MachineOptions* options);

// "--target", which the options above have as well.
void DeclareTarget(Args& args, std::string* target);
// "--reproducible", for commands that choose or run schedules.
void DeclareReproducible(Args& args, bool* reproducible);
// "--precision", which they do not have: one of these, or f32 and tf32.
void DeclarePrecision(Args& args, Precision* precision, std::span<const Precision> choices,
                      const std::string& help);
void DeclareRounding(Args& args, Precision* precision);

// Detects the CPU and caps it, or opens another device. Throws Error(kUsage) for an unknown
// target, ISA or wait, for TF32 on a CPU, for reproducible results of bf16 or of another device, and for more
// threads than cores: they would only take turns, and
// every barrier would wait for a time slice; Error(kEnvironment) where there is no such device. A device with
// a number is chosen by CUDA_VISIBLE_DEVICES, which processes started later have, too.
DevicePtr OpenMachine(const MachineOptions& options);
// Names of kIsas, for --max-isa.
std::vector<std::string> IsaNames();
// The CPU alone, capped to what `max_isa` names, or, where that is "", the environment variable
// TILESMITH_MAX_ISA.
Target CappedCpu(const std::string& max_isa);
// The same of any target.
Target ChosenTarget(const MachineOptions& options);
// Throws Error(kUsage) naming what is done on CPUs only, where this is none.
void RequireCpu(const DevicePtr& machine, std::string_view what);
// A measuring worker's command line, told for which device it is to measure.
std::vector<std::string> WorkerFor(std::vector<std::string> worker, const Target& target);

}  // namespace tilesmith
