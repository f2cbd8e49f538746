#include "templates/base/space_fingerprint.h"

#include <fmt/format.h>

#include <map>
#include <mutex>
#include <string_view>

#include "layouts/base/fork_gate.h"
#include "layouts/base/stable_hash.h"
#include "templates/base/conv_template.h"

namespace tilesmith {
namespace {

// At least one for every template, on every ISA that it generates code for.
constexpr std::string_view kWorkloads[] = {
    "ic3ih224oc64kh7sh2ph3+bias+relu",
    "ic64ih56oc64kh3ph1+bias+sum+relu",
    "ic128ih28oc256kh3sh2ph1+bias+relu",
    "ic256ih14oc512kh1+bias+relu",
    "mb8ic1024ih7oc1000kh1+bias",
    "scale_shift+relu>ic128ih14oc128kh1",
    "g96ic96ih28oc96kh3ph1+bias+relu",
    "g64ic64ih56oc64kh5sh2ph2+bias",
    "g32ic32ih56oc32kh3ph1+bias+relu>ic32ih56oc64kh1+bias+relu",
    "ic32ih28oc96kh1+bias+relu>g96ic96ih28oc96kh3ph1+bias+relu",
    "g32ic128ih28oc128kh3ph1+bias+relu",
    "ic64ih128oc3kh3ph1+bias",
};

// No machine in particular, but for the ISA.
Target PlainCpu(Isa isa) {
  Target cpu;
  cpu.isa = isa;
  cpu.cores = 4;
  cpu.l1d_bytes = 32 << 10;
  cpu.l2_bytes = 1 << 20;
  cpu.l3_bytes = 16 << 20;
  return cpu;
}

std::string Computed(Isa isa) {
  const Target cpu = PlainCpu(isa);
  StableHash hash;
  for (const ConvTemplate* conv_template : ConvTemplatesFor(cpu)) {
    hash.Add(conv_template->Name());
    for (const std::string_view text : kWorkloads) {
      const ConvWorkload workload = ParseWorkload(text);
      hash.Add(text);
      if (!conv_template->Supports(workload, cpu).ok) continue;
      const ConfigSpace space = conv_template->Space(workload, cpu);
      for (const Knob& knob : space.knobs()) {
        hash.Add(knob.name);
        for (const int64_t value : knob.values) hash.Add(std::to_string(value));
      }
      hash.Add(conv_template->Default(workload, cpu).ToString());
    }
  }
  return fmt::format("{:08x}", (hash.value() ^ hash.value() >> 32) & 0xFFFFFFFFU);
}

}  // namespace

std::string SpaceFingerprint(Isa isa) {
  static std::mutex mutex;
  static std::map<Isa, std::string> known;
  const AwayFromForks away;
  const std::scoped_lock lock(mutex);
  std::string& fingerprint = known[isa];
  if (fingerprint.empty()) fingerprint = Computed(isa);
  return fingerprint;
}

}  // namespace tilesmith
