// The tables of `tilesmith log` have columns and cells in common.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tools/cli/args.h"
#include "tools/cli/output_file.h"
#include "tools/cli/report.h"
#include "tuner/records/record_groups.h"

namespace tilesmith {

// Machines by number, so that rows of many machines fit a line. Records of one never mix with another's.
class TargetList {
 public:
  explicit TargetList(std::vector<TargetCount> counts) : counts_(std::move(counts)) {}
  Cell NumberOf(const Target& target) const;  // precondition: in the list
  void AddTable(Report& report) const;

 private:
  std::vector<TargetCount> counts_;
};

std::string WeightsText(const MeasureConditions& conditions);  // "warm", "cold"
// "run_crash 2, wrong_answer 1", "" for none.
Cell FailuresCell(const std::map<TrialStatus, int64_t>& failures);

// --workload W. Throws Error(kUsage) when the text is no workload.
void DeclareWorkload(Args& args, std::string* workload);
// Only those of the workload, if one was given. Throws Error(kUsage) naming it when there is none.
std::vector<Record> OfWorkload(std::vector<Record> records, const std::string& workload);

// RequireReplaceable (output_file.h); throws Error(kUsage) when no -o was given, too.
void CheckOutput(const std::string& output, OutputFormat format, const std::vector<std::string>& inputs);

}  // namespace tilesmith
