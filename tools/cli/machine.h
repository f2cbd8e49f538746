// The machine as a command is to use it: how many threads, and which instructions.
#pragma once

#include <sched.h>

#include <cstdint>
#include <string>

#include "layouts/base/target.h"
#include "templates/device/device.h"
#include "tools/cli/args.h"

namespace tilesmith {

struct MachineOptions {
  int64_t threads = 0;         // 0: all cores this process may use
  std::string wait = "sleep";  // WaitPolicyName
  std::string max_isa;         // "": the environment variable TILESMITH_MAX_ISA, or no cap
};
void DeclareMachineOptions(Args& args, MachineOptions* options);

// Detects the CPU and caps it, oneDNN included. Throws Error(kUsage) for an unknown ISA or wait, and for more
// threads than cores: they would only take turns, and every barrier would wait for a time slice.
DevicePtr OpenMachine(const MachineOptions& options);
// The same without touching oneDNN, for commands that need neither twins nor its start-up time.
Target CappedCpu(const std::string& max_isa);
// The rest of a computing command: the team is pinned and oneDNN told the thread count. On destruction the
// calling thread gets its cores back, so that processes started later are not confined to one.
class PinnedTeam {
 public:
  explicit PinnedTeam(const DevicePtr& machine);
  ~PinnedTeam();
  PinnedTeam(const PinnedTeam&) = delete;
  PinnedTeam& operator=(const PinnedTeam&) = delete;
  const cpu_set_t& cores_before() const { return before_; }

 private:
  cpu_set_t before_;
};

}  // namespace tilesmith
