// The report of a tuned network, one page to look at: what `tilesmith report` does.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tools/cli/model.h"
#include "tools/cli/progress.h"

namespace tilesmith {

// The page: one HTML file that needs nothing else, made of the files in page/ and the data.
//
// A file that was compiled in.
struct PageFile {
  std::string_view name, text;
};

// Those of page/, and those of third parties that tools/fetch-report fetched before the build: their scripts,
// names ending in .js, and their licences. In a file that CMake writes.
std::span<const PageFile> PageFiles();
std::span<const PageFile> ThirdPartyFiles();

// The data as it stands in a <script> of the page: JSON in which no "<" is left, so that no text of it ends
// the script or begins a comment; bytes that are no UTF-8 are replaced.
std::string EmbeddedJson(const nlohmann::ordered_json& data);

// `third_party` is ThirdPartyFiles(); where a library is not among them the page draws less.
std::string ReportPage(const nlohmann::ordered_json& data, std::span<const PageFile> third_party);

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
