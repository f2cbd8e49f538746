// Records of random valid configs of the direct template with made-up times that follow from a few knobs:
// what a cost model can learn in a moment.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "tuner/records/record.h"
#include "tuner/search/config_sampling.h"

namespace tilesmith {

constexpr const char* kSampleWorkload = "ic64ih14oc64oh14kh3ph1";

inline double MadeUpSeconds(const Config& config) {
  const auto positions = static_cast<double>(config.Get("oc_vectors") * config.Get("width_tile"));
  const double tile = std::abs(std::log2(positions / 24));
  const double unroll = std::abs(std::log2(static_cast<double>(config.Get("ic_unroll")) / 4));
  return 1e-3 * (1 + 0.3 * tile + 0.1 * unroll + (config.Get("broadcast") == 0 ? 0.2 : 0.0));
}

inline std::vector<Record> MeasuredConfigs(const std::string& workload, int count, uint64_t seed) {
  Target cpu;
  cpu.model = "a CPU of the tests";
  cpu.isa = Isa::kAvx512;
  cpu.cores = 2;
  cpu.l3_bytes = 32 << 20;
  const ConvTemplate& direct = FindConvTemplate("direct");
  Record record;
  record.target = cpu;
  record.workload = ParseWorkload(workload);
  record.template_name = direct.Name();
  record.conditions.threads = 2;
  const ConfigSpace space = direct.Space(record.workload, cpu);
  ValidSampler sampler(space);
  RandomSource random(seed);
  std::unordered_set<uint64_t> taken;
  std::vector<Record> records;
  for (int i = 0; i < count; ++i) {
    const uint64_t index = sampler.Draw(taken, random).value();
    taken.insert(index);
    record.config = space.At(index);
    record.seconds = MadeUpSeconds(record.config);
    records.push_back(record);
  }
  return records;
}

}  // namespace tilesmith
