#include "tools/cli/machine.h"

#include <fmt/format.h>

#include <cstdlib>

#include "layouts/base/error.h"
#include "layouts/base/thread_team.h"
#include "ops/onednn/onednn.h"

namespace tilesmith {

void DeclareMachineOptions(Args& args, MachineOptions* options) {
  const std::string heading = args.Group("Machine");
  args.Positive("--threads", &options->threads, "Threads to compute with (default: every usable core)");
  args.Choice("--max-isa", &options->max_isa, {"portable", "avx2", "avx512"},
              "Use no wider instructions, oneDNN neither (also: TILESMITH_MAX_ISA)");
  args.Group(heading);
}

CpuInfo CappedCpu(const std::string& max_isa) {
  const char* variable = std::getenv("TILESMITH_MAX_ISA");
  const std::string cap = !max_isa.empty() ? max_isa : variable != nullptr ? variable : "";
  const CpuInfo cpu = DetectCpu();
  return cap.empty() ? cpu : CapIsa(cpu, ParseIsa(cap));
}

Machine OpenMachine(const MachineOptions& options) {
  Machine machine{CappedCpu(options.max_isa), 0};
  if (machine.cpu.isa < DetectCpu().isa) OneDnnCapIsa(machine.cpu.isa);
  if (options.threads > machine.cpu.cores) {
    throw Error(ErrorCode::kUsage,
                fmt::format("--threads must be at most {}, the cores this process may use, got {}",
                            machine.cpu.cores, options.threads));
  }
  machine.threads = options.threads > 0 ? int(options.threads) : machine.cpu.cores;
  return machine;
}

PinnedTeam::PinnedTeam(const Machine& machine) {
  CPU_ZERO(&before_);
  sched_getaffinity(0, sizeof(before_), &before_);
  PinTeam(machine.threads);
  OneDnnSetThreads(machine.threads);
}

PinnedTeam::~PinnedTeam() { sched_setaffinity(0, sizeof(before_), &before_); }

}  // namespace tilesmith
