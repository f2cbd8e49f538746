// oneDNN's times of convolutions, kept beside a tuning log so that going on with it need not take them again.
//
// JSON lines, one a time; each says for which machine, threads, weights and version of oneDNN it holds, and
// whether others used the machine meanwhile. The last line for a convolution counts; those that are no such
// are skipped.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "tools/bench/conv_bench.h"
#include "tools/cli/machine.h"

namespace tilesmith {

struct KnownBaseline {
  std::optional<OneDnnSide> side;  // none where oneDNN cannot do the convolution
  double disturbed_share = 0;      // of the time in which it was taken
};

class BaselineCache {
 public:
  // "a.jsonl" -> "a.onednn.jsonl"
  static std::string PathFor(const std::string& log_path);

  BaselineCache(std::string path, const DevicePtr& machine);

  // Null where the time is not known.
  const KnownBaseline* Find(const ConvWorkload& workload, bool cold_weights) const;
  // Appends it at once. A file that takes nothing is no error: the time is taken again.
  void Add(const ConvWorkload& workload, bool cold_weights, const KnownBaseline& baseline);

 private:
  std::string KeyOf(const ConvWorkload& workload, bool cold_weights) const;
  void Read();

  std::string path_, machine_;
  std::map<std::string, KnownBaseline> baselines_;
};

}  // namespace tilesmith
