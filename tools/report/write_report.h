// The report of a tuned network, one page to look at: what `tilesmith report` does.
#pragma once

#include <string>
#include <vector>

#include "tools/cli/model.h"
#include "tools/cli/progress.h"

namespace tilesmith {

struct ReportRequest {
  std::string log_path = {}, plan_path = {};   // no log: ""
  std::string bench_path = {};                 // what bench printed as JSON; "": none
  std::vector<std::string> result_paths = {};  // what graph-tune, run and others did, behind that
  std::vector<std::string> results = {};       // the same, as it is
  std::string trace_path = {};                 // of one run, as `run --trace` writes it; "": none
  // Its name may be "": then it is the built-in network that the plan names, if that is one.
  ModelOptions model = {};
  std::string costs_path = {};  // "": beside the log
  double explain_seconds = 30;  // for the explanations of all nodes together; 0: none
  std::string output_path = {};
};

struct WrittenReport {
  std::string verdict;               // one line
  std::vector<std::string> missing;  // "the network: ...", what the page does without, and why
};

// Writes the page (page/) with its data (README.md) to output_path, which is replaced atomically. The
// explanations are of this machine: costs that their file lacks are measured, and nothing else may run in the
// process meanwhile. Throws Error(kUsage) for files that are not what they should be or of another network,
// Error(kEnvironment) when one cannot be read or written, and Error(kInterrupted) when it is stopped.
WrittenReport WriteReport(const ReportRequest& request, const WorkSinks& sinks);

}  // namespace tilesmith
