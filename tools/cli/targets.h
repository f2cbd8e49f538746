// MODEL, WORKLOAD or --suite NAME: what tune and bench work on.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/cli/model.h"
#include "tools/cli/tasks.h"
#include "tuner/records/record.h"

namespace tilesmith {

// Suites: lists of workloads that belong together, with what is expected of them.
//
// A suite file has one workload a line, n"name" allowed; # begins a comment. Lines that begin with @ say
// more:
//   @title TEXT               of its table
//   @against best|direct      what a ratio compares with: oneDNN's fastest algorithm (default), or its direct
//   one
//   @weights warm|cold        default warm
//   @forbid winograd          a template that would miss the point of the suite
//   @geomean 1.02             goal: geometric mean of the ratios
//   @each 0.98                goal: the ratio of every row that follows, until the next @each
//   @peak 0.95                goal: share of the FMA peak of every row that follows; 0 is none
struct SuiteRow {
  ConvTask task;
  double ratio_goal = 0;  // 0: none
  double peak_goal = 0;
};

struct Suite {
  std::string name;  // of the file, without folder and ending
  std::string title;
  bool against_direct = false;
  bool cold_weights = false;
  std::vector<std::string> forbidden_templates;
  double geomean_goal = 0;
  std::vector<SuiteRow> rows;
};

// Throws Error(kUsage) naming `source` and the line.
Suite ParseSuite(std::string_view text, const std::string& source);

// A built-in suite's name, "all" for all of those, or a file. Throws Error(kUsage) as above and for a name
// that is neither, Error(kEnvironment) for a file that cannot be read.
std::vector<Suite> LoadSuites(const std::string& name_or_file);

// The texts of tools/suites/*.txt, ordered by name; compiled in.
struct BuiltInSuite {
  std::string_view name, text;
};
std::vector<BuiltInSuite> BuiltInSuites();

struct TargetOptions {
  ModelOptions model;  // model.model holds the positional, whichever it is
  std::string suite;
  // A suite's and single convolutions are taken as a quantised network has them: of u8 and i8 to u8, where an
  // activation that clamps is part of the limits. A suite loses the others, what is the same then, and goals.
  bool in_bytes = false;

  bool of_workloads() const;  // no MODEL, nor nothing
};
void DeclareTargets(Args& args, TargetOptions* options);

struct Targets {
  std::vector<ConvTask> tasks;  // of suites: each workload once per kind of weights and templates
  std::vector<Suite> suites;
  std::vector<Graph> graphs;  // of a MODEL, one for each size of its inputs (SizesOf)
  bool is_network() const { return !graphs.empty(); }
};
// Throws Error(kUsage) when it is neither of them, or both are given, or nothing is left of it in bytes.
Targets LoadTargets(const TargetOptions& options);
// Throws Error(kBadModel) too, when there are no tasks.
Targets LoadTargetsToTune(const TargetOptions& options);

// "NCHW16c -> NCHW32c".
std::string LayoutsText(const LayoutPair& layouts);

}  // namespace tilesmith
