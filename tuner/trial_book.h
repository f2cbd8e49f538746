// The trial book keeps what is known about the configs of one task: one record per config, the latest that
// counts.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tuner/records/accuracy.h"
#include "tuner/records/record.h"

namespace tilesmith {

class TrialBook {
 public:
  // Records beyond the limits are kept, but are neither Best nor Top.
  explicit TrialBook(AccuracyLimits limits = {}) : limits_(std::move(limits)) {}
  // Replaces what was known of the same config.
  void Enter(const Record& record);
  bool Knows(std::string_view template_name, const Config& config) const;

  int size() const { return static_cast<int>(records_.size()); }
  const std::vector<Record>& records() const { return records_; }

  // The best full measurement (IsBetterRecord); nullptr while there is none.
  const Record* Best() const;
  // Full measurements, best first, at most n.
  std::vector<const Record*> Top(size_t n) const;
  // The best of each layout pair, an early-stopped one only where there is nothing better.
  std::map<LayoutPair, const Record*> BestOfPairs() const;

 private:
  bool IsUsable(const Record& record) const {
    return record.status == TrialStatus::kOk && Accepts(limits_, record);
  }
  AccuracyLimits limits_;
  std::vector<Record> records_;
  std::map<std::string, size_t> by_schedule_;
};

}  // namespace tilesmith
