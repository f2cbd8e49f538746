#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

#include "layouts/base/error.h"
#include "tuner/record.h"

namespace tilesmith {
namespace {

struct NamedStatus {
  TrialStatus status;
  std::string_view name;
};
constexpr std::array<NamedStatus, 9> kStatuses = {{{TrialStatus::kOk, "ok"},
                                                   {TrialStatus::kInvalidConfig, "invalid_config"},
                                                   {TrialStatus::kBuildError, "build_error"},
                                                   {TrialStatus::kBuildTimeout, "build_timeout"},
                                                   {TrialStatus::kRunCrash, "run_crash"},
                                                   {TrialStatus::kRunTimeout, "run_timeout"},
                                                   {TrialStatus::kWrongAnswer, "wrong_answer"},
                                                   {TrialStatus::kOutOfMemory, "out_of_memory"},
                                                   {TrialStatus::kWorkerLost, "worker_lost"}}};

}  // namespace

Target TargetOf(const CpuInfo& cpu) {
  return {.cpu_model = cpu.model,
          .isa = cpu.isa,
          .cores = cpu.cores,
          .l1d_bytes = cpu.l1d_bytes,
          .l2_bytes = cpu.l2_bytes,
          .l3_bytes = cpu.l3_bytes,
          .tool_version = TILESMITH_VERSION};
}

CpuInfo CpuOf(const Target& target) {
  return {.model = target.cpu_model,
          .isa = target.isa,
          .cores = target.cores,
          .l1d_bytes = target.l1d_bytes,
          .l2_bytes = target.l2_bytes,
          .l3_bytes = target.l3_bytes};
}

bool SameMachine(const Target& a, const Target& b) { return a.cpu_model == b.cpu_model && a.isa == b.isa; }

std::string_view TrialStatusName(TrialStatus status) {
  for (const NamedStatus& named : kStatuses) {
    if (named.status == status) return named.name;
  }
  return "unknown";
}

TrialStatus ParseTrialStatus(std::string_view text) {
  std::vector<std::string_view> known;
  for (const NamedStatus& named : kStatuses) {
    if (named.name == text) return named.status;
    known.push_back(named.name);
  }
  throw Error(ErrorCode::kUsage,
              fmt::format("unknown trial status \"{}\" (known: {})", text, fmt::join(known, ", ")));
}

}  // namespace tilesmith
