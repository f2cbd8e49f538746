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
  args.Choice(
      "--wait", &options->wait, {"spin", "yield", "sleep"},
      "What threads do that wait for others: spin; after a while offer the core; at last sleep (default)");
  args.Choice("--max-isa", &options->max_isa, {"portable", "avx2", "avx512"},
              "Use no wider instructions, oneDNN neither (also: TILESMITH_MAX_ISA)");
  args.Group(heading);
}

Target CappedCpu(const std::string& max_isa) {
  const char* variable = std::getenv("TILESMITH_MAX_ISA");
  const std::string cap = !max_isa.empty() ? max_isa : variable != nullptr ? variable : "";
  const Target cpu = DetectCpu();
  return cap.empty() ? cpu : CapIsa(cpu, ParseIsa(cap));
}

namespace {

WaitPolicy ParseWait(std::string_view name) {
  for (const WaitPolicy policy : kWaitPolicies)
    if (WaitPolicyName(policy) == name) return policy;
  throw Error(ErrorCode::kUsage, fmt::format("wait is \"{}\" (known: spin, yield, sleep)", name));
}

}  // namespace

DevicePtr OpenMachine(const MachineOptions& options) {
  const Target target = CappedCpu(options.max_isa);
  if (target.isa < DetectCpu().isa) OneDnnCapIsa(target.isa);
  if (options.threads > target.cores) {
    throw Error(ErrorCode::kUsage,
                fmt::format("--threads must be at most {}, the cores this process may use, got {}",
                            target.cores, options.threads));
  }
  return OpenDevice(target, options.threads > 0 ? int(options.threads) : target.cores,
                    ParseWait(options.wait));
}

PinnedTeam::PinnedTeam(const DevicePtr& machine) {
  CPU_ZERO(&before_);
  sched_getaffinity(0, sizeof(before_), &before_);
  PinTeam(machine->threads());
  OneDnnSetThreads(machine->threads());
}

PinnedTeam::~PinnedTeam() { sched_setaffinity(0, sizeof(before_), &before_); }

}  // namespace tilesmith
