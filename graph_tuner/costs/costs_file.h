// The cost cache: what was measured once on a machine, kept in a file beside the tuning log.
//
// JSON lines, append-only. Every line holds one figure and what it is a figure of:
//   {"tilesmith_cost":2,"target":{"cpu":"AMD EPYC","isa":"avx512",...},"threads":2,
//    "kind":"transform","shape":"1x64x56x56","from":"NCHW","to":"NCHW16c","seconds":1.2e-05}
// The target is spelled as in a tuning log; format 1 had its members "cpu", "isa" and "tool" (the version)
// beside the others. Lines of another machine, thread count or tool version are kept but not used; later
// lines win. A torn or foreign line costs that line.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "layouts/base/target.h"

namespace tilesmith {

// The fields that say what was measured, "kind" among them.
using CostKey = std::map<std::string, std::string>;

class CostFile {
 public:
  // Reads `path`, which may be missing; an empty path means memory only. Throws Error(kEnvironment) when it
  // exists but cannot be read.
  CostFile(std::string path, const Target& cpu, int threads);

  std::optional<double> Find(const CostKey& key) const;
  // All figures of this machine and thread count.
  const std::map<CostKey, double>& figures() const { return seconds_; }
  // Remembers the figure and appends its line in one write, so that concurrent writers do not interleave; a
  // file that may not be written to, of which a warning tells, is left alone. Throws Error(kEnvironment)
  // naming the file when it cannot.
  void Add(const CostKey& key, double seconds);
  // That the file may not be written to; "costs.jsonl:17: skipped: ..." for the first lines that are no
  // costs, and how many more there are.
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  void ReadLine(const std::string& line);
  void Append(const std::string& line);

  std::string path_;
  bool keeps_ = false;  // figures, in the file
  Target target_;
  int threads_;
  bool torn_ = false;  // the file does not end in a newline
  std::map<CostKey, double> seconds_;
  std::vector<std::string> warnings_;
};

}  // namespace tilesmith
