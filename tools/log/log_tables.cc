#include "tools/log/log_tables.h"

#include <fmt/format.h>

#include <algorithm>

#include "layouts/base/check.h"
#include "layouts/base/error.h"
#include "tools/cli/machine.h"

namespace tilesmith {

Cell TargetList::NumberOf(const Target& target) const {
  const auto known = std::find_if(counts_.begin(), counts_.end(), [&](const TargetCount& count) {
    return SameMachine(count.target, target);
  });
  TILESMITH_CHECK(known != counts_.end(), "{} is not in the list", target.model);
  return CountCell(known - counts_.begin() + 1);
}

void TargetList::AddTable(Report& report) const {
  const Target here = CappedCpu("");
  Table& table = report.AddTable({"targets",
                                  "",
                                  {{"target", "target"},
                                   {"cpu", "CPU"},
                                   {"isa", "ISA"},
                                   {"cores", "cores"},
                                   {"version", "measured by"},
                                   {"records", "records"},
                                   {"this_machine", "this machine"}}});
  for (size_t i = 0; i < counts_.size(); ++i) {
    const Target& target = counts_[i].target;
    const bool same = SameMachine(target, here);
    table.AddRow({CountCell(static_cast<int64_t>(i) + 1),
                  TextCell(target.model),
                  TextCell(std::string(IsaName(target.isa))),
                  CountCell(target.cores),
                  TextCell(target.version),
                  CountCell(counts_[i].records),
                  {same, same ? "yes" : "no"}});
  }
}

std::string WeightsText(const MeasureConditions& conditions) {
  return conditions.cold_weights ? "cold" : "warm";
}

Cell FailuresCell(const std::map<TrialStatus, int64_t>& failures) {
  Cell::Named<int64_t> counts;
  for (const auto& [status, count] : failures) counts.emplace_back(TrialStatusName(status), count);
  return CountsCell(std::move(counts));
}

void DeclareWorkload(Args& args, std::string* workload) {
  args.Text("--workload", workload, "Only records of this convolution, such as ic64ih56oc64kh3ph1",
            "WORKLOAD");
}

std::vector<Record> OfWorkload(std::vector<Record> records, const std::string& workload) {
  if (workload.empty()) return records;
  const ConvWorkload wanted = ParseWorkload(workload);
  std::erase_if(records, [&](const Record& record) { return record.workload != wanted; });
  if (records.empty())
    throw Error(ErrorCode::kUsage, fmt::format("no record of {}", WorkloadToString(wanted)));
  return records;
}

void CheckOutput(const std::string& output, OutputFormat format, const std::vector<std::string>& inputs) {
  if (output.empty()) throw Error(ErrorCode::kUsage, "-o OUT is required");
  RequireReplaceable(output, format, inputs);
}

}  // namespace tilesmith
