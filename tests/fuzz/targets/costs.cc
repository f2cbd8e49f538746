// The costs file: read, asked, added to, read again.
#include "graph_tuner/costs/costs_file.h"
#include "tests/fuzz/targets/record_uses.h"
#include "tests/fuzz/targets/targets.h"

namespace tilesmith::fuzz {
namespace {

void Run(const std::string& input) {
  const InputFile file(input);
  CostFile costs(file.path(), FuzzCpu(), 2);
  for (const auto& [key, seconds] : costs.figures()) {
    Require(seconds >= 0 && costs.Find(key) == seconds, "a figure is found, and no less than 0");
  }
  const CostKey added{{"kind", "fuzz"}, {"shape", "1x1"}};
  costs.Add(added, 1e-3);
  const CostFile again(file.path(), FuzzCpu(), 2);
  Require(again.Find(added) == 1e-3, "what was added to the file is read from it");
  Require(again.figures() == costs.figures(), "and so is all the rest");
}

}  // namespace

FuzzTarget CostsTarget() {
  static constexpr std::string_view kWords[] = {
      "transform",  "op",   "barrier", "NCHW",           "NHWC",   "NCHW16c",
      "1x64x56x56", "fuzz", "avx512",  "tilesmith_cost", "seconds"};
  return {.name = "costs",
          .reads = "the costs file",
          .run = Run,
          .mutate = MutateJsonLines,
          .words = kWords,
          .short_runs = 3000};
}

}  // namespace tilesmith::fuzz
