// A suite of workloads.

#include "tests/fuzz/targets/targets.h"
#include "tools/cli/targets.h"

namespace tilesmith::fuzz {
namespace {

constexpr std::string_view kWords[] = {"@title", "@against",    "@weights", "@forbid", "@geomean", "@each",
                                       "@peak",  "best",        "direct",   "warm",    "cold",     "winograd",
                                       "n\"",    "#",           "\n",       "+bias",   "+sum",     "+relu",
                                       ">",      "scale_shift", "ic",       "ih",      "oc",       "kh",
                                       "ph",     "g",           "mb",       "sh",      "dh"};

void Run(const std::string& input) { ParseSuite(input, "suite.txt"); }

}  // namespace

FuzzTarget SuiteTarget() {
  return {.name = "suite",
          .reads = "a suite of workloads",
          .run = Run,
          .mutate = MutateText,
          .words = kWords,
          .short_runs = 10000};
}

}  // namespace tilesmith::fuzz
